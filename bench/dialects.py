"""How long a long plan takes to load, against the Markdown parser alone on the same text.

And what keeping its state files costs a run, against the same run without them.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anyio
from markdown_it import MarkdownIt

from windlass.adapters.projections import Projections, Shown
from windlass.core.events import model as e
from windlass.core.settings import Settings
from windlass.core.state import RunState
from windlass.formats import load, project
from windlass.runner import Ports, Runner, Session
from windlass.testing.journal import MemoryJournal
from windlass.testing.memory import (
    MemoryAgent,
    MemoryChecks,
    MemoryInbox,
    MemoryRepository,
    VirtualClock,
    no_signals,
)

LOAD_BOUND = 5.0
RUN_BOUND = 1.1
TASKS, ROUNDS = 2000, 5
RUN_TASKS, RUN_ROUNDS = 1000, 3
BUDGET = 4.5
"""Enough for three hundred tasks of the memory agent; the rest of the plan is carried along."""


def plan_text(tasks: int) -> str:
    body = (
        "**File:** `src/part.py`\n**Checks:** `pytest -q`\n\nSome words on what to do.\n\n"
        "**Acceptance Criteria:**\n- [ ] it works\n- [ ] a test proves it\n"
    )
    sections = (f"## Task {i}: Part\n\n**Depends on:** none\n{body}" for i in range(tasks))
    return "# Milestone: Long\n\n" + "\n".join(sections)


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def loading() -> float:
    text, parser = plan_text(TASKS), MarkdownIt("commonmark")
    # Each round has a text of its own, for a text just read is remembered.
    texts = [f"{text}\nRound {number}.\n" for number in range(ROUNDS)]
    pairs = [
        (seconds(lambda: parser.parse(each)), seconds(lambda: load("plan.md", each)))  # noqa: B023
        for each in texts
    ]
    ratio = statistics.median(mine / its for its, mine in pairs)
    print(f"loading a plan of {TASKS} tasks, {ROUNDS} rounds")
    print(f"{'the Markdown parser alone':28}{statistics.median(p for p, _ in pairs):>8.2f} s")
    print(f"{'windlass, to a valid plan':28}{statistics.median(m for _, m in pairs):>8.2f} s")
    print(f"{'ratio':28}{ratio:>8.2f}   bound {LOAD_BOUND}: {held(ratio, LOAD_BOUND)}")
    return ratio


def _play(n: int, _turn: int, files: dict[str, str]) -> None:
    files[f"{n}"] = "done"


def run(folder: Path | None) -> float:
    """A run until its budget is used up, with the state file kept in the folder or not."""
    plan = load("plan.md", plan_text(RUN_TASKS))
    repository = MemoryRepository({"README": "hello"})
    plays = {task.id: _play for task in plan.tasks}
    ports = Ports(
        agent=MemoryAgent(repository, plays),
        repository=repository,
        checks=MemoryChecks(repository, lambda _command, _files: True),
        clock=VirtualClock(),
        inbox=MemoryInbox(),
        watch=lambda _activity: None,
        signals=no_signals,
    )

    def render(state: RunState, _seq: int) -> dict[Path, Shown]:
        made = project(state)
        return {(folder or Path()) / path: Shown(text) for path, text in made.items()}

    projections = Projections(
        render,
        inside=folder or Path(),
        memory=(folder or Path()) / "memory.json",
        notice=lambda _text: None,
    )

    def observe(entry: e.Entry, state: RunState) -> None:
        if folder is not None:
            projections.show(state, entry.seq)

    async def whole() -> None:
        session = Session(MemoryJournal())
        session.observe(observe)
        runner = Runner(ports, session)
        first = e.RunStarted(
            at=ports.clock.now(),
            run="r",
            plan=plan,
            settings=Settings(checks=("test",), agents=8, max_cost=BUDGET),
            base=repository.base,
            base_branch="main",
            sandbox="none",
            version="0",
        )
        async with anyio.create_task_group() as group:
            if folder is not None:
                group.start_soon(projections.keep)
            await runner.run(first)
            group.cancel_scope.cancel()

    return seconds(lambda: anyio.run(whole))


def keeping() -> float:
    pairs: list[tuple[float, float]] = []
    for _ in range(RUN_ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            pairs.append((run(None), run(Path(folder))))
    ratio = statistics.median(kept / bare for bare, kept in pairs)
    print(f"\nstate files of {RUN_TASKS} tasks kept during a run, {RUN_ROUNDS} rounds")
    print(f"{'without':28}{statistics.median(b for b, _ in pairs):>8.2f} s")
    print(f"{'with':28}{statistics.median(k for _, k in pairs):>8.2f} s")
    print(f"{'ratio':28}{ratio:>8.2f}   bound {RUN_BOUND}: {held(ratio, RUN_BOUND)}")
    return ratio


def held(ratio: float, bound: float) -> str:
    return "held" if ratio <= bound else "BROKEN"


def main() -> int:
    return int(loading() > LOAD_BOUND) | int(keeping() > RUN_BOUND)


if __name__ == "__main__":
    sys.exit(main())
