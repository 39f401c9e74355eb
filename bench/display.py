"""What the live display costs: a run of 200 tasks that do nothing, with it and with --quiet.

Everything but the agents is real: git, the sandbox, the journal, state files. The display paints
onto a pseudo-terminal whose other end is read as a terminal emulator would. Turn about, so that a
noisy machine is noisy for both; and because a wall clock says little on a machine that others use
too, the CPU time that Windlass itself took is shown beside it.
"""

import argparse
import os
import pty
import statistics
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

import anyio
from msgspec.structs import replace

from overhead import ENVIRONMENT, DoNothing, make_repository
from windlass.app.screen import Screen
from windlass.app.wiring import Project, World, now, started
from windlass.cli.screens.live import LiveScreen
from windlass.cli.screens.plain import PlainScreen
from windlass.core.plan import Plan, Task
from windlass.core.settings import Settings

BOUND = 1.1
SIZE = (40, 100)
"""Rows and columns of the terminal."""


class Terminal:
    """A pseudo-terminal, and somebody who reads what is painted on it."""

    def __init__(self) -> None:
        self._far, near = pty.openpty()
        termios.tcsetwinsize(near, SIZE)
        self.stream = os.fdopen(near, "w", encoding="utf-8")
        self.read = 0
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        while True:
            try:
                self.read += len(os.read(self._far, 65536))
            except OSError:
                return

    def close(self) -> None:
        """Hang up."""
        self.stream.close()
        self._reader.join()
        os.close(self._far)


def run(repo: Path, tasks: int, agents: int, label: str, screen: Screen) -> tuple[float, float]:
    """Seconds of a whole run that is shown there: by the wall clock, and of our own CPU."""
    plan = Plan(
        id=f"bench-{label}",
        title="Bench",
        dialect="native",
        path="bench.md",
        tasks=tuple(Task(id=f"t{i}", title=f"Task {i}") for i in range(tasks)),
    )
    settings = replace(Settings(), agents=agents)
    project = Project(repo, ENVIRONMENT)
    with project.journals.session(plan.id) as session:
        world = World(project, plan.id, label, settings, session, agent=DoNothing())
        first = started(label, plan, settings, project.git.base(None, plan.id), world.sandbox.level)
        begin, worked = time.monotonic(), time.process_time()
        with screen:
            ended = anyio.run(
                lambda: world.run(
                    (first,),
                    observe=screen.entry,
                    watch=screen.activity,
                    beside=screen.keep,
                )
            )
        spent = time.monotonic() - begin, time.process_time() - worked
    assert len(ended.merged) == tasks, ended.reason
    return spent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--agents", type=int, default=3)
    args = parser.parse_args()
    quiet: list[tuple[float, float]] = []
    live: list[tuple[float, float]] = []
    painted = 0
    with tempfile.TemporaryDirectory(prefix="windlass-bench-") as root:
        repo = make_repository(Path(root), 20)
        for i in range(args.rounds):
            silent = PlainScreen(sys.stderr, now=now, quiet=True)
            quiet.append(run(repo, args.tasks, args.agents, f"q{i}", silent))
            terminal = Terminal()
            shown = LiveScreen(terminal.stream, now=now, colour=True)
            live.append(run(repo, args.tasks, args.agents, f"l{i}", shown))
            terminal.close()
            painted = terminal.read
    pairs = list(zip(live, quiet, strict=True))
    wall = statistics.median(a[0] / b[0] for a, b in pairs)
    # What the display adds is its CPU: it waits for nothing.
    added = statistics.median((a[1] - b[1]) / b[0] for a, b in pairs)
    print(f"the live display, {args.rounds} rounds of {args.tasks} tasks, {args.agents} agents")
    print(f"{'':12}{'wall':>11}{'own CPU':>11}")
    for name, values in (("--quiet", quiet), ("live", live)):
        shown_as = (statistics.median(each) for each in zip(*values, strict=True))
        print(f"{name:12}" + "".join(f"{seconds:>9.2f} s" for seconds in shown_as))
    print(f"{'painted':12}{painted / 1e3:>8.0f} kB")
    print(f"{'wall ratio':12}{wall:>11.2f}")
    print(f"{'1 + CPU added ÷ wall':24}{1 + added:>8.3f}")
    held = painted > 0 and wall <= BOUND
    print(f"bound {BOUND}: {'held' if held else 'BROKEN'}")
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
