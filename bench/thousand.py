"""A thousand tasks, sixteen agents that do nothing: no task may cost more than those before it.

The loop, the journal, the screen and the state files are the real ones; agents, checks and git are
a world that costs nothing. Agents sleep until merges keep up with them, as they do in life. CPU is
that of the whole process, state files included, for each hundred merges; memory is what the process
holds in RAM after each. The files lie in RAM too where there is a place for them: waiting for a
disk is no CPU.
"""

import argparse
import gc
import io
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import anyio
import msgspec

from idle import haul, plan_of
from windlass.adapters.clock import SystemClock
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.adapters.projections import Projections, Shown
from windlass.cli.screens.plain import PlainScreen
from windlass.core.events import model as e
from windlass.core.secrets import Redactor
from windlass.core.state import RunState
from windlass.formats import project as project_dialect
from windlass.views.progress import progress

CPU_BOUND = 1.3
MEMORY_BOUND = 1.15
"""What is true of a task that is done stays: two kilobytes of commits, checks and its review, and
its lines in the state files, whose text is held while it is written. A run that kept its facts too,
or every state it was in, would hold several times as much."""
HUNDRED = 100
SECONDS = 0.05
"""How long each agent sleeps at least."""
RAM = Path("/dev/shm")  # noqa: S108  a folder of our own is made in it


class Account:
    """CPU and memory at the end of each hundred."""

    def __init__(self) -> None:
        self.merged = 0
        self.live = 0
        """How many tasks were begun and not done at once, at most."""
        self.marks: list[tuple[float, float]] = []
        self.looking = 0.0
        """CPU that was spent on looking, which is no task's."""

    def observe(self, entry: e.Entry, state: RunState) -> None:
        """Look at the clock after each hundredth merge."""
        self.live = max(self.live, len(state.index.live) + len(state.queue))
        if isinstance(entry.event, e.TaskMerged):
            self.merged += 1
            if self.merged % HUNDRED == 0:
                spent = time.process_time()
                gc.collect()  # what only waits to be collected is not held
                self.marks.append((spent - self.looking, resident()))
                self.looking += time.process_time() - spent


class Nobody(io.StringIO):
    """A terminal that nobody looks at, and that keeps nothing."""

    def write(self, text: str) -> int:
        """Forget it."""
        return len(text)


def resident() -> float:
    """Megabytes of this process that are in RAM."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def run(folder: Path, tasks: int, stages: int) -> tuple[Account, float]:
    """A whole run, and how long the clock on the wall went meanwhile."""
    account = Account()

    def render(state: RunState, seq: int) -> Mapping[Path, Shown]:
        own = msgspec.json.format(msgspec.json.encode(progress(state, seq)), indent=2).decode()
        files = project_dialect(state)
        shown = {folder / path: Shown(text) for path, text in files.items()}
        return {folder / "state.json": Shown(own), **shown}

    projections = Projections(render, inside=folder, memory=folder / "projected.json", notice=print)
    screen = PlainScreen(Nobody(), now=SystemClock().now)

    def observe(entry: e.Entry, state: RunState) -> None:
        screen.entry(entry, state)
        projections.show(state, entry.seq)
        account.observe(entry, state)

    begin = time.monotonic()
    redactor = Redactor({"TOKEN": "no-such-token"})
    with SqliteJournal.open(folder / "journal.db", redactor) as journal:
        async with anyio.create_task_group() as group:
            group.start_soon(projections.keep)
            plan = plan_of(tasks, stages=stages)
            state = await haul(plan, journal, observe, requests=1, seconds=SECONDS)
            group.cancel_scope.cancel()
            assert state.ended is e.RunEnd.COMPLETED, state.reason
    return account, time.monotonic() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000)
    parser.add_argument("--stages", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=RAM if RAM.is_dir() else None) as folder:
        account, seconds = anyio.run(run, Path(folder), options.tasks, options.stages)
    print(
        f"{options.tasks:,} tasks, 16 agents that do nothing: {seconds:.0f} s,"
        f" {account.live} tasks live at most"
    )
    print(f"{'merged':>8}{'CPU a task':>14}{'in RAM':>12}")
    before, costs = None, list[float]()
    for i, (cpu, held) in enumerate(account.marks, start=1):
        if before is not None:
            costs.append((cpu - before) / HUNDRED)
        shown = f"{costs[-1] * 1e3:>11.2f} ms" if costs else f"{'':14}"
        print(f"{i * HUNDRED:>8,}{shown}{held:>9.1f} MB")
        before = cpu
    growth = costs[-1] / costs[0]
    memory = account.marks[-1][1] / account.marks[0][1]
    held = growth <= CPU_BOUND and memory <= MEMORY_BOUND
    # The very first hundred also pays for the start, which would hide growth.
    print(f"CPU of the last hundred ÷ the second: {growth:.2f}, at most {CPU_BOUND}")
    print(f"RAM after the last ÷ after the first: {memory:.2f}, at most {MEMORY_BOUND}")
    print(f"bounds: {'held' if held else 'BROKEN'}")
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
