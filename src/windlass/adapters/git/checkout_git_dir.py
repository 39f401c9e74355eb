"""The `.git` of a checkout, and the objects that it shows.

Kind clone: a small repository with one branch, no remotes and no tags. An agent or a person may
commit in it, and can damage only that. Kind worktree: a linked worktree of the user's repository,
at a detached commit, listed by `git worktree list` and locked against `git worktree prune`. In a
box it has a small read-only git directory in place of the user's, so no commit can be made there.
Windlass never reads back what it writes here.

An agent's checkout shows the objects that its own commits reach; a person's shows the whole
repository.
Law 1: a pack holds only what its commit reaches. One pack holds the base with its history; each
later commit adds a pack with what its ancestor does not have.
Law 2: a checkout gets links to the packs of its own commits, in a folder beside its index. Nothing
there leads to the user's objects or to another checkout's.
Law 3: packs belong to one process and are not synced. The next process removes them and packs
again, so a kill or a power loss leaves nothing that is trusted.
"""

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

import anyio
import anyio.to_thread

from windlass.adapters.concurrently import together
from windlass.adapters.files import remove, write_durably
from windlass.adapters.git.git import TIMEOUT
from windlass.adapters.git.layout import box_git_dir, box_git_dir_target, history
from windlass.adapters.git.paths import made_by_setup
from windlass.adapters.git.store import Store, config_text
from windlass.errors import GitFailed

_UNSYNCED = (
    *("-c", "core.fsync=none"),
    *("-c", "pack.compression=1"),
    *("-c", "pack.writeReverseIndex=false"),
)
"""These packs live as long as a process; objects that are packed already are copied."""
_PACK = ("pack-objects", "--revs", "--quiet", "--non-empty", "--delta-base-offset", "--window=0")
_INCOMPLETE = "--missing=allow-any"
"""For repositories without some old objects: a partial clone, or one with a damaged past."""
_PATIENCE = 6 * TIMEOUT
"""Packing a long history takes long, once per run."""
_FILES = (".pack", ".idx")


class Visible(NamedTuple):
    """The objects that a checkout shows: everything that these commits and this tree reach."""

    commits: tuple[str, ...]
    tree: str | None = None
    """The tree of its files, if none of these commits has it."""


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
        """Packs by the objects that they hold and that they are built on."""
        self._known: dict[str, tuple[Path, ...]] = {}
        """All packs of each commit."""
        self._locks: dict[str, anyio.Lock] = {}

    async def open(self, base: str) -> None:
        """Remove the packs of another process, and note the commit that all others build on."""
        await self.close()
        self._base = base
        self._order = {base: 0}

    async def close(self) -> None:
        """Remove all packs; checkouts keep their links."""
        self._base = ""
        for known in (self._first, self._order, self._packs, self._known):
            known.clear()
        folder = self._store.folders.histories
        with contextlib.suppress(FileNotFoundError):
            for place in list(folder.iterdir()):
                # Renamed, so that a git that outlived its process cannot write into it.
                place.rename(folder / f".{secrets.token_hex(8)}")
        await remove(folder)

    async def write_objects(self, place: Path, visible: Visible) -> None:
        """Make an object folder with everything that is visible."""
        packs: dict[Path, None] = {}
        for commit in visible.commits:
            packs |= dict.fromkeys(await self.packs(commit))
        if visible.tree is not None:
            packs |= dict.fromkeys(await self._packed(visible.tree, visible.commits))
        await remove(place)
        (place / "pack").mkdir(parents=True)
        # Strings, because this is done for every checkout.
        files = {f"{pack.name}{ending}": f"{pack}{ending}" for pack in packs for ending in _FILES}
        try:
            for name, file in files.items():
                os.link(file, f"{place}/pack/{name}")
        except OSError:  # no links on this file system
            await anyio.to_thread.run_sync(_copy, files, place / "pack")

    async def found_in(self, place: Path, names: bytes) -> bytes:
        """The names, one a line, of those that are objects in a folder made by `write_objects`."""
        git = self._store.git_on(place)
        answer = await git("cat-file", "--batch-check=%(objectname)", stdin=names.decode())
        lines = answer.stdout.splitlines(keepends=True)
        return "".join(line for line in lines if " " not in line).encode()

    async def packs(self, commit: str) -> tuple[Path, ...]:
        """The packs that hold exactly the commit and its history."""
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
        """The same in fewer packs, to build others on: one for each set bit of its number.

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
        """Find how many commits lie between the commit and the base."""
        if commit in self._order:
            return
        chain = [commit, *(await self._store.parents_of(commit))[:1]]
        if chain[-1] not in self._order:
            chain = await self._chain(commit)
        for parent, child in zip(chain[:0:-1], chain[-2::-1], strict=True):
            self._first[child] = parent
            self._order[child] = self._order[parent] + 1

    async def _chain(self, commit: str) -> list[str]:
        """The commit and its first parents, down to a known one."""
        if not self._base or not await self._store.is_ancestor(self._base, commit):
            self._order[commit] = 0  # its history is separate
            return [commit]
        listed = await self._store.trees("rev-list", "--first-parent", commit, f"^{self._base}")
        chain = listed.text.splitlines()
        if (await self._store.parents_of(chain[-1]))[:1] == (self._base,):
            return [*chain, self._base]
        return [commit, self._base]  # another parent leads there

    async def _packed(self, name: str, below: Sequence[str]) -> tuple[Path, ...]:
        """A pack of what the object reaches and those below do not; no pack if that is nothing."""
        key = "-".join((name, *below))
        async with self._locks.setdefault(key, anyio.Lock()):
            if key not in self._packs or not all(map(_is_there, self._packs[key])):
                self._packs[key] = await self._pack(name, below)
            return self._packs[key]

    async def _pack(self, name: str, below: Sequence[str]) -> tuple[Path, ...]:
        place = self._place / secrets.token_hex(8)
        (place / "pack").mkdir(parents=True)
        wanted = "".join((f"{name}\n", *(f"^{commit}\n" for commit in below)))
        git = self._store.git_on(place, self._store.origin.objects, timeout=_PATIENCE)
        # A gc may remove a pack while it is read: the second time git lists the packs again.
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

    def _is_partial(self) -> bool:
        """Whether the user's git fetches objects on demand; Windlass's git never does."""
        folders = (folder / "pack" for folder in self._store.origin.objects)
        return any(True for folder in folders for _ in folder.glob("*.promisor"))


def _is_there(pack: Path) -> bool:
    return all(os.path.exists(f"{pack}{ending}") for ending in _FILES)  # noqa: PTH110  it is quick


def _copy(files: Mapping[str, str], folder: Path) -> None:
    for name, file in files.items():
        if not (folder / name).exists():
            shutil.copyfile(file, folder / name)


PLAYER = "[user]\n\tname = Player\n\temail = player@windlass.invalid\n"
"""An agent may commit in a clone; these commits cannot be mistaken for the user's."""

BRANCH = "work"
"""The one branch of a clone; there are no remotes and no tags."""


class GitDirs(Protocol):
    """Writes the `.git` of checkouts."""

    async def prepare(self, commit: str) -> None:
        """Do the slow part for a checkout of the commit in advance."""
        ...

    async def write(
        self, checkout: Path, home: Path, commit: str, index: Path, visible: Visible | None
    ) -> None:
        """Write a new `.git` with HEAD at the commit; `home` is where the checkout will be.

        Without `visible` it is for a person, who sees the whole repository.
        """
        ...


class Clone:
    """A separate repository."""

    def __init__(self, store: Store, histories: Histories) -> None:
        self._store = store
        self._histories = histories

    async def prepare(self, commit: str) -> None:
        await self._histories.packs(commit)

    async def write(
        self,
        checkout: Path,
        home: Path,  # noqa: ARG002  the protocol's form
        commit: str,
        index: Path,
        visible: Visible | None,
    ) -> None:
        await remove(checkout / ".git", box_git_dir(index), box_git_dir_target(index))
        rest = await _rest(self._store, self._histories, index, visible)
        head = {
            "HEAD": f"ref: refs/heads/{BRANCH}\n".encode(),
            f"refs/heads/{BRANCH}": f"{commit}\n".encode(),
            "config": (config_text(self._store.origin) + PLAYER).encode(),
        }
        _write(checkout / ".git", {**head, **rest})


class Linked(Clone):
    """A linked worktree of the user's repository."""

    def __init__(self, store: Store, histories: Histories) -> None:
        super().__init__(store, histories)
        self._worktrees = WorktreeEntries(store)

    async def write(
        self, checkout: Path, home: Path, commit: str, index: Path, visible: Visible | None
    ) -> None:
        """Write what `git worktree add --detach --lock` writes; no hook or filter runs."""
        await self._worktrees.remove_entry(home)
        await remove(checkout / ".git", box_git_dir(index), box_git_dir_target(index))
        rest = await _rest(self._store, self._histories, index, visible)
        entry = self._worktrees.add(home)
        self._worktrees.put(entry / "commondir", "../..\n")
        self._worktrees.put(entry / "HEAD", f"{commit}\n")
        self._worktrees.put(entry / "index", index.read_bytes())
        with (checkout / ".git").open("x") as file:  # never through a link
            file.write(f"gitdir: {entry}\n")
        if visible is not None:
            box_git_dir_target(index).write_bytes(os.fsencode(entry))
            head = {
                "HEAD": f"{commit}\n".encode(),
                "config": config_text(self._store.origin).encode(),
            }
            _write(box_git_dir(index), {**head, **rest})


class WorktreeEntries:
    """The plan's linked worktrees, as the user's repository lists them."""

    def __init__(self, store: Store) -> None:
        self._plan = store.folders.plan
        self._home = store.folders.home
        self._worktrees = store.origin.git_dir / "worktrees"

    async def remove_entry(self, home: Path) -> None:
        for entry, there in self._entries():
            if there == home:
                await remove(entry)

    async def move(self, home: Path, new: Path) -> None:
        """Point the entry to where the worktree was moved."""
        for entry, there in self._entries():
            if there == home:
                self.put(entry / "gitdir", f"{new / '.git'}\n")

    async def prune(self) -> None:
        """Remove the entries of this plan's worktrees that are gone."""
        for entry, there in self._entries():
            if there.is_relative_to(self._home) and not (there / ".git").is_file():
                await remove(entry)

    def add(self, home: Path) -> Path:
        """Make a new entry for a worktree, and lock it."""
        name, more = f"windlass-{self._plan}-{home.name}", 0
        while True:
            entry = self._worktrees / (f"{name}-{more}" if more else name)
            try:
                entry.mkdir(parents=True)
            except FileExistsError:
                more += 1
                continue
            # In this order: an entry that is cut short is one that git's own prune removes.
            self.put(entry / "gitdir", f"{home / '.git'}\n")
            self.put(entry / "locked", f"windlass works on {home.name} of {self._plan} here\n")
            return entry

    def put(self, path: Path, content: str | bytes) -> None:
        """Write into the user's git directory, which the agent of a linked worktree can reach."""
        write_durably(path, content, inside=self._worktrees.parent, synced=False)

    def _entries(self) -> Iterator[tuple[Path, Path]]:
        """Each entry that could be this plan's, with its worktree."""
        for entry in sorted(self._worktrees.glob(f"windlass-{self._plan}-*")):
            with contextlib.suppress(OSError):
                text = os.fsdecode((entry / "gitdir").read_bytes()).removesuffix("\n")
                yield entry, Path(text).parent


async def _rest(
    store: Store, histories: Histories, index: Path, visible: Visible | None
) -> dict[str, bytes]:
    """The files of every small git directory beside its HEAD and configuration."""
    objects = store.origin.objects
    shallow = _content(store.folders.git / "shallow")
    if visible is None:
        await remove(history(index))
    else:
        objects = (history(index),)
        await histories.write_objects(history(index), visible)
        shallow = shallow and await histories.found_in(history(index), shallow)
    lists = (store.folders.git / "info/exclude", made_by_setup(index))
    held = {
        # All of them: git does not follow a relative path in an alternate's own alternates.
        "objects/info/alternates": b"".join(os.fsencode(folder) + b"\n" for folder in objects),
        "info/exclude": b"".join(_content(path) or b"" for path in lists),
        "shallow": shallow,
        "index": index.read_bytes(),
    }
    return {name: text for name, text in held.items() if text}


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write(dot_git: Path, held: Mapping[str, bytes]) -> None:
    # Strings, because this is done for every checkout, and Paths would take half of its time.
    top = str(dot_git)
    for folder in ("", "/objects", "/objects/info", "/refs", "/refs/heads", "/info"):
        os.mkdir(top + folder)  # noqa: PTH102  as above
    for name, text in held.items():
        with open(f"{top}/{name}", "xb") as file:  # noqa: PTH123  as above
            file.write(text)
