"""Series: so many points of one kind, shared out among places that work side by side."""

import os
import queue
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from msgspec import Struct

from windlass.selftest.place import Rehearsals
from windlass.selftest.power import PowerLoss
from windlass.selftest.sweep import ERRORS, Finding, Sweep, doubles, spread
from windlass.testing.faults.disk import SURVIVALS
from windlass.testing.faults.shim import Mode

MODES = (Mode.FAIL, Mode.FAIL_ON)
QUIET_MEMORY = Path("/dev/shm")  # noqa: S108  a folder of its own is made there
"""Where syncs cost nothing; that they are made in time is what is looked at, not how long."""


@contextmanager
def quiet_folder() -> Generator[Path]:
    """A folder for a while, where nothing else is slowed by so many syncs."""
    where = QUIET_MEMORY if os.access(QUIET_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="windlass-selftest-", dir=where) as made:
        yield Path(made)


class Share(Struct, frozen=True):
    """One place's part of a series: every so-manieth point."""

    count: int
    """Points in the whole series."""
    seed: int = 0
    part: int = 0
    parts: int = 1


class Stand:
    """One place with all that can be done in it; what is expensive is made when it is needed."""

    def __init__(self, rehearsals: Rehearsals) -> None:
        self._rehearsals = rehearsals
        self._sweep = Sweep(rehearsals)
        self._power: PowerLoss | None = None

    @property
    def sees_all(self) -> bool:
        """Whether the calls of git are seen too."""
        return self._rehearsals.sees_all

    @property
    def calls(self) -> int:
        """How many calls of an unbroken run can be hit."""
        return self._sweep.calls

    def killed(self, share: Share) -> Iterator[Finding]:
        """Killed at a point, and resumed."""
        for at in part_of(spread(self._sweep.calls, share.count, share.seed), share):
            yield self._sweep.killed(at)

    def killed_twice(self, share: Share) -> Iterator[Finding]:
        """Killed at a point, again in the resume, and resumed."""
        for pair in part_of(doubles(self._sweep.calls, share.count, share.seed), share):
            yield self._sweep.killed(*pair)

    def powerless(self, share: Share) -> Iterator[Finding]:
        """What was not synced is gone, and the run resumed."""
        if self._power is None:
            self._power = PowerLoss(self._rehearsals, self._sweep)
        moments = enumerate(spread(self._power.moments, share.count, share.seed))
        for i, moment in part_of(list(moments), share):
            yield self._power.at(moment, SURVIVALS[i % len(SURVIVALS)], share.seed + i)

    def failing(self, share: Share) -> Iterator[Finding]:
        """A full, a broken and a read-only disk, for one call or for all that follow.

        Six seeds in a row have each of the six at each point, where all points are swept.
        """
        points = enumerate(spread(self._sweep.calls, share.count, share.seed), start=share.seed)
        for i, at in part_of(list(points), share):
            yield self._sweep.failed(at, *fault(i))


def fault(i: int) -> tuple[int, Mode]:
    """What happens to the disk at the i-th point: all there is in six points, or in six seeds."""
    return ERRORS[i % len(ERRORS)], MODES[i // len(ERRORS) % len(MODES)]


T = TypeVar("T")
Series = Callable[[Stand, Share], Iterator[Finding]]

KINDS: MappingProxyType[str, Series] = MappingProxyType(
    {
        "killed": Stand.killed,
        "killed twice": Stand.killed_twice,
        "power lost": Stand.powerless,
        "disk full, failing or read-only": Stand.failing,
    }
)
"""What is swept, by the name people see."""


class Stands:
    """Several places at once; ended by `with`."""

    def __init__(self, workers: int, *, level: str, shim: bool = True) -> None:
        self._workers = workers
        self._level = level
        self._shim = shim
        self._held = ExitStack()
        self._stands: list[Stand] = []

    def __enter__(self) -> "Stands":
        """Make the places, each with an unbroken run that shows what is to be expected."""
        top = self._held.enter_context(quiet_folder())
        with ThreadPoolExecutor(self._workers) as pool:
            self._stands = list(pool.map(self._made, (top / str(i) for i in range(self._workers))))
        return self

    def __exit__(self, *_: object) -> None:
        """End all of them."""
        self._held.close()

    def _made(self, folder: Path) -> Stand:
        rehearsals = Rehearsals.at(folder, level=self._level, shim=self._shim)
        return Stand(self._held.enter_context(rehearsals))

    @property
    def sees_all(self) -> bool:
        """Whether the calls of git are seen too."""
        return all(stand.sees_all for stand in self._stands)

    @property
    def calls(self) -> int:
        """How many calls of a run can be hit."""
        return max(stand.calls for stand in self._stands)

    def sweep(self, kind: str, count: int, seed: int = 0) -> Iterator[Finding]:
        """All points of a series, as they are found."""
        return side_by_side([partial(KINDS[kind], stand) for stand in self._stands], count, seed)


def side_by_side(
    stands: Sequence[Callable[[Share], Iterator[Finding]]], count: int, seed: int
) -> Iterator[Finding]:
    """Let each stand take its share of the points; all of them, as they are found."""
    found: queue.Queue[Finding | None] = queue.Queue()

    def work(part: int) -> None:
        try:
            for finding in stands[part](Share(count, seed, part, len(stands))):
                found.put(finding)
        finally:
            found.put(None)

    with ThreadPoolExecutor(len(stands)) as pool:
        working = [pool.submit(work, part) for part in range(len(stands))]
        for _ in working:
            while (finding := found.get()) is not None:
                yield finding
        for each in working:
            each.result()


def part_of(points: list[T], share: Share) -> list[T]:
    """The points that one place has to take."""
    return points[share.part :: share.parts]
