"""Sweeps: the story is run again and again, with a fault at another point each time, and judged.

Law: after a fault there is only `windlass resume`; nothing is repaired by hand.
"""

import errno
import random
import signal
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from windlass.app.wiring.rehearsal import disk_error_name
from windlass.selftest.judge import Judge
from windlass.selftest.place import Rehearsals
from windlass.testing.faults.shim import Hit, Mode
from windlass.views.outcome import Exit

RESUMES = 3
"""How many times `windlass resume` is tried after a fault."""

ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS)
"""How a disk fails."""

FURTHER_BACK = (0, 30, 300)
"""If a run ends before its point, it is repeated with a point this many calls earlier: on a busy
machine two runs differ by more calls than on a quiet one."""


class Finding(Struct, frozen=True, kw_only=True):
    """One point, and what was wrong after the fault there."""

    name: str
    reached: bool
    """Whether the fault happened at all: the calls of two runs differ slightly."""
    faults: tuple[str, ...] = ()
    output: str = ""
    """The messages of Windlass, if anything is wrong."""


class Sweep:
    """Hits runs in one place."""

    def __init__(self, rehearsals: Rehearsals) -> None:
        self._run = rehearsals
        self.judge = Judge(rehearsals.place)
        self.calls = self._count()
        """The number of points in a run without faults."""

    def _count(self) -> int:
        self._run.control.order(Mode.COUNT)
        code = self._run.run()
        faults = self.judge.faults(breaks=0)
        if code != 0 or faults:
            output = self._output()
            raise AssertionError(f"without a fault, it ends with {code}: {faults}; {output}")
        return self._run.control.hit().count

    def kill(self, *points: int) -> Finding:
        """Kill a run at the first point and its resumes at the following ones; resume and judge.

        Two runs do not make exactly the same calls. If a run ends before its point, everything is
        repeated with a point within the calls that it made.
        """
        names, seen = self._kill_at(points)
        for back in FURTHER_BACK:
            if seen is None:
                break
            at = len(names) - 1
            in_resume = points[at] % max(1, seen) + 1
            near = in_resume if at else self._near_the_end(points[0], seen, back)
            names, seen = self._kill_at((*points[:at], near, *points[at + 1 :]))
        return self.resume(" + ".join(names), reached=seen is None, breaks=len(names))

    def _kill_at(self, points: tuple[int, ...]) -> tuple[list[str], int | None]:
        """Where the runs were killed; the number of calls if one ended before its point."""
        self._run.place.reset()
        names: list[str] = []
        for at in points:
            self._run.control.order(Mode.KILL, at)
            code = self._start("resume" if names else None)
            hit = self._run.control.hit()
            names.append(f"{at} {hit.what} {short(hit.where, self._run.place.repo)}")
            if code != -signal.SIGKILL:
                return names, hit.count
        return names, None

    def fail(self, at: int, error: int, mode: Mode) -> Finding:
        """Let one call fail, or all from one on; then end the fault, resume and judge."""
        wanted = at
        code, hit = self._fail_at(at, error, mode)
        for back in FURTHER_BACK:
            if hit.fired:
                break
            at = self._near_the_end(wanted, hit.count, back)
            code, hit = self._fail_at(at, error, mode)
        output = self._output()
        kind = "" if mode is Mode.FAIL else " and on"
        where = short(hit.where, self._run.place.repo)
        name = f"{errno.errorcode[error]} at {at}{kind} {hit.what} {where}"
        wrong = tuple(disk_error_faults(code, output, error, mode)) if hit.fired else ()
        # Even if the run completed: its state files may be behind, and `resume` writes them.
        found = self.resume(name, reached=hit.fired > 0, breaks=1)
        faults = (*wrong, *found.faults)
        both = f"{found.output} | before: [{code}] {output}" if faults else ""
        return Finding(name=name, reached=found.reached, faults=faults, output=both)

    def _fail_at(self, at: int, error: int, mode: Mode) -> tuple[int, Hit]:
        self._run.place.reset()
        self._run.control.order(mode, at, error=error)
        return self._start(None), self._run.control.hit()

    def _near_the_end(self, at: int, seen: int, back: int) -> int:
        """The point at the same distance from the end of a run of `seen` calls, or earlier."""
        return max(1, seen - (self.calls - at) - back)

    def resume(self, name: str, *, reached: bool, breaks: int, ledger: bool = True) -> Finding:
        """Call `windlass resume` until the run is complete, and judge it."""
        self._run.control.order(Mode.COUNT)
        code, resumes = -1, 0
        while code != 0 and resumes < RESUMES:
            resumes += 1
            code = self._start("resume")
            if "there is nothing to resume" in self._output():
                code = 0  # the run was complete before the kill, and had reported it
        output = self._output()
        faults = (
            list(self.judge.faults(breaks=breaks, ledger=ledger))
            if code == 0
            else [f"resume gives {code}"]
        )
        if resumes > 1:
            faults.append(f"it took {resumes} resumes")
        faults += tracebacks(output)
        return Finding(
            name=name, reached=reached, faults=tuple(faults), output=output if faults else ""
        )

    def _start(self, choice: str | None) -> int:
        """Run or resume; a run that was killed before its first fact is started as a new one."""
        code = self._run.run(choice)
        if choice == "resume" and code == Exit.BAD_INPUT and "was never run here" in self._output():
            code = self._run.run(None)
        return code

    def _output(self) -> str:
        return self._run.place.read_output()


def tracebacks(output: str) -> list[str]:
    """A fault if Windlass failed with a traceback."""
    return ["a traceback"] if "Traceback" in output or "a bug in Windlass" in output else []


def disk_error_faults(code: int, output: str, error: int, mode: Mode) -> Iterator[str]:
    """What is wrong with the end of a run that could not write."""
    if code not in {0, Exit.STOPPED}:
        yield f"a disk that fails gives {code}, not {Exit.STOPPED}"
    if code != Exit.STOPPED:
        return
    if not ("windlass resume plan.md" in output or "windlass run plan.md" in output):
        yield "it does not say how to continue"
    words = [disk_error_name(error)]
    if mode is Mode.FAIL:
        # The error has passed, and SQLite or git may not have kept its number: then the message
        # names the error class that SQLite reports, or quotes SQLite or git.
        words += [disk_error_name(number) for number in ERRORS]
        words += [" failed with ", "unable to open database file"]
    if not any(word in output for word in words):
        yield f"it does not say that {disk_error_name(error)}"


def short(path: str, root: Path) -> str:
    """A path relative to the root, where it is below it."""
    return path.removeprefix(f"{root}/")


def spread(calls: int, count: int, seed: int = 0) -> list[int]:
    """`count` points spread over all calls, one at random in each interval; at most all calls."""
    if count >= calls:
        return list(range(1, calls + 1))
    dice = random.Random(seed)  # noqa: S311  no secret depends on it
    width = calls / count
    return [min(calls, int(i * width + dice.random() * width) + 1) for i in range(count)]


def doubles(calls: int, count: int, seed: int = 0) -> list[tuple[int, int]]:
    """`count` pairs: a point in the run, and one in the resume after it."""
    dice = random.Random(seed)  # noqa: S311
    return [
        (first, dice.randint(1, max(60, int((calls - first) * 0.7))))
        for first in spread(calls, count, seed)
    ]
