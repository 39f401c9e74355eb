"""What it costs that a checkout shows its own history alone, beside a checkout that shares all.

Three generated repositories (100, 7,000 and 30,000 files), each with its objects in one pack, as
after a clone, and each file loose, as after commits. In each, turn about so that a noisy machine is
noisy for all: `shared` is a checkout whose `.git` borrows all objects of the user's repository, as
Windlass made it before and as it still makes it for a person; `own` is one that shows the objects
its commit reaches. Both go through the same code but for that.

- pack: the base with its history, packed once per run, beside the run's first checkout.
- first: that first checkout, with the packing beside it, and the same without.
- fresh: a new checkout of the tip.
- warm: a checkout of the tip from the pool, for a commit that was seen before.
- new tip: a checkout from the pool of a commit that no checkout has shown yet, which is packed
  beside it: what the first checkout after each snapshot and each merge costs.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import anyio

from overhead import ENVIRONMENT, git, make_repository
from windlass.adapters.files import remove
from windlass.adapters.git.checkout_git_dir import Clone, Histories, Visible
from windlass.adapters.git.checkouts import Checkouts
from windlass.adapters.git.layout import Folders
from windlass.adapters.git.pool import Pool
from windlass.adapters.git.store import Store
from windlass.app.wiring import Project

BOUNDS = {"fresh": 1.3, "warm": 1.2}
"""Own ÷ shared."""
CASES = ("pack", "first", "fresh", "warm", "new tip")
Taken: TypeAlias = dict[str, dict[str, list[float]]]
SIZES = {100: 25, 7_000: 5, 30_000: 3}
"""Files, and rounds."""
WAYS = ("shared", "own")


class Shared(Clone):
    """The `.git` of a person's checkout: it borrows all objects."""

    async def prepare(self, commit: str) -> None:
        """Nothing takes time beforehand."""

    async def write(
        self, checkout: Path, home: Path, commit: str, index: Path, visible: Visible | None
    ) -> None:
        """The same, and all of the repository in sight."""
        del visible
        await super().write(checkout, home, commit, index, None)


class Side:
    """One way to make checkouts."""

    def __init__(self, store: Store, root: Path, *, own: bool) -> None:
        self.histories = Histories(store)
        self.pool = Pool(root / "pool", hash_bytes=20)
        git_dirs = (Clone if own else Shared)(store, self.histories)
        self._checkouts = Checkouts(store, self.pool, git_dirs)
        self._root = root

    async def make(self, commit: str, *, keep: bool = False) -> float:
        """Milliseconds that one checkout takes; afterwards it goes to the pool, or away."""
        place = self._root / "place"
        begin = time.perf_counter()
        await self._checkouts.make(place / "checkout", commit, place / "index", "judges")
        spent = time.perf_counter() - begin
        if keep:
            await self._checkouts.give_back(place / "checkout", place / "index", "judges")
        await remove(place)
        return spent * 1000


def tips(repo: Path, base: str, count: int) -> list[str]:
    """Commits one upon the other, each with a file of its own, as a run makes them."""
    made = [base]
    for number in range(count):
        index = repo / ".git/bench-index"
        blob = git(repo, "hash-object", "-w", "--stdin", stdin=f"{base} {number}")
        git(repo, "read-tree", made[-1], index=index)
        entry = f"100644,{blob},src/new{number}.py"
        git(repo, "update-index", "--add", "--cacheinfo", entry, index=index)
        tree = git(repo, "write-tree", index=index)
        made.append(git(repo, "commit-tree", tree, "-p", made[-1], "-m", "tip"))
        index.unlink()
    return made[1:]


async def measure(root: Path, repo: Path, rounds: int) -> Taken:
    """Milliseconds of each case, either way."""
    project = Project(repo, ENVIRONMENT)
    project.make_home()
    base = git(repo, "rev-parse", "main")
    sides = dict[str, Side]()
    for way in WAYS:
        store = Store(project.origin, Folders(project.home, f"bench-{way}"))
        store.open("")
        sides[way] = Side(store, root / way, own=way == "own")
    taken: Taken = {case: {way: [] for way in WAYS} for case in CASES}
    for _ in range(rounds):
        await one_round(sides, base, tips(repo, base, 6), taken)
    for side in sides.values():
        await side.histories.close()
        await side.pool.empty()
    return taken


async def one_round(sides: Mapping[str, Side], base: str, new: Sequence[str], taken: Taken) -> None:
    """Each case, both ways in turn; one without a name only makes ready for the next."""
    for side in sides.values():
        await side.histories.open(base)
        await side.pool.empty()
    begin = time.perf_counter()
    await sides["own"].histories.packs(base)
    taken["pack"]["own"].append((time.perf_counter() - begin) * 1000)
    await sides["own"].histories.open(base)
    steps = [
        ("first", base, False),
        *(("", new[0], False), *[("fresh", new[0], False)] * 3),
        *(("", new[0], True), *[("warm", new[0], True)] * 6),
        *(("new tip", tip, True) for tip in new[1:]),
    ]
    for case, commit, keep in steps:
        for way, side in sides.items():
            spent = await side.make(commit, keep=keep)
            if case:
                taken[case][way].append(spent)


def loosen(repo: Path) -> None:
    """Have every object in a file of its own."""
    packs = list((repo / ".git/objects/pack").iterdir())
    aside = repo / ".git/aside"
    aside.mkdir()
    for pack in packs:
        pack.rename(aside / pack.name)
    for pack in aside.glob("*.pack"):
        git(repo, "-c", "core.fsync=none", "unpack-objects", "-q", stdin=pack.read_bytes())


def told(form: str, files: int, taken: Taken) -> bool:
    """Print one repository's rows; whether its bounds hold."""
    held = True
    for case, ways in taken.items():
        line = f"{files:>7} {form:8}{case:10}"
        for measured in (statistics.median, min):
            own = measured(ways["own"])
            if not ways["shared"]:
                line += f"{'':>13}{own:>10.1f} ms{'':>8}"
                continue
            shared = measured(ways["shared"])
            line += f"{shared:>10.1f} ms{own:>10.1f} ms{own / shared:>8.2f}"
        bound = BOUNDS.get(case)
        if bound is not None:
            # Of the best ones: they are the work itself, the rest is what else the machine did.
            fits = min(ways["own"]) / min(ways["shared"]) <= bound
            held = held and fits
            line += f"  {'held' if fits else 'BROKEN'} ({bound})"
        print(line, flush=True)
    return held


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and say whether the bounds hold."""
    parser = argparse.ArgumentParser(description="A checkout's own history beside a shared one")
    parser.add_argument("sizes", nargs="*", type=int, help="files; all sizes unless named")
    args = parser.parse_args(arguments)
    columns = f"{'shared':>13}{'own':>13}{'ratio':>8}"
    print(f"{'':26}{'median':^34}{'best':^34}")
    print(f"{'files':>7} {'objects':8}{'':10}{columns}{columns}")
    held = True
    chosen = {files: rounds for files, rounds in SIZES.items() if files in (args.sizes or SIZES)}
    for files, rounds in chosen.items():
        for form in ("packed", "loose"):
            with tempfile.TemporaryDirectory(prefix="windlass-bench-") as root:
                repo = make_repository(Path(root), files)
                if form == "loose":
                    loosen(repo)
                taken = anyio.run(measure, Path(root), repo, rounds)
            held = told(form, files, taken) and held
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
