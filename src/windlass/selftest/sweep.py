"""Sweeps: the story is run again and again, hit at one point after the other, and judged each time.

Law: after a fault there is `windlass resume` and nothing else; nobody mends anything by hand.
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

RESUMES = 3
"""How many times one may have to say `windlass resume` after a fault that was cured."""

ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS)
"""How a disk fails."""

FURTHER_BACK = (0, 30, 300)
"""How many calls before its point a run is hit that came to its end before it: on a busy machine
two runs differ by more calls than on a quiet one."""

PAUSED = 4
"""The exit code of a run that can be resumed."""


class Finding(Struct, frozen=True, kw_only=True):
    """One point, and what came of it."""

    name: str
    reached: bool
    """Whether the fault happened at all: the calls of two runs are not quite the same."""
    faults: tuple[str, ...] = ()
    said: str = ""


class Sweep:
    """Points of one kind in one place."""

    def __init__(self, rehearsals: Rehearsals) -> None:
        self._run = rehearsals
        self.judge = Judge(rehearsals.place)
        self.calls = self._count()
        """How many points an unbroken run has."""

    def _count(self) -> int:
        self._run.control.order(Mode.COUNT)
        code = self._run.run()
        faults = self.judge.faults(breaks=0)
        if code != 0 or faults:
            raise AssertionError(f"unbroken, it ends with {code}: {faults}; {self._said()}")
        return self._run.control.hit().count

    def killed(self, *points: int) -> Finding:
        """Killed at the first point, and again at the next ones in the resumes that follow.

        Two runs are not call for call the same. Where one comes to its end before its point, all is
        done again, with a point that is within the calls that were seen.
        """
        names, seen = self._broken(points)
        for back in FURTHER_BACK:
            if seen is None:
                break
            at = len(names) - 1
            in_resume = points[at] % max(1, seen) + 1
            near = in_resume if at else self._near_the_end(points[0], seen, back)
            names, seen = self._broken((*points[:at], near, *points[at + 1 :]))
        return self.resumed(" + ".join(names), reached=seen is None, breaks=len(names))

    def _broken(self, points: tuple[int, ...]) -> tuple[list[str], int | None]:
        """Where it was killed, and how many calls a run made that ended before its point."""
        self._run.place.fresh()
        names: list[str] = []
        for at in points:
            self._run.control.order(Mode.KILL, at)
            code = self._started("resume" if names else None)
            hit = self._run.control.hit()
            names.append(f"{at} {hit.what} {short(hit.where, self._run.place.repo)}")
            if code != -signal.SIGKILL:
                return names, hit.count
        return names, None

    def failed(self, at: int, error: int, mode: Mode) -> Finding:
        """One call fails, or all from one on; then the cause is cured, and the run resumed."""
        wanted = at
        code, hit = self._failing(at, error, mode)
        for back in FURTHER_BACK:
            if hit.fired:
                break
            at = self._near_the_end(wanted, hit.count, back)
            code, hit = self._failing(at, error, mode)
        said = self._said()
        kind = "" if mode is Mode.FAIL else " and on"
        where = short(hit.where, self._run.place.repo)
        name = f"{errno.errorcode[error]} at {at}{kind} {hit.what} {where}"
        wrong = tuple(misspoken(code, said, error, mode)) if hit.fired else ()
        # Also where it came to its end: its state files may be behind, and `resume` writes them.
        found = self.resumed(name, reached=hit.fired > 0, breaks=1)
        told = f"{found.said} | before: [{code}] {said}" if found.faults or wrong else ""
        return Finding(name=name, reached=found.reached, faults=(*wrong, *found.faults), said=told)

    def _failing(self, at: int, error: int, mode: Mode) -> tuple[int, Hit]:
        self._run.place.fresh()
        self._run.control.order(mode, at, error=error)
        return self._started(None), self._run.control.hit()

    def _near_the_end(self, at: int, seen: int, back: int) -> int:
        """That point, or a few calls before it, in a run of so many calls."""
        return max(1, seen - (self.calls - at) - back)

    def resumed(self, name: str, *, reached: bool, breaks: int, ledger: bool = True) -> Finding:
        """Say `resume` until it is done, and judge."""
        self._run.control.order(Mode.COUNT)
        code, resumes = -1, 0
        while code != 0 and resumes < RESUMES:
            resumes += 1
            code = self._started("resume")
            if "there is nothing to resume" in self._said():
                code = 0  # it was done, and told so, before the kill
        said = self._said()
        faults = (
            list(self.judge.faults(breaks=breaks, ledger=ledger))
            if code == 0
            else [f"resume gives {code}"]
        )
        if resumes > 1:
            faults.append(f"it took {resumes} resumes")
        if "Traceback" in said or "a bug in Windlass" in said:
            faults.append("a traceback")
        return Finding(
            name=name, reached=reached, faults=tuple(faults), said=said if faults else ""
        )

    def _started(self, choice: str | None) -> int:
        """Run or resume; a run that was killed before its first record is run as any new one."""
        code = self._run.run(choice)
        if choice == "resume" and code == 2 and "was never run here" in self._said():  # noqa: PLR2004
            code = self._run.run(None)
        return code

    def _said(self) -> str:
        return self._run.place.said.read_text(encoding="utf-8", errors="replace")


def misspoken(code: int, said: str, error: int, mode: Mode) -> Iterator[str]:
    """What is wrong with how a run ended that could not write."""
    if code not in {0, PAUSED}:
        yield f"a disk that fails gives {code}, not {PAUSED}"
    if code != PAUSED:
        return
    if not ("windlass resume plan.md" in said or "windlass run plan.md" in said):
        yield "it does not say how to go on"
    words = [disk_error_name(error)]
    if mode is Mode.FAIL:
        # Whoever met it may have no number to tell, and by now the disk is well again: then it is
        # the kind of trouble that SQLite has, or its own words or git's.
        words += [disk_error_name(number) for number in ERRORS]
        words += [" failed with ", "unable to open database file"]
    if not any(word in said for word in words):
        yield f"it does not say that {disk_error_name(error)}"


def short(path: str, root: Path) -> str:
    """A path as it is told: without the folder that all of them share."""
    return path.removeprefix(f"{root}/")


def spread(calls: int, count: int, seed: int = 0) -> list[int]:
    """So many points over all calls, evenly but not in step; all where there are no more."""
    if count >= calls:
        return list(range(1, calls + 1))
    dice = random.Random(seed)  # noqa: S311  nothing is secret about it
    width = calls / count
    return [min(calls, int(i * width + dice.random() * width) + 1) for i in range(count)]


def doubles(calls: int, count: int, seed: int = 0) -> list[tuple[int, int]]:
    """So many pairs: a point in the run, and one in the resume that follows it."""
    dice = random.Random(seed)  # noqa: S311
    return [
        (first, dice.randint(1, max(60, int((calls - first) * 0.7))))
        for first in spread(calls, count, seed)
    ]
