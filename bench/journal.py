"""What a long run costs: one append early and late, and knowing again what is true.

The entries are those of a real run in a world that costs nothing: its loop, decisions and facts,
with red checks, failing agents, conflicts, waits and every request's money among them. Both
journals are real files; the same facts are appended to them turn about, each one durable, so that
a noisy disk is noisy for both. What a run is resumed with is folded from the file as `status` does.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import anyio

from idle import haul, plan_of
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.core.engine import replay
from windlass.core.events import codec
from windlass.core.events import model as e
from windlass.core.secrets import Redactor
from windlass.testing.journal import MemoryJournal

APPEND_BOUND = 1.2
FOLD_BOUND = 1.0
SMALL, LARGE = 100, 100_000
BATCH = 1_000
TASKS = 1_200
SECRETS = Redactor({"ANTHROPIC_API_KEY": "no-such-key-was-ever-given", "GH_TOKEN": "nor-this-one"})

T = TypeVar("T")


def life(tasks: int) -> list[e.Event]:
    """What happened in a run of so many tasks."""
    journal = MemoryJournal()
    luck = random.Random(7)  # noqa: S311  nothing is secret about a simulation

    async def run() -> None:
        await haul(plan_of(tasks), journal, lambda _e, _s: None, agents=4, requests=3, luck=luck)

    anyio.run(run)
    return [entry.event for entry in journal.read()]


def written(folder: Path, events: Sequence[e.Event]) -> SqliteJournal:
    """A journal of these facts, opened anew: both begin with an empty log beside the file."""
    path = folder / f"{len(events)}.db"
    with SqliteJournal.open(path, SECRETS) as journal:
        for at in range(0, len(events), BATCH):
            journal.append(events[at : at + BATCH], expected=at)
    again = SqliteJournal.open(path, SECRETS)
    for _ in again.read():
        pass  # as a run that is resumed has read it
    return again


def appends(journals: Sequence[SqliteJournal], events: Sequence[e.Event]) -> list[list[float]]:
    """Seconds that each append took, for each journal, turn about."""
    took: list[list[float]] = [[] for _ in journals]
    for i, event in enumerate(events):
        # Whoever comes second finds the disk awake, so each is second as often as the other.
        pairs = list(zip(journals, took, strict=True))
        for journal, times in pairs if i % 2 else reversed(pairs):
            expected = journal.last
            begin = time.perf_counter()
            journal.append([event], expected=expected)
            times.append(time.perf_counter() - begin)
    return took


def usual(times: Sequence[float]) -> float:
    """The mean, but for the tenth at either end: a disk has moods."""
    tenth = len(times) // 10
    return statistics.fmean(sorted(times)[tenth : len(times) - tenth])


def best(work: Callable[[], T], times: int = 3) -> tuple[float, T]:
    """The least CPU time that it takes, and what comes of it."""
    took: list[float] = []
    made: list[T] = []
    for _ in range(times):
        made.clear()
        begin = time.process_time()
        made.append(work())
        took.append(time.process_time() - begin)
    return min(took), made[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--appends", type=int, default=500)
    options = parser.parse_args()
    events = life(TASKS)
    assert len(events) >= LARGE, "the run was too short to say anything of a long one"
    kinds = Counter(type(event).__name__ for event in events)
    print(f"{len(events):,} facts of {len(kinds)} kinds, from a run of {TASKS:,} tasks")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        small, large = written(Path(folder), events[:SMALL]), written(Path(folder), events[:LARGE])
        ratio = _append_table((small, large), events[SMALL : SMALL + options.appends])
        _parts_table(events[:LARGE])
        folding = _fold_table(large, events)
    held = ratio <= APPEND_BOUND and folding <= FOLD_BOUND
    print(f"bounds {APPEND_BOUND} and {FOLD_BOUND:.0f} s: {'held' if held else 'BROKEN'}")
    return int(not held)


def _append_table(journals: Sequence[SqliteJournal], events: Sequence[e.Event]) -> float:
    took = appends(journals, events)
    print(f"\n{'one durable append':28}{'usual':>10}{'median':>10}{'p95':>10}")
    for size, times in zip((SMALL, LARGE), took, strict=True):
        figures = usual(times), statistics.median(times), statistics.quantiles(times, n=20)[-1]
        cells = "".join(f"{seconds * 1e3:>7.3f} ms" for seconds in figures)
        print(f"  to {size:>9,} entries{'':6}{cells}")
    ratio = usual(took[1]) / usual(took[0])
    print(f"  ratio {ratio:.2f}, at most {APPEND_BOUND}")
    return ratio


def _parts_table(events: Sequence[e.Event]) -> None:
    sample = events[1 : 1 + 20_000]
    payloads = [codec.encode(event) for event in sample]
    parts: dict[str, Callable[[], object]] = {
        "taking secrets out": lambda: [SECRETS.event(event) for event in sample],
        "writing it down": lambda: [codec.encode(event) for event in sample],
        "the hash": lambda: [codec.chain(codec.GENESIS, payload) for payload in payloads],
    }
    print("\nCPU of the parts of an append that do not touch the disk, each fact")
    for name, work in parts.items():
        print(f"  {name:24}{best(work)[0] / len(sample) * 1e6:>8.2f} us")


def _fold_table(journal: SqliteJournal, events: Sequence[e.Event]) -> float:
    reading, entries = best(lambda: list(journal.read()), 1)
    print(f"\n{'CPU of knowing again':28}{'all':>10}{'a fact':>12}")
    print(f"  reading{len(entries):>19,}{reading:>10.2f} s{reading / len(entries) * 1e6:>9.2f} us")
    took = 0.0
    for count in (1_000, 10_000, LARGE):
        took, _ = best(lambda count=count: replay(events[:count]))
        print(f"  folding{count:>19,}{took:>10.2f} s{took / count * 1e6:>9.2f} us")
    print(f"  folding {LARGE:,}: {took:.2f} s, at most {FOLD_BOUND:.0f}")
    return took


if __name__ == "__main__":
    sys.exit(main())
