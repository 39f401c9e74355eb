"""Series: a number of points with one kind of fault, shared among places that run in parallel."""

import os
import queue
import tempfile
import threading
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
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  a folder of its own is made there
"""Where syncs are free: the self-test checks that they happen, not how long they take."""


@contextmanager
def temporary_folder() -> Generator[Path]:
    """A temporary folder, in shared memory if there is any, so that syncs slow nothing else."""
    where = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="windlass-selftest-", dir=where) as made:
        yield Path(made)


class Share(Struct, frozen=True):
    """One place's part of a series: every `parts`-th point, starting with number `part`."""

    count: int
    """Points in the whole series."""
    seed: int = 0
    part: int = 0
    parts: int = 1


class RunTester:
    """Breaks runs in one place in every way; the log of power losses is made on first use."""

    def __init__(self, rehearsals: Rehearsals) -> None:
        self._rehearsals = rehearsals
        self._sweep = Sweep(rehearsals)
        self._power: PowerLoss | None = None

    @property
    def sees_all(self) -> bool:
        """Whether git's calls are seen too."""
        return self._rehearsals.sees_all

    @property
    def calls(self) -> int:
        """The number of calls that can be hit in a run without faults."""
        return self._sweep.calls

    def kill(self, share: Share) -> Iterator[Finding]:
        """Kill the run at a point, and resume it."""
        for at in part_of(spread(self._sweep.calls, share.count, share.seed), share):
            yield self._sweep.kill(at)

    def kill_twice(self, share: Share) -> Iterator[Finding]:
        """Kill the run at a point, kill its resume, and resume again."""
        for pair in part_of(doubles(self._sweep.calls, share.count, share.seed), share):
            yield self._sweep.kill(*pair)

    def lose_power(self, share: Share) -> Iterator[Finding]:
        """Discard what was not synced, and resume the run."""
        if self._power is None:
            self._power = PowerLoss(self._rehearsals, self._sweep)
        moments = enumerate(spread(self._power.moments, share.count, share.seed))
        for i, moment in part_of(list(moments), share):
            yield self._power.at(moment, SURVIVALS[i % len(SURVIVALS)], share.seed + i)

    def fail_disk(self, share: Share) -> Iterator[Finding]:
        """Make the disk full, broken or read-only, for one call or from it on.

        If all points are swept, six seeds in a row try all six faults at each point.
        """
        points = enumerate(spread(self._sweep.calls, share.count, share.seed), start=share.seed)
        for i, at in part_of(list(points), share):
            yield self._sweep.fail(at, *disk_fault(i))


def disk_fault(i: int) -> tuple[int, Mode]:
    """The error and mode at the i-th point; six points in a row have all six combinations."""
    return ERRORS[i % len(ERRORS)], MODES[i // len(ERRORS) % len(MODES)]


T = TypeVar("T")
Series = Callable[[RunTester, Share], Iterator[Finding]]

KINDS: MappingProxyType[str, Series] = MappingProxyType(
    {
        "killed": RunTester.kill,
        "killed twice": RunTester.kill_twice,
        "power lost": RunTester.lose_power,
        "disk full, failing or read-only": RunTester.fail_disk,
    }
)
"""The kinds of faults, by the name that is shown."""


class RunTesters:
    """Run testers in several places; use them with `with`."""

    def __init__(self, workers: int, *, level: str, shim: bool = True) -> None:
        self._workers = workers
        self._level = level
        self._shim = shim
        self._held = ExitStack()
        self._testers: list[RunTester] = []

    def __enter__(self) -> "RunTesters":
        """Create the places, each with a first run without faults."""
        top = self._held.enter_context(temporary_folder())
        with ThreadPoolExecutor(self._workers) as pool:
            folders = (top / str(i) for i in range(self._workers))
            self._testers = list(pool.map(self._create, folders))
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _create(self, folder: Path) -> RunTester:
        rehearsals = Rehearsals.at(folder, level=self._level, shim=self._shim)
        return RunTester(self._held.enter_context(rehearsals))

    @property
    def sees_all(self) -> bool:
        """Whether git's calls are seen too."""
        return all(tester.sees_all for tester in self._testers)

    @property
    def calls(self) -> int:
        """The number of calls that can be hit in a run."""
        return max(tester.calls for tester in self._testers)

    def sweep(self, kind: str, count: int, seed: int = 0) -> Iterator[Finding]:
        """The findings of a series, in the order in which they are made."""
        return in_parallel([partial(KINDS[kind], tester) for tester in self._testers], count, seed)


def in_parallel(
    testers: Sequence[Callable[[Share], Iterator[Finding]]], count: int, seed: int
) -> Iterator[Finding]:
    """Give each tester its share of the points; yields all findings as they are made.

    If the caller is interrupted, each tester ends after the point that it is at.
    """
    found: queue.Queue[Finding | None] = queue.Queue()
    interrupted = threading.Event()

    def work(part: int) -> None:
        try:
            for finding in testers[part](Share(count, seed, part, len(testers))):
                found.put(finding)
                if interrupted.is_set():
                    return
        finally:
            found.put(None)

    with ThreadPoolExecutor(len(testers)) as pool:
        working = [pool.submit(work, part) for part in range(len(testers))]
        try:
            for _ in working:
                while (finding := found.get()) is not None:
                    yield finding
        finally:
            interrupted.set()
        for each in working:
            each.result()


def part_of(points: list[T], share: Share) -> list[T]:
    """The points of one share."""
    return points[share.part :: share.parts]
