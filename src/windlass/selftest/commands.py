"""Commands under faults: each is broken at one point after the other, called again, and judged.

Law: after a fault there is the same command once more, and nothing else. It comes to the end that
an unbroken one comes to; what the user has lying about is as it was, also before the second call;
no fact that was recorded is gone, and no lock is left.
"""

import errno
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import MappingProxyType
from typing import Self

from windlass.app.wiring import Project
from windlass.app.wiring.rehearsal import left_running
from windlass.core.events import codec
from windlass.errors import WindlassError
from windlass.selftest.judge import PATIENCE
from windlass.selftest.picture import litter, picture, user_files
from windlass.selftest.place import Rehearsals
from windlass.selftest.scenes import MINE, Scene, set_up
from windlass.selftest.series import Share, fault, part_of, quiet_folder
from windlass.selftest.sweep import Finding, doubles, short, spread
from windlass.testing.faults.disk import SURVIVALS, Disk, Survival, read
from windlass.testing.faults.shim import Mode
from windlass.testing.faults.story import PLAN_ID

_CALLS = 3
"""How many calls in all may be tried before a command is said not to come to its end."""
_CODES = frozenset({0, 1, 2, 3, 4})
"""How a command ends that could not write: with a word on why, and never with a defect."""
_PATHS = tuple(MINE)


class CommandStand:
    """One scene in one place, and all that can be done to it."""

    def __init__(self, rehearsals: Rehearsals, scene: Scene) -> None:
        """Call it once unbroken: that is what every other call is to come to."""
        self._run = rehearsals
        self.scene = scene
        set_up(rehearsals, scene)
        self._mine = self._own()
        self._before = self._recorded()
        for left in rehearsals.control.log.parent.glob(f"{rehearsals.control.log.name}*"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        rehearsals.control.order(Mode.LOG)
        code = self._called()
        self.calls = rehearsals.control.hit().count
        if code != scene.code:
            raise WindlassError(f"unbroken, {scene.name} ends with {code}: {self._said()}")
        self._lines = read(rehearsals.control.log) if rehearsals.control.log.exists() else []
        self._wanted = picture(rehearsals.place)
        if faults := list(self.wrong()):
            raise WindlassError(f"unbroken, {scene.name} leaves {'; '.join(faults)}")

    @property
    def sees_all(self) -> bool:
        """Whether the calls of git are seen too."""
        return self._run.sees_all

    # What can be done

    def killed(self, share: Share) -> Iterator[Finding]:
        """Killed at a point, and called again."""
        for at in part_of(spread(self.calls, share.count, share.seed), share):
            yield self._killed(at)

    def killed_twice(self, share: Share) -> Iterator[Finding]:
        """Killed at a point, again in the second call, and called a third time."""
        for first, second in part_of(doubles(self.calls, share.count, share.seed), share):
            yield self._killed(first, 1 + second % self.calls)

    def git_killed(self, share: Share) -> Iterator[Finding]:
        """The process that makes a call is killed alone: Windlass lives on where it was a git."""
        for at in part_of(spread(self.calls, share.count, share.seed), share):
            yield self._broken(at, Mode.KILL_ONE)

    def powerless(self, share: Share) -> Iterator[Finding]:
        """What was not synced is gone, and it is called again."""
        moments = list(enumerate(spread(len(self._lines), share.count, share.seed)))
        for i, moment in part_of(moments, share):
            yield self._powerless(moment, SURVIVALS[i % len(SURVIVALS)], share.seed + i)

    def failing(self, share: Share) -> Iterator[Finding]:
        """A full, a broken and a read-only disk, for one call or for all that follow."""
        points = list(enumerate(spread(self.calls, share.count, share.seed), start=share.seed))
        for i, at in part_of(points, share):
            error, mode = fault(i)
            yield self._broken(at, mode, error)

    # How it is done

    def _killed(self, *points: int) -> Finding:
        self._run.place.fresh()
        names: list[str] = []
        reached, faults = True, list[str]()
        for at in points:
            self._run.control.order(Mode.KILL, at)
            code = self._called()
            hit = self._run.control.hit()
            names.append(f"{at} {hit.what} {short(hit.where, self._run.place.repo)}")
            reached = reached and code == -signal.SIGKILL
            faults += self._touched()
        return self._judged(" + ".join(names), reached=reached, faults=faults)

    def _broken(self, at: int, mode: Mode, error: int = 0) -> Finding:
        """Something goes wrong at one call, or at all from one on, and Windlass may tell of it."""
        self._run.place.fresh()
        self._run.control.order(mode, at, error=error)
        code = self._called()
        hit, said = self._run.control.hit(), self._said()
        word = "killed alone" if mode is Mode.KILL_ONE else errno.errorcode[error]
        kind = " and on" if mode is Mode.FAIL_ON else ""
        where = short(hit.where, self._run.place.repo)
        name = f"{word} at {at}{kind} {hit.what} {where}"
        faults = self._touched()
        if hit.fired and code != -signal.SIGKILL:
            if code not in _CODES:
                faults.append(f"it ends with {code}")
            if code and not said.strip():
                faults.append("it ends without a word")
            faults += _defects(said)
        found = self._judged(name, reached=hit.fired > 0, faults=faults)
        if not found.faults:
            return found
        told = f"{found.said} | before: [{code}] {said}"
        return Finding(name=name, reached=found.reached, faults=found.faults, said=told)

    def _powerless(self, moment: int, survival: Survival, seed: int) -> Finding:
        place = self._run.place
        disk = Disk(place.repo, place.untouched, self._run.control.log)
        for line in self._lines[:moment]:
            disk.do(line)
        place.fresh()
        shutil.rmtree(place.repo)
        disk.write(place.repo, survival, seed)
        last = self._lines[moment - 1]
        name = f"{survival} after {moment} {last.what} {short(last.path, place.repo)}"
        return self._judged(name, reached=True, faults=self._touched())

    def _judged(self, name: str, *, reached: bool, faults: list[str]) -> Finding:
        """Call it until it comes to its end, and judge that."""
        self._run.control.order(Mode.COUNT)
        calls, wrong, said = 0, ["never called"], ""
        while wrong and calls < _CALLS:
            calls += 1
            code, said = self._called(), self._said()
            wrong = list(self.wrong())
            if code not in _CODES:
                wrong.append(f"called again, it ends with {code}")
            wrong += _defects(said)
        if calls > 1:
            faults = [*faults, f"it took {calls} more calls"]
        faults = [*faults, *wrong]
        return Finding(
            name=name, reached=reached, faults=tuple(faults), said=said if faults else ""
        )

    def wrong(self) -> Iterator[str]:
        """All that is not as it would be unbroken."""
        try:
            now = picture(self._run.place)
            for name in sorted(self._wanted.keys() | now.keys()):
                was, found = self._wanted.get(name), now.get(name)
                if was != found:
                    yield f"{name} is {found!r:.300}, not {was!r:.300}"
            yield from litter(self._run.place)
            yield from self._touched()
            yield from self._forgotten()
        except (subprocess.CalledProcessError, WindlassError, OSError, ValueError) as error:
            told = getattr(error, "stderr", "") or ""
            yield f"it cannot even be judged: {error} {told}".rstrip()
        project = Project(self._run.place.repo, self._run.place.environment)
        deadline = time.monotonic() + PATIENCE
        while (running := left_running(project)) and time.monotonic() < deadline:
            time.sleep(0.02)
        if running:
            yield f"left running: {running}"

    def _forgotten(self) -> Iterator[str]:
        """What was on record before must be on record still."""
        now = self._recorded()
        if not self.scene.rebuilds and now[: len(self._before)] != self._before:
            yield f"the journal had {len(self._before)} facts, and now has {len(now)} others"

    def _touched(self) -> list[str]:
        """What was done to the user's own work."""
        now = self._own()
        touched = [path for path in _PATHS if now[path] != self._mine[path]]
        return [f"the user's {path} was touched" for path in touched]

    def _own(self) -> dict[str, str | None]:
        found = user_files(self._run.place)
        return {path: found.get(path) for path in _PATHS}

    def _recorded(self) -> list[bytes]:
        place = self._run.place
        entries = Project(place.repo, place.environment).journals.entries(PLAN_ID)
        return [codec.encode(entry.event) for entry in entries]

    def _called(self) -> int:
        return self._run.call(*self.scene.argv)

    def _said(self) -> str:
        return self._run.place.said.read_text(encoding="utf-8", errors="replace")


Series = Callable[[CommandStand, Share], Iterator[Finding]]

KINDS: MappingProxyType[str, Series] = MappingProxyType(
    {
        "killed": CommandStand.killed,
        "killed twice": CommandStand.killed_twice,
        "git killed": CommandStand.git_killed,
        "power lost": CommandStand.powerless,
        "disk": CommandStand.failing,
    }
)
"""What is done to a command, by the name people see."""


class CommandStands:
    """Several places at once, in each of them one scene after the other; ended by `with`."""

    def __init__(self, workers: int, *, level: str) -> None:
        self._workers = workers
        self._level = level
        self._held = ExitStack()
        self._places: list[Rehearsals] = []

    def __enter__(self) -> Self:
        """Make the places."""
        top = self._held.enter_context(quiet_folder())
        for i in range(self._workers):
            made = Rehearsals.at(top / str(i), level=self._level)
            self._places.append(self._held.enter_context(made))
        return self

    def __exit__(self, *_: object) -> None:
        """End all of them."""
        self._held.close()

    @property
    def sees_all(self) -> bool:
        """Whether the calls of git are seen too."""
        return all(place.sees_all for place in self._places)

    def set_up(self, scene: Scene) -> list[CommandStand]:
        """Make the scene in every place."""
        with ThreadPoolExecutor(self._workers) as pool:
            working = [pool.submit(CommandStand, place, scene) for place in self._places]
            return [each.result() for each in working]


def _defects(said: str) -> list[str]:
    return ["a traceback"] if "Traceback" in said or "a bug in Windlass" in said else []
