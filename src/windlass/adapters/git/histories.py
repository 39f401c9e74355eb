"""The objects that a checkout shows: what its commits reach, and nothing else of the repository.

Law 1: a pack in here holds only what the commit it was made for reaches. One pack holds the base
with its history; each commit above it adds a pack with what it has and an ancestor has not.
Law 2: a checkout gets links to the packs of its own commits, in a folder beside its index. Nothing
in that folder leads to the user's objects or to another checkout's.
Law 3: packs belong to one process. They are not synced; the next process removes them and packs
again, so a kill or a power loss leaves nothing that is trusted.
"""

import contextlib
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread

from windlass.adapters.concurrently import together
from windlass.adapters.git.git import TIMEOUT, Git
from windlass.adapters.git.removal import remove
from windlass.adapters.git.store import Store
from windlass.errors import GitFailed

_UNSYNCED = (
    *("-c", "core.fsync=none"),
    *("-c", "pack.compression=1"),
    *("-c", "pack.writeReverseIndex=false"),
)
"""These packs live as long as a process; what is packed already is copied as it is."""
_PACK = ("pack-objects", "--revs", "--quiet", "--non-empty", "--delta-base-offset", "--window=0")
_INCOMPLETE = "--missing=allow-any"
"""For repositories that lack old objects: a partial clone, or one with a damaged past."""
_PATIENCE = 6 * TIMEOUT
"""A long history takes its time, once per run."""
_FILES = (".pack", ".idx")


class Sight(NamedTuple):
    """What a checkout is to see."""

    commits: tuple[str, ...]
    tree: str | None = None
    """What its files began with, where that is the tree of none of these commits."""


class Histories:
    """Packs of what commits reach, made when a checkout first needs them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._place = store.folders.histories / secrets.token_hex(8)
        self._base = ""
        self._first: dict[str, str] = {}
        """The first parent of each known commit above the base."""
        self._order: dict[str, int] = {}
        """How many commits lie between each known commit and the base."""
        self._packs: dict[str, tuple[Path, ...]] = {}
        """What was packed, by its name and those of what it is built on."""
        self._known: dict[str, tuple[Path, ...]] = {}
        """All packs of a commit."""
        self._locks: dict[str, anyio.Lock] = {}

    async def open(self, base: str) -> None:
        """Remove what another process left, and take the commit that all others are built on."""
        await self.close()
        self._base = base
        self._order = {base: 0}

    async def close(self) -> None:
        """Remove all packs; what checkouts have linked stays with them."""
        self._base = ""
        for known in (self._first, self._order, self._packs, self._known):
            known.clear()
        folder = self._store.folders.histories
        with contextlib.suppress(FileNotFoundError):
            for place in list(folder.iterdir()):
                # Under this name no git that outlived its process can write into it any more.
                place.rename(folder / f".{secrets.token_hex(8)}")
        await remove(folder)

    async def lay(self, place: Path, sight: Sight) -> None:
        """Make a folder of objects that has all that these reach."""
        packs: dict[Path, None] = {}
        for commit in sight.commits:
            packs |= dict.fromkeys(await self.packs(commit))
        if sight.tree is not None:
            packs |= dict.fromkeys(await self._packed(sight.tree, sight.commits))
        await remove(place)
        (place / "pack").mkdir(parents=True)
        # Strings, for this is done for every checkout.
        files = {f"{pack.name}{ending}": f"{pack}{ending}" for pack in packs for ending in _FILES}
        try:
            for name, file in files.items():
                os.link(file, f"{place}/pack/{name}")
        except OSError:  # no links on this file system
            await anyio.to_thread.run_sync(_copy, files, place / "pack")

    async def found_in(self, place: Path, names: bytes) -> bytes:
        """Those of these names, a line each, that are objects in a folder that was laid so."""
        environment = {"GIT_OBJECT_DIRECTORY": str(place)}
        ceiling = self._store.origin.root.parent
        git = Git(self._store.folders.git, ceiling=ceiling, environment=environment)
        answer = await git("cat-file", "--batch-check=%(objectname)", stdin=names.decode())
        lines = answer.stdout.splitlines(keepends=True)
        return "".join(line for line in lines if " " not in line).encode()

    async def packs(self, commit: str) -> tuple[Path, ...]:
        """The packs that hold the commit with its history, and nothing else."""
        known = self._known.get(commit, ())
        if not known or not all(map(_is_there, known)):
            known = self._known[commit] = await self._all(commit)
        return known

    async def _all(self, commit: str) -> tuple[Path, ...]:
        await self._find(commit)
        if not self._order[commit]:
            return await self._packed(commit, ())
        parent = self._first[commit]
        below = partial(self._few, parent)
        await together(below, partial(self._packed, commit, (parent,)))
        return (*await below(), *await self._packed(commit, (parent,)))

    async def _few(self, commit: str) -> tuple[Path, ...]:
        """The same in few packs, for others to be built on: as many as its number has set bits.

        The n-th commit above the base has a pack for the last 2^k commits, where 2^k is the
        greatest power of two that divides n.
        """
        number = self._order[commit]
        if not number:
            return await self._packed(commit, ())
        below = commit
        for _ in range(number & -number):
            below = self._first[below]
        return (*await self._few(below), *await self._packed(commit, (below,)))

    async def _find(self, commit: str) -> None:
        """Learn how the commit stands to the base."""
        if commit in self._order:
            return
        chain = [commit, *(await self._store.parents_of(commit))[:1]]
        if chain[-1] not in self._order:
            chain = await self._chain(commit)
        for parent, child in zip(chain[:0:-1], chain[-2::-1], strict=True):
            self._first[child] = parent
            self._order[child] = self._order[parent] + 1

    async def _chain(self, commit: str) -> list[str]:
        """The commit and its first parents, down to one that is known."""
        if not self._base or not await self._holds_base(commit):
            self._order[commit] = 0  # it has a history of its own
            return [commit]
        listed = await self._store.trees("rev-list", "--first-parent", commit, f"^{self._base}")
        chain = listed.text.splitlines()
        if (await self._store.parents_of(chain[-1]))[:1] == (self._base,):
            return [*chain, self._base]
        return [commit, self._base]  # another parent leads there

    async def _holds_base(self, commit: str) -> bool:
        asked = ("merge-base", "--is-ancestor", self._base, commit)
        return (await self._store.trees(*asked, ok=(0, 1))).code == 0

    async def _packed(self, name: str, below: Sequence[str]) -> tuple[Path, ...]:
        """A pack of what the object reaches and those below do not; none where there is nothing."""
        key = "-".join((name, *below))
        async with self._locks.setdefault(key, anyio.Lock()):
            if key not in self._packs or not all(map(_is_there, self._packs[key])):
                self._packs[key] = await self._pack(name, below)
            return self._packs[key]

    async def _pack(self, name: str, below: Sequence[str]) -> tuple[Path, ...]:
        place = self._place / secrets.token_hex(8)
        (place / "pack").mkdir(parents=True)
        wanted = "".join((f"{name}\n", *(f"^{commit}\n" for commit in below)))
        git = self._git(place)
        # A gc may take a pack away while it is read: the second time git looks anew.
        tries = ((_INCOMPLETE,),) if self._is_partial() else ((), (), (_INCOMPLETE,))
        failures: list[GitFailed] = []
        for more in tries:
            try:
                made = await git(*_UNSYNCED, *_PACK, *more, str(place / "pack/pack"), stdin=wanted)
            except GitFailed as failure:
                failures.append(failure)
            else:
                return tuple(place / "pack" / f"pack-{line}" for line in made.text.split())
        raise failures[-1]

    def _git(self, place: Path) -> Git:
        """Windlass's git, which finds the user's objects and writes its packs to this place."""
        origin = self._store.origin
        return Git(
            self._store.folders.git,
            ceiling=origin.root.parent,
            environment={
                "GIT_OBJECT_DIRECTORY": str(place),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(
                    quoted(folder) for folder in origin.objects
                ),
            },
            timeout=_PATIENCE,
        )

    def _is_partial(self) -> bool:
        """Whether the user's git fetches objects when it needs them; Windlass's git never does."""
        folders = (folder / "pack" for folder in self._store.origin.objects)
        return any(True for folder in folders for _ in folder.glob("*.promisor"))


def quoted(folder: Path) -> str:
    """A folder as git's lists of object folders name it, whatever letters it has."""
    text = str(folder).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _is_there(pack: Path) -> bool:
    return all(os.path.exists(f"{pack}{ending}") for ending in _FILES)  # noqa: PTH110  it is quick


def _copy(files: Mapping[str, str], folder: Path) -> None:
    for name, file in files.items():
        if not (folder / name).exists():
            shutil.copyfile(file, folder / name)
