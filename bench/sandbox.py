"""What walls cost: a command in a box, and an agent's box, beside the same command without any.

Both go through what runs every check: started, attended, its output taken, all it left ended. They
take turns, so that a noisy machine is noisy for both. The floor is the command by itself, started
as plainly as Python can.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anyio
from msgspec.structs import replace

from overhead import ENVIRONMENT, make_repository
from windlass.adapters.sandbox import Box, Sandbox
from windlass.adapters.sandbox import commands as processes
from windlass.app.wiring import Project
from windlass.core.settings import SandboxSettings, Settings

BOUND, AGENT_BOUND, INNER_BOUND = 15.0, 60.0, 15.0
"""Milliseconds: a command above a bare one, an agent's start above a command, and what a Coach runs
above a command."""
COMMAND = ("/bin/sh", "-c", "true")


def floor(folder: Path) -> float:
    begin = time.perf_counter()
    subprocess.run(COMMAND, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - begin


async def boxed(sandbox: Sandbox, folder: Path, *, agent: bool = False) -> float:
    box = Box(checkout=folder, network=False, env={"CI": "true"})
    if agent:
        box = replace(box, network=True, runs="sealed")
    begin = time.perf_counter()
    done = await processes.run(sandbox, box, COMMAND, timeout=60, tail=100)
    spent = time.perf_counter() - begin
    assert done.exit_code == 0, done.output
    return spent


async def inner(sandbox: Sandbox, folder: Path) -> float:
    """One command of an agent's, started as its program does: ten, less the box around them."""
    box = Box(checkout=folder, network=False, runs="sealed")
    launch = " ".join((*sandbox.launcher, "true"))
    begin = time.perf_counter()
    script = ("/bin/sh", "-c", f"for i in 1 2 3 4 5 6 7 8 9 10; do {launch}; done")
    done = await processes.run(sandbox, box, script, timeout=60, tail=100)
    spent = time.perf_counter() - begin
    assert done.exit_code == 0, done.output
    return spent / 10


async def measure(
    bare: Sandbox, walled: Sandbox, folder: Path, rounds: int
) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {
        name: [] for name in ("floor", "bare", "sandboxed", "agent's box", "in an agent")
    }
    for number in range(rounds + 3):
        row = (
            floor(folder),
            await boxed(bare, folder),
            await boxed(walled, folder),
            await boxed(walled, folder, agent=True),
            await inner(walled, folder),
        )
        if number >= 3:  # noqa: PLR2004  the first ones look at the host and fill caches
            for values, spent in zip(taken.values(), row, strict=True):
                values.append(spent * 1000)
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description="A sandboxed command beside a bare one")
    parser.add_argument("--rounds", type=int, default=60)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="windlass-bench-") as root:
        project = Project(make_repository(Path(root), 10), ENVIRONMENT)

        def sandbox(level: str) -> Sandbox:
            asked = SandboxSettings(level=level)  # pyright: ignore[reportArgumentType]
            return project.walls.sandbox(replace(Settings(), sandbox=asked), "bench")

        checkout = Path(root) / "checkout"
        checkout.mkdir()
        walled = sandbox("auto")
        taken = anyio.run(measure, sandbox("none"), walled, checkout, args.rounds)
    shown: tuple[tuple[str, Callable[[list[float]], float]], ...] = (
        ("median", statistics.median),
        ("p90", lambda values: statistics.quantiles(values, n=10)[-1]),
        ("best", min),
    )
    print(f"one command, {args.rounds} rounds, level {walled.level}")
    print(f"{'':12}" + "".join(f"{name:>12}" for name, _ in shown))
    for name, values in taken.items():
        print(f"{name:12}" + "".join(f"{measured(values):>9.1f} ms" for _, measured in shown))
    middle = {name: statistics.median(values) for name, values in taken.items()}
    held = True
    for name, below, bound in (
        ("sandboxed", "bare", BOUND),
        ("agent's box", "sandboxed", AGENT_BOUND),
        ("in an agent", "floor", INNER_BOUND),
    ):
        above = middle[name] - middle[below]
        held = held and above <= bound
        word = "held" if above <= bound else "BROKEN"
        print(f"{name} above {below}: {above:.1f} ms, bound {bound:g} ms: {word}")
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
