"""Commands under faults: each is interrupted at one point after another, repeated, and judged.

Law: after a fault the same command is run again, and nothing else. It must end like a command
without a fault. The user's uncommitted work must be unchanged, also before the second call; no
recorded fact may be lost, and no lock may be left.
"""

import errno
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import MappingProxyType
from typing import Self

from windlass.core.events import codec
from windlass.errors import WindlassError
from windlass.selftest.judge import running_faults
from windlass.selftest.picture import leftovers, picture, user_files
from windlass.selftest.place import Rehearsals
from windlass.selftest.power import lose_power
from windlass.selftest.scenes import USER_WORK, Scene, set_up
from windlass.selftest.series import Share, disk_fault, part_of, temporary_folder
from windlass.selftest.sweep import Finding, doubles, short, spread, tracebacks
from windlass.testing.faults.disk import SURVIVALS, Survival, read
from windlass.testing.faults.shim import Mode
from windlass.testing.faults.story import PLAN_ID

_CALLS = 3
"""How many times a command is repeated after a fault before the test gives up."""
_CODES = frozenset({0, 1, 2, 3, 4})
"""Exit codes of a command that could not write: it says why, and it is not a bug."""
_PATHS = tuple(USER_WORK)


class CommandTester:
    """Breaks the command of one scene, in one place, in every way."""

    def __init__(self, rehearsals: Rehearsals, scene: Scene) -> None:
        """Run the command once without a fault: every other call must end like this one."""
        self._run = rehearsals
        self.scene = scene
        set_up(rehearsals, scene)
        self._mine = self._user_work()
        self._before = self._recorded()
        for left in rehearsals.control.log.parent.glob(f"{rehearsals.control.log.name}*"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        rehearsals.control.order(Mode.LOG)
        code = self._call()
        self.calls = rehearsals.control.hit().count
        if code != scene.code:
            output = self._output()
            raise WindlassError(f"without a fault, {scene.name} ends with {code}: {output}")
        self._lines = read(rehearsals.control.log) if rehearsals.control.log.exists() else []
        self._wanted = picture(rehearsals.place)
        if faults := list(self.faults()):
            raise WindlassError(f"without a fault, {scene.name} leaves {'; '.join(faults)}")

    @property
    def sees_all(self) -> bool:
        """Whether git's calls are seen too."""
        return self._run.sees_all

    # The kinds of faults

    def kill(self, share: Share) -> Iterator[Finding]:
        """Kill the command at a point, and run it again."""
        for at in part_of(spread(self.calls, share.count, share.seed), share):
            yield self._kill_at(at)

    def kill_twice(self, share: Share) -> Iterator[Finding]:
        """Kill the command at a point, kill the second call, and run it a third time."""
        for first, second in part_of(doubles(self.calls, share.count, share.seed), share):
            yield self._kill_at(first, 1 + second % self.calls)

    def kill_git(self, share: Share) -> Iterator[Finding]:
        """Kill only the process that makes the call: if it is a git, Windlass continues."""
        for at in part_of(spread(self.calls, share.count, share.seed), share):
            yield self._fail_at(at, Mode.KILL_ONE)

    def lose_power(self, share: Share) -> Iterator[Finding]:
        """Discard what was not synced, and run the command again."""
        moments = list(enumerate(spread(len(self._lines), share.count, share.seed)))
        for i, moment in part_of(moments, share):
            yield self._lose_power_at(moment, SURVIVALS[i % len(SURVIVALS)], share.seed + i)

    def fail_disk(self, share: Share) -> Iterator[Finding]:
        """Make the disk full, broken or read-only, for one call or from it on."""
        points = list(enumerate(spread(self.calls, share.count, share.seed), start=share.seed))
        for i, at in part_of(points, share):
            error, mode = disk_fault(i)
            yield self._fail_at(at, mode, error)

    # One point

    def _kill_at(self, *points: int) -> Finding:
        self._run.place.reset()
        names: list[str] = []
        reached, faults = True, list[str]()
        for at in points:
            self._run.control.order(Mode.KILL, at)
            code = self._call()
            hit = self._run.control.hit()
            names.append(f"{at} {hit.what} {short(hit.where, self._run.place.repo)}")
            reached = reached and code == -signal.SIGKILL
            faults += self._user_faults()
        return self._judge(" + ".join(names), reached=reached, faults=faults)

    def _fail_at(self, at: int, mode: Mode, error: int = 0) -> Finding:
        """Let one call fail, or all from one on; Windlass may report it."""
        self._run.place.reset()
        self._run.control.order(mode, at, error=error)
        code = self._call()
        hit, output = self._run.control.hit(), self._output()
        fault = "killed alone" if mode is Mode.KILL_ONE else errno.errorcode[error]
        kind = " and on" if mode is Mode.FAIL_ON else ""
        where = short(hit.where, self._run.place.repo)
        name = f"{fault} at {at}{kind} {hit.what} {where}"
        faults = self._user_faults()
        if hit.fired and code != -signal.SIGKILL:
            if code not in _CODES:
                faults.append(f"it ends with {code}")
            if code and not output.strip():
                faults.append("it fails without a message")
            faults += tracebacks(output)
        found = self._judge(name, reached=hit.fired > 0, faults=faults)
        if not found.faults:
            return found
        both = f"{found.output} | before: [{code}] {output}"
        return Finding(name=name, reached=found.reached, faults=found.faults, output=both)

    def _lose_power_at(self, moment: int, survival: Survival, seed: int) -> Finding:
        _, name = lose_power(self._run, self._lines[:moment], survival, seed)
        return self._judge(name, reached=True, faults=self._user_faults())

    def _judge(self, name: str, *, reached: bool, faults: list[str]) -> Finding:
        """Run the command until nothing is wrong, at most `_CALLS` times."""
        self._run.control.order(Mode.COUNT)
        calls, wrong, output = 0, ["never called"], ""
        while wrong and calls < _CALLS:
            calls += 1
            code, output = self._call(), self._output()
            wrong = list(self.faults())
            if code not in _CODES:
                wrong.append(f"called again, it ends with {code}")
            wrong += tracebacks(output)
        if calls > 1:
            faults = [*faults, f"it took {calls} more calls"]
        faults = [*faults, *wrong]
        return Finding(
            name=name, reached=reached, faults=tuple(faults), output=output if faults else ""
        )

    def faults(self) -> Iterator[str]:
        """Everything that differs from a call without a fault."""
        try:
            now = picture(self._run.place)
            for name in sorted(self._wanted.keys() | now.keys()):
                was, found = self._wanted.get(name), now.get(name)
                if was != found:
                    yield f"{name} is {found!r:.300}, not {was!r:.300}"
            yield from leftovers(self._run.place)
            yield from self._user_faults()
            yield from self._journal_faults()
        except (subprocess.CalledProcessError, WindlassError, OSError, ValueError) as error:
            output = getattr(error, "stderr", "") or ""
            yield f"it cannot be judged: {error} {output}".rstrip()
        yield from running_faults(self._run.place.project)

    def _journal_faults(self) -> Iterator[str]:
        """Facts that were recorded before the call must still be recorded."""
        now = self._recorded()
        if not self.scene.rebuilds and now[: len(self._before)] != self._before:
            yield f"the journal had {len(self._before)} facts, and now has {len(now)} others"

    def _user_faults(self) -> list[str]:
        """Which files of the user's uncommitted work changed."""
        now = self._user_work()
        touched = [path for path in _PATHS if now[path] != self._mine[path]]
        return [f"the user's {path} was touched" for path in touched]

    def _user_work(self) -> dict[str, str | None]:
        found = user_files(self._run.place)
        return {path: found.get(path) for path in _PATHS}

    def _recorded(self) -> list[bytes]:
        entries = self._run.place.project.journals.entries(PLAN_ID)
        return [codec.encode(entry.event) for entry in entries]

    def _call(self) -> int:
        return self._run.call(*self.scene.argv)

    def _output(self) -> str:
        return self._run.place.read_output()


Series = Callable[[CommandTester, Share], Iterator[Finding]]

KINDS: MappingProxyType[str, Series] = MappingProxyType(
    {
        "killed": CommandTester.kill,
        "killed twice": CommandTester.kill_twice,
        "git killed": CommandTester.kill_git,
        "power lost": CommandTester.lose_power,
        "disk": CommandTester.fail_disk,
    }
)
"""The kinds of faults, by the name that is shown."""


class CommandTesters:
    """Several places, each of which gets one scene after another; use them with `with`."""

    def __init__(self, workers: int, *, level: str) -> None:
        self._workers = workers
        self._level = level
        self._held = ExitStack()
        self._places: list[Rehearsals] = []

    def __enter__(self) -> Self:
        top = self._held.enter_context(temporary_folder())
        for i in range(self._workers):
            made = Rehearsals.at(top / str(i), level=self._level)
            self._places.append(self._held.enter_context(made))
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    @property
    def sees_all(self) -> bool:
        """Whether git's calls are seen too."""
        return all(place.sees_all for place in self._places)

    def set_up(self, scene: Scene) -> list[CommandTester]:
        """Set up the scene in every place."""
        with ThreadPoolExecutor(self._workers) as pool:
            working = [pool.submit(CommandTester, place, scene) for place in self._places]
            return [each.result() for each in working]
