"""What a merge costs, against the bare commands it stands on.

The floor of a merge is what any program would have to do: `merge-tree --write-tree`, `commit-tree`
and `update-ref` with compare-and-swap, each a process, with the same durability settings. Windlass
does more through its Repository port: it pins the merge as a candidate, proves that every object of
it is there, moves the tip, and lets the integration branch follow unless somebody has it.

Both merge the same commits onto tips of their own, turn about, merge by merge, in a small
repository and in one of 30,000 files, so that a noisy machine is noisy for all four.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
from msgspec import Struct
from msgspec.structs import replace

from queueing import ratio
from surroundings import DURABLE, ENVIRONMENT
from windlass.adapters.checks.setup_cache import SetupCache
from windlass.adapters.git import inspect
from windlass.adapters.git.layout import Folders, Refs
from windlass.adapters.git.repository import GitRepository
from windlass.adapters.git.store import Store
from windlass.adapters.sandbox.plain import Plain
from windlass.core.settings import WorkspaceSettings
from windlass.ports import Authorship, Merged

SMALL, LARGE = 100, 30_000
MERGES = 60
OVER_FLOOR = 1.5
OVER_SMALL = 2.0
OVER_SERIAL = 0.40
BROKEN = 0.05
A_FOLDER = 20
"""Files in each folder of a generated repository."""


def git(repo: Path, *args: str, stdin: str = "") -> str:
    """One command, as a simple program would run it."""
    done = subprocess.run(
        ["git", *DURABLE, *args],
        cwd=repo,
        env=ENVIRONMENT,
        input=stdin,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


class Generated(Struct, frozen=True):
    """A repository of so many files, and the commits to be merged, all made from its base."""

    repo: Path
    base: str
    commits: tuple[str, ...]


def generate(root: Path, files: int, merges: int) -> Generated:
    """Write it in one go; each commit changes a file of its own in a folder of its own."""
    repo = root / f"files-{files}"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    git(repo, "fast-import", "--quiet", stdin="".join(_stream(files, merges)))
    names = [f"refs/bench/{i}" for i in range(merges)]
    base, *commits = git(repo, "rev-parse", "main", *names).split()
    return Generated(repo, base, tuple(commits))


def _stream(files: int, merges: int) -> Iterator[str]:
    yield from _commit("refs/heads/main", (_file(i, files) for i in range(files)), "base\n")
    for i in range(merges):
        yield from _commit(f"refs/bench/{i}", [_file(i * (files // merges), files)], f"{i}\n")


def _commit(ref: str, paths: Iterator[str] | list[str], text: str) -> Iterator[str]:
    first = ref == "refs/heads/main"
    yield f"commit {ref}\n" + ("mark :1\n" if first else "")
    yield "committer Bench <bench@example.com> 1700000000 +0000\ndata 1\nx\n"
    yield "" if first else "from :1\n"
    for path in paths:
        content = f"{path}\n" * 20 + text
        yield f"M 100644 inline {path}\ndata {len(content)}\n{content}\n"


def _file(number: int, files: int) -> str:
    folder = number // A_FOLDER
    return f"src/part{folder % 40}/group{folder}/file{number}of{files}.py"


class Bare:
    """The floor: three commands a merge."""

    def __init__(self, made: Generated) -> None:
        self._repo = made.repo
        self._tip = made.base
        git(made.repo, "update-ref", "refs/bench/tip", made.base)

    async def merge(self, commit: str, number: int) -> None:
        """Merge onto the tip and move it."""
        tree = git(self._repo, "merge-tree", "--write-tree", self._tip, commit)
        parents = ("-p", self._tip, "-p", commit)
        merge = git(self._repo, "commit-tree", tree, *parents, stdin=f"merge {number}")
        git(self._repo, "update-ref", "refs/bench/tip", merge, self._tip)
        self._tip = merge


class Hauled:
    """The same through the port."""

    def __init__(self, made: Generated) -> None:
        user = inspect.UserGit(made.repo, ENVIRONMENT)
        origin = replace(inspect.locate(user), identity=inspect.identity(user))
        folders = Folders(made.repo / ".windlass", "bench")
        self._base = self._tip = made.base
        self.store = Store(origin, folders)
        self.store.open("")
        refs, plain = Refs("bench", "r1"), WorkspaceSettings()
        nowhere = Plain("none", home=folders.home, environment={}, marker="bench")
        setup = SetupCache(self.store, refs, nowhere, plain)
        self._port = GitRepository(
            self.store, refs, setup=setup, settings=plain, environment=ENVIRONMENT
        )

    async def open(self) -> "Hauled":
        """As a run opens it."""
        await self._port.open(self._base)
        return self

    async def merge(self, commit: str, number: int) -> None:
        """Merge, pin, prove, and move the tip and the branch."""
        author = Authorship(task=f"t{number}", title="Merge it", n=1, turn=1)
        made = await self._port.merge(author, number, commit, self._tip)
        assert isinstance(made, Merged), made
        said = await self._port.move_tip(self._tip, made.commit)
        assert not said, said
        self._tip = made.commit


async def _timed(merges: list[tuple[str, Bare | Hauled, Generated]]) -> dict[str, list[float]]:
    spent: dict[str, list[float]] = {name: [] for name, _, _ in merges}
    for i in range(MERGES):
        for name, merging, made in merges:
            begin = time.perf_counter()
            await merging.merge(made.commits[i], i)
            spent[name].append((time.perf_counter() - begin) * 1000)
    return spent


async def one_merge() -> bool:
    """The first part: a merge without checks; whether its bounds hold."""
    with tempfile.TemporaryDirectory(prefix="windlass-bench-") as root:
        small, large = (generate(Path(root), files, MERGES) for files in (SMALL, LARGE))
        hauled = [await Hauled(made).open() for made in (small, large)]
        spent = await _timed([
            ("floor, small", Bare(small), small),
            ("windlass, small", hauled[0], small),
            ("floor, large", Bare(large), large),
            ("windlass, large", hauled[1], large),
        ])  # fmt: skip
        for one in hauled:
            one.store.close()
    print(f"a merge without checks, {SMALL:,} and {LARGE:,} files, {MERGES} merges each")
    print(f"{'':18}{'median':>12}{'best':>12}{'worst':>12}")
    for name, values in spent.items():
        shown = (statistics.median(values), min(values), max(values))
        print(f"{name:18}" + "".join(f"{value:>9.1f} ms" for value in shown))
    middle = {name: statistics.median(values) for name, values in spent.items()}
    return all([
        _bound("small ÷ floor", middle["windlass, small"] / middle["floor, small"], OVER_FLOOR),
        _bound("large ÷ floor", middle["windlass, large"] / middle["floor, large"], OVER_FLOOR),
        _bound("large ÷ small", middle["windlass, large"] / middle["windlass, small"], OVER_SMALL),
    ])  # fmt: skip


def _bound(name: str, ratio: float, bound: float) -> bool:
    print(f"{name:18}{ratio:>12.2f}   bound {bound}: {'held' if ratio <= bound else 'BROKEN'}")
    return ratio <= bound


def queue() -> bool:
    """Batches, halved where they are red, against one merge after the other."""
    print(f"\nmerge queue, one check at a time, {BROKEN:.0%} broken: time ÷ serial")
    found = {size: ratio(broken=BROKEN, batch=size) for size in (2, 4, 8, 16)}
    for size, value in found.items():
        print(f"batches of {size:<7}{value:>12.2f}")
    return _bound("batches of 8", found[8], OVER_SERIAL)


PARTS: tuple[Callable[[], bool], ...] = (lambda: anyio.run(one_merge), queue)
"""Each prints its table and says whether its bounds hold."""


def main() -> int:
    held = [part() for part in PARTS]
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main())
