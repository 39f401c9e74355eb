"""Overhead per task with an agent that does nothing, against the bare git and fsync it stands on.

The floor is what any tool would have to do for a task that must survive a power loss: a workspace
(`git clone --shared`), a snapshot (add, write-tree, commit-tree, update-ref), a merge (merge-tree,
commit-tree, update-ref) and seven fdatasyncs. It is measured in the same run, turn about with
Windlass, with the same durability settings, so that a noisy machine is noisy for both.

Windlass does all of it, with hardened calls, two pins more, a proof that every object is there, a
journal, a lock, and a state file. The floor knows no review, so what the Coach's own checkout, diff
and pinned verdict cost is measured apart and printed below.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path, PurePath

import anyio
from msgspec.structs import replace

from windlass.cli.wiring import Project, World, started
from windlass.events.model import CoachAnswered, CoachStarted, Entry
from windlass.plan import Plan, Task
from windlass.ports import Brief, Report, Watch
from windlass.settings import PolicySettings, SandboxSettings, Settings
from windlass.state import RunState
from windlass.testing.agents import approval

BOUND = 2.0
DURABLE = ("-c", "core.fsync=committed", "-c", "core.fsyncMethod=batch", "-c", "gc.auto=0")
ENVIRONMENT = {
    **os.environ,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    **{
        f"GIT_{who}_{what}": "bench@example.com"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    },
}


class DoNothing:
    """A Player that writes one file and a Coach that approves: what is left is Windlass itself."""

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:  # noqa: ARG002
        """Write a file of its own; as a Coach, approve."""
        if brief.role == "coach":
            return Report(answer=approval(brief.prompt))
        Path(workspace, f"{brief.task}.txt").write_text(brief.task)
        return Report(summary="done")


def git(repo: Path, *args: str, objects: Path | None = None, stdin: str = "") -> str:
    environment = {**ENVIRONMENT, "GIT_OBJECT_DIRECTORY": str(objects)} if objects else ENVIRONMENT
    done = subprocess.run(
        ["git", *DURABLE, *args],
        cwd=repo,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def make_repository(root: Path, files: int) -> Path:
    repo = root / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    for i in range(files):
        path = repo / f"src/part{i % 20}/file{i}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# file {i}\n" * 40)
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "base")
    git(repo, "config", "user.name", "Bench")
    git(repo, "config", "user.email", "bench@example.com")
    return repo


def floor(repo: Path, tasks: int, label: str) -> float:
    """Seconds per task of the bare commands."""
    home = repo.parent / f"floor-{label}"
    home.mkdir()
    tip = git(repo, "rev-parse", "main")
    log = os.open(home / "log", os.O_WRONLY | os.O_CREAT)
    begin = time.monotonic()
    for i in range(tasks):
        workspace = home / f"w{i}"
        git(home, "clone", "-q", "--shared", "--no-tags", str(repo), str(workspace))
        (workspace / f"t{i}.txt").write_text("done")
        # The commit has to be in the user's repository, so its objects are written there.
        git(workspace, "add", "-A", objects=repo / ".git/objects")
        tree = git(workspace, "write-tree", objects=repo / ".git/objects")
        commit = git(repo, "commit-tree", tree, "-p", tip, stdin="task")
        git(repo, "update-ref", f"refs/bench/{label}/t{i}", commit)
        merged = git(repo, "merge-tree", "--write-tree", tip, commit)
        merge = git(repo, "commit-tree", merged, "-p", tip, "-p", commit, stdin="merge")
        git(repo, "update-ref", f"refs/bench/{label}/tip", merge, tip if i else "")
        tip = merge
        for _ in range(7):
            os.write(log, b"x" * 400)
            os.fdatasync(log)
        shutil.rmtree(workspace)
    spent = time.monotonic() - begin
    os.close(log)
    return spent / tasks


def windlass(repo: Path, tasks: int, label: str) -> tuple[float, float]:
    """Seconds per task of a whole run, one agent at a time; and how many of them a review takes."""
    reviewing: list[float] = []

    def observe(entry: Entry, _state: RunState) -> None:
        if isinstance(entry.event, CoachStarted):
            reviewing.append(-entry.event.at.timestamp())
        elif isinstance(entry.event, CoachAnswered):
            reviewing.append(entry.event.at.timestamp())

    plan = Plan(
        id=f"bench-{label}",
        title="Bench",
        dialect="native",
        path="bench.md",
        tasks=tuple(Task(id=f"t{i}", title=f"Task {i}") for i in range(tasks)),
    )
    settings = replace(
        Settings(), agents=1, sandbox=SandboxSettings(level="bwrap"), policy=PolicySettings()
    )
    project = Project(repo, ENVIRONMENT)
    with project.holding(plan.id) as journal:
        world = World(project, plan.id, label, settings, journal, agent=DoNothing())
        first = started(label, plan, settings, project.base(None, plan.id), world.sandbox.level)
        begin = time.monotonic()
        ended = anyio.run(
            lambda: world.haul((first,), None, observe=observe, watch=lambda _activity: None)
        )
        spent = time.monotonic() - begin
    assert len(ended.merged) == tasks, ended.reason
    return spent / tasks, sum(reviewing) / tasks


def main() -> int:
    parser = argparse.ArgumentParser(description="Overhead per task against bare git")
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=100)
    args = parser.parse_args()
    floors: list[float] = []
    runs: list[float] = []
    reviews: list[float] = []
    with tempfile.TemporaryDirectory(prefix="windlass-bench-") as root:
        repo = make_repository(Path(root), args.files)
        for i in range(args.rounds):
            floors.append(floor(repo, args.tasks, f"r{i}"))
            run, review = windlass(repo, args.tasks, f"r{i}")
            runs.append(run - review)
            reviews.append(review)
    ratios = [run / low for run, low in zip(runs, floors, strict=True)]
    ratio = statistics.median(ratios)
    print(f"overhead per task, {args.files} files, {args.rounds} rounds of {args.tasks} tasks")
    print(f"{'':12}{'median':>12}{'best':>12}{'worst':>12}")
    for name, values in (("floor", floors), ("windlass", runs), ("+ review", reviews)):
        shown = (statistics.median(values), min(values), max(values))
        print(f"{name:12}" + "".join(f"{value * 1000:>9.1f} ms" for value in shown))
    whole = [(a + b) / low for a, b, low in zip(runs, reviews, floors, strict=True)]
    print(
        f"{'with review':12}{statistics.median(whole):>12.2f}{min(whole):>12.2f}{max(whole):>12.2f}"
    )
    print(f"{'ratio':12}{ratio:>12.2f}{min(ratios):>12.2f}{max(ratios):>12.2f}")
    print(f"bound {BOUND}: {'held' if ratio <= BOUND else 'BROKEN'}")
    return int(ratio > BOUND)


if __name__ == "__main__":
    sys.exit(main())
