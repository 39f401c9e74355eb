"""Overhead per task with agents that do nothing, against the bare git and fsync it stands on.

Three generated repositories: small (100 files), as large as Django's (7,000), and 30,000 files. In
each, turn about so that a noisy machine is noisy for all: the floor; Windlass with its pool of used
checkouts shut (fresh); Windlass as it is (warm). One agent, one check (`true`), a Coach that
approves.

The floor is what any tool must do that verifies a task, gives its judges checkouts of their own and
survives a power loss, in the cheapest commands there are, one after the other:
- for the run: the base pinned, a checkout of it, the check there, and the checkout removed;
- a workspace: its start pinned, `read-tree -u` into an empty folder (the Player writes a file);
- a snapshot: `add`, `write-tree`, `commit-tree`, `update-ref`, and `rev-list --objects` as the
  proof that a gc beside it took nothing;
- a checkout for the check, the check in the same sandbox, and the checkout removed;
- a checkout for the Coach, the diff it is shown, its verdict kept (`hash-object`, `update-ref`),
  and the checkout removed;
- a merge: `merge-tree`, `commit-tree`, `update-ref`, the same proof, and the tip and its branch
  moved in one `update-ref`; the workspace removed;
- a journal: 7 appends, each with its fdatasync, as many as a run makes for such a task.
Objects are synced as Windlass has it (`core.fsync=committed`). Not in the floor: `.git` folders for
checkouts, a lock, state files, activity, hardening against hostile trees, and Python's asyncio.

Below, the time to make one checkout of another commit, from the pool and fresh.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path, PurePath

import anyio
from msgspec import Struct

from surroundings import DURABLE, ENVIRONMENT
from windlass.adapters.checks.setup_cache import SetupCache
from windlass.adapters.git import pool
from windlass.adapters.git.layout import Folders, Refs
from windlass.adapters.git.repository import GitRepository
from windlass.adapters.git.store import Store
from windlass.adapters.sandbox import Box
from windlass.app.wiring import Project, World, started
from windlass.core.events.model import Entry
from windlass.core.plan import Plan, Task
from windlass.core.settings import SandboxSettings, Settings, WorkspaceSettings
from windlass.core.state import RunState
from windlass.ports import Brief, Report, Watch
from windlass.testing.agents import approval

BOUND = 1.3
"""Windlass ÷ floor, per task, fresh and warm."""
WARM = 0.5
"""A checkout from the pool ÷ a fresh one, where there is anything to gain."""
APPENDS = 7


class Size(Struct, frozen=True):
    """A repository, and how much of it is measured."""

    name: str
    files: int
    tasks: int
    rounds: int
    gains: bool
    """Whether a checkout is large enough for a pool to gain by."""


SIZES = (
    Size("small", 100, 20, 9, gains=False),
    Size("django", 7_000, 6, 3, gains=True),
    Size("large", 30_000, 4, 3, gains=True),
)


class DoNothing:
    """A Player that writes one file and a Coach that approves: what is left is Windlass itself."""

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:  # noqa: ARG002
        """Write a file of its own; as a Coach, approve."""
        if brief.role == "coach":
            return Report(answer=approval(brief))
        Path(workspace, f"{brief.task}.txt").write_text(brief.task)
        return Report(summary="done")


def git(
    repo: Path,
    *args: str,
    stdin: str | bytes = "",
    work_tree: Path | None = None,
    index: Path | None = None,
) -> str:
    environment = dict(ENVIRONMENT)
    if work_tree is not None:
        environment |= {"GIT_DIR": str(repo / ".git"), "GIT_WORK_TREE": str(work_tree)}
    if index is not None:
        environment["GIT_INDEX_FILE"] = str(index)
    done = subprocess.run(
        ["git", *DURABLE, *args],
        cwd=work_tree or repo,
        env=environment,
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


def make_repository(root: Path, files: int) -> Path:
    """Python-like files of two to five kilobytes, thirty to a folder."""
    repo = root / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    stream = [b"commit refs/heads/main\ncommitter Bench <b@example.com> 1700000000 +0000\ndata 0\n"]
    for i in range(files):
        body = b"".join(
            b"value_%d = %d  # of file %d\n" % (n, n * i, i) for n in range(60 + i % 90)
        )
        stream.append(b"M 100644 inline src/part%d/file%d.py\ndata %d\n" % (i // 30, i, len(body)))
        stream.append(body + b"\n")
    git(repo, "fast-import", "--quiet", stdin=b"".join(stream))
    git(repo, "reset", "-q", "--hard")
    git(repo, "config", "user.name", "Bench")
    git(repo, "config", "user.email", "bench@example.com")
    return repo


def floor(repo: Path, tasks: int, label: str) -> float:
    """Seconds per task of the bare commands."""
    home = repo.parent / f"floor-{label}"
    home.mkdir()
    refs = f"refs/bench/{label}"
    tip = git(repo, "rev-parse", "main")
    sandbox = Project(repo, ENVIRONMENT).walls.sandbox(settings(), "bench")
    log = os.open(home / "log", os.O_WRONLY | os.O_CREAT)
    index, branch = home / "index", f"update refs/heads/bench/{label}"

    def checkout(commit: str) -> Path:
        index.unlink(missing_ok=True)
        (made := home / "checkout").mkdir()
        git(repo, "read-tree", "-u", "--reset", commit, work_tree=made, index=index)
        return made

    def check(commit: str) -> None:
        box = Box(checkout=checkout(commit), network=False)
        with sandbox.entered(box, ["/bin/sh", "-c", "true"]) as entry:
            subprocess.run(entry.argv, env=entry.env, pass_fds=entry.inherited, check=True)
        shutil.rmtree(box.checkout)

    def task(name: str, tip: str) -> str:
        git(repo, "update-ref", f"{refs}/{name}/start", tip)
        workspace = checkout(tip)
        (workspace / f"{name}.txt").write_text("done")
        git(repo, "add", "-A", work_tree=workspace, index=index)
        tree = git(repo, "write-tree", index=index)
        commit = git(repo, "commit-tree", tree, "-p", tip, stdin="task")
        git(repo, "update-ref", f"{refs}/{name}/snapshot", commit)
        git(repo, "rev-list", "--objects", "--quiet", commit, f"^{tip}")
        workspace = workspace.rename(home / "workspace")
        check(commit)
        place = checkout(commit)
        git(repo, "diff-tree", "-r", "--stat", "--patch", tip, commit)
        blob = git(repo, "hash-object", "-w", "--stdin", stdin="approved")
        git(repo, "update-ref", f"{refs}/{name}/verdict", blob)
        shutil.rmtree(place)
        merged = git(repo, "merge-tree", "--write-tree", tip, commit)
        merge = git(repo, "commit-tree", merged, "-p", tip, "-p", commit, stdin="merge")
        git(repo, "update-ref", f"{refs}/candidate/{name}", merge)
        git(repo, "rev-list", "--objects", "--quiet", merge, f"^{tip}", f"^{commit}")
        git(repo, "update-ref", "--stdin", stdin=f"update {refs}/tip {merge}\n{branch} {merge}\n")
        for _ in range(APPENDS):
            os.write(log, b"x" * 400)
            os.fdatasync(log)
        shutil.rmtree(workspace)
        return merge

    begin = time.monotonic()
    git(repo, "update-ref", f"{refs}/base", tip)
    check(tip)
    for i in range(tasks):
        tip = task(f"t{i}", tip)
    spent = time.monotonic() - begin
    os.close(log)
    return spent / tasks


def settings() -> Settings:
    return Settings(agents=1, checks=("true",), sandbox=SandboxSettings(level="bwrap"))


def windlass(repo: Path, tasks: int, label: str) -> float:
    """Seconds per task of a whole run, one agent at a time."""
    plan = Plan(
        id=f"bench-{label}",
        title="Bench",
        dialect="native",
        path="bench.md",
        # Each after the other, as the floor has them: nothing is checked twice that is one tree.
        tasks=tuple(
            Task(id=f"t{i}", title=f"Task {i}", depends_on=(f"t{i - 1}",) if i else ())
            for i in range(tasks)
        ),
    )
    project = Project(repo, ENVIRONMENT)
    with project.journals.session(plan.id) as session:
        world = World(project, plan.id, label, settings(), session, agent=DoNothing())
        first = started(
            label, plan, settings(), project.git.base(None, plan.id), world.sandbox.level
        )
        begin = time.monotonic()
        ended = anyio.run(
            lambda: world.run((first,), observe=unheard, watch=lambda _activity: None)
        )
        spent = time.monotonic() - begin
    assert len(ended.merged) == tasks, ended.reason
    return spent / tasks


def unheard(_entry: Entry, _state: RunState) -> None:
    """Nobody looks at this run."""


def without_pool(repo: Path, tasks: int, label: str) -> float:
    """The same with every checkout made afresh."""
    most, pool.MOST = pool.MOST, 0
    try:
        return windlass(repo, tasks, label)
    finally:
        pool.MOST = most


async def checkouts(repo: Path, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds that one checkout takes to make: fresh, and from the pool, of another commit."""
    project = Project(repo, ENVIRONMENT)
    project.make_home()
    store = Store(project.origin, Folders(project.home, "checkouts"))
    store.open("")

    refs, plain = Refs("checkouts", "r"), WorkspaceSettings()
    setup = SetupCache(store, refs, project.walls.sandbox(settings(), "bench"), plain)
    repository = GitRepository(store, refs, setup=setup, settings=plain, environment=ENVIRONMENT)
    base = git(repo, "rev-parse", "main")
    other = git(repo, "for-each-ref", "--count=1", "--format=%(objectname)", "refs/bench/**/tip")
    fresh: list[float] = []
    warm: list[float] = []
    for _ in range(rounds):
        await repository.open(base)  # which empties the pool
        for times, commit in ((fresh, base), (warm, other), (warm, base)):
            begin = time.monotonic()
            async with repository.throwaways.checkout(commit, "x", then="judges"):
                times.append(time.monotonic() - begin)
    await repository.close()
    return fresh, warm


def measure(size: Size) -> bool:
    """Print one size's row; whether its bounds hold."""
    ways: dict[str, Callable[[Path, int, str], float]]
    ways = {"floor": floor, "fresh": without_pool, "warm": windlass}
    spent: dict[str, list[float]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory(prefix="windlass-bench-") as root:
        repo = make_repository(Path(root), size.files)
        for i in range(size.rounds):
            for name, way in ways.items():
                spent[name].append(way(repo, size.tasks, f"{name}{i}"))
        fresh, warm = anyio.run(checkouts, repo, size.rounds)
    ratios = {
        name: statistics.median(a / b for a, b in zip(spent[name], spent["floor"], strict=True))
        for name in ("fresh", "warm")
    }
    one = statistics.median(warm) / statistics.median(fresh)
    held = max(ratios.values()) <= BOUND and (one <= WARM or not size.gains)
    print(
        f"{size.name:8}{size.files:>7}"
        + "".join(f"{statistics.median(spent[name]) * 1000:>8.0f} ms" for name in ways)
        + f"{ratios['fresh']:>8.2f}{ratios['warm']:>8.2f}"
        + "".join(f"{statistics.median(times) * 1000:>8.0f} ms" for times in (fresh, warm))
        + f"{one:>8.2f}  {'held' if held else 'BROKEN'}",
        flush=True,
    )
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description="Overhead per task against bare git")
    parser.add_argument("sizes", nargs="*", help="which: small, django, large; all unless named")
    chosen = parser.parse_args().sizes
    print(f"{'':15}{'a task':^33}{'÷ floor':^16}{'a checkout':^22}")
    print(
        f"{'':8}{'files':>7}{'floor':>11}{'fresh':>11}{'warm':>11}{'fresh':>8}{'warm':>8}"
        f"{'fresh':>11}{'warm':>11}{'ratio':>8}"
    )
    results = [measure(size) for size in SIZES if not chosen or size.name in chosen]
    print(f"bounds: a task {BOUND} of the floor, a checkout from the pool {WARM} of a fresh one")
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
