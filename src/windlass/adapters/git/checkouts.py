"""Checkouts of exactly one commit: a task's workspace, or a throwaway for a check or a Coach.

A checkout is fresh or comes from the pool; its user cannot tell. The `.git` inside belongs to the
agent or person who works there and is never trusted: it is written again for every use, and
Windlass reads the files through its own git directory and an index that it keeps elsewhere.
"""

import contextlib
import os
import secrets
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

import anyio
import anyio.to_thread

from windlass.adapters.concurrently import together
from windlass.adapters.files import is_folder, remove
from windlass.adapters.git.checkout_git_dir import Clone, GitDirs, Histories, Visible
from windlass.adapters.git.paths import made_by_setup, remove_traps
from windlass.adapters.git.pool import Pool, Shelf
from windlass.adapters.git.store import Store, printable_line
from windlass.core.exchange import task_of
from windlass.errors import GitFailed


class Checkouts:
    """Makes checkouts, and takes them back."""

    def __init__(
        self, store: Store, pool: Pool | None = None, git_dirs: GitDirs | None = None
    ) -> None:
        self._store = store
        self._pool = pool
        self._git_dirs = git_dirs or Clone(store, Histories(store))

    async def make(self, path: Path, commit: str, index: Path, shelf: Shelf) -> None:
        """Make a checkout of exactly the commit at `path`, whole or not at all."""
        building = path.with_name(f".{path.name}.building")
        await remove(building, path, index, _made(index), made_by_setup(index))
        path.parent.mkdir(parents=True, exist_ok=True)
        index.parent.mkdir(parents=True, exist_ok=True)

        async def build() -> None:
            if not await self._renew(building, commit, index, shelf):
                building.mkdir()
                await self._read(building, commit, index)

        await together(build, partial(self._git_dirs.prepare, commit))
        await self._git_dirs.write(building, path, commit, index, Visible((commit,)))
        if self._pool is not None and await self._pool.is_fit(index):
            # A link is enough: git replaces an index, and never writes into one.
            with contextlib.suppress(OSError):  # no hard links: the checkout is not reused
                os.link(index, _made(index))
        building.rename(path)

    async def give_back(self, path: Path, index: Path, shelf: Shelf) -> None:
        """Give an unused checkout to the pool, or remove it; `shelf` is who may get it next."""
        made = _made(index)
        if self._pool is not None and made.is_file() and is_folder(path):
            await self._pool.give(shelf, path, made)
        await remove(path, made, index)

    async def is_pristine(self, path: Path, index: Path) -> bool:
        """Whether every tracked file of a checkout is untouched; False if in doubt."""
        made = _made(index)
        return (
            self._pool is not None and made.is_file() and await self._pool.is_pristine(path, made)
        )

    async def fill(self, path: Path, treeish: str, index: Path) -> None:
        """Set the tracked files of a checkout to those of a tree."""
        await anyio.to_thread.run_sync(remove_traps, path)
        await self._read(path, treeish, index)

    async def restore(self, path: Path, index: Path) -> None:
        """Set the tracked files of a checkout back to those of its index."""
        await anyio.to_thread.run_sync(remove_traps, path)
        await self._store.trees("checkout-index", "--all", "--force", work_tree=path, index=index)

    async def write_git_dir(
        self, path: Path, commit: str, index: Path, visible: Visible | None = None
    ) -> None:
        """Replace the checkout's `.git` with a new one at the commit."""
        await self._git_dirs.write(path, path, commit, index, visible or Visible((commit,)))

    async def write_git_dir_for_person(self, path: Path, commit: str, index: Path) -> None:
        """The same for a person, who sees the whole repository."""
        await self._git_dirs.write(path, path, commit, index, None)

    async def _renew(self, building: Path, commit: str, index: Path, shelf: Shelf) -> bool:
        """Take a checkout from the pool and set it to the commit; whether that worked."""
        if self._pool is None or not await self._pool.take(shelf, building, index):
            return False
        try:
            await self._read(building, commit, index)
        except GitFailed:
            await remove(building, index)
            return False
        return True

    async def _read(self, path: Path, treeish: str, index: Path) -> None:
        await self._store.trees("read-tree", "-u", "--reset", treeish, work_tree=path, index=index)


def _made(index: Path) -> Path:
    """The index as it was when the checkout was made, before git refreshed it."""
    return index.with_name(f"{index.name}.made")


class RunSetup(Protocol):
    """Runs the setup of checkouts."""

    async def __call__(self, checkout: Path, index: Path, commit: str, *, task: str = "") -> bool:
        """Run the setup commands, or restore their earlier results; whether there are any."""
        ...

    async def keep_results(self, checkout: Path, index: Path, commit: str) -> None:
        """Keep what checks left, for later checkouts."""
        ...


MAX_TOUCHED = 50
"""How many changed files are reported."""


class GitThrowaway:
    """One throwaway checkout."""

    def __init__(self, store: Store, checkouts: Checkouts, path: Path, index: Path) -> None:
        self.path = path
        self._store = store
        self._checkouts = checkouts
        self._index = index

    async def touched(self) -> tuple[str, ...]:
        """The tracked files that were changed here."""
        if await self._checkouts.is_pristine(self.path, self._index):
            return ()  # git would read files again that are as new as the checkout
        await anyio.to_thread.run_sync(remove_traps, self.path)
        listed = await self._store.trees(
            "ls-files", "-z", "--modified", work_tree=self.path, index=self._index
        )
        names = dict.fromkeys(printable_line(path) for path in listed.fields)
        return tuple(names)[:MAX_TOUCHED]


class Excerpt(NamedTuple):
    """Some files of a commit, under their paths in it."""

    path: Path
    files: tuple[str, ...]


class Throwaways:
    """Makes throwaway checkouts, with the project's setup."""

    def __init__(self, store: Store, setup: RunSetup, checkouts: Checkouts) -> None:
        self._store = store
        self._setup = setup
        self._checkouts = checkouts

    @asynccontextmanager
    async def checkout(
        self, commit: str, label: str, *, then: Shelf | None = None
    ) -> AsyncGenerator[GitThrowaway]:
        """A checkout of the commit that lasts as long as the block. Raises SetupFailed.

        `then` is for checks: the shelf of the pool that gets the checkout afterwards. It is
        `judges` only if no process can outlive the block.
        """
        place = self._store.folders.throwaway / f"{label}-{secrets.token_hex(4)}"
        checkout, index = place / "checkout", place / "index"
        try:
            await self._checkouts.make(checkout, commit, index, "judges")
            if await self._setup(checkout, index, commit, task=task_of(label)):
                # Again, because the exclude file now has the results of the setup.
                await self._checkouts.write_git_dir(checkout, commit, index)
            yield GitThrowaway(self._store, self._checkouts, checkout, index)
            with anyio.CancelScope(shield=True):
                if then is not None:
                    await self._setup.keep_results(checkout, index, commit)
                await self._checkouts.give_back(checkout, index, then or "players")
        finally:
            with anyio.CancelScope(shield=True):
                await remove(place)

    @asynccontextmanager
    async def excerpt(
        self,
        commit: str,
        label: str,
        wanted: Callable[[str], bool],
        leads: Callable[[str], bool] = lambda _folder: True,
    ) -> AsyncGenerator[Excerpt]:
        """Some plain files of the commit, to read as long as the block lasts.

        They are chosen by their printable paths. Only they are written, however large the commit.
        """
        place = self._store.folders.throwaway / f"{label}-{secrets.token_hex(4)}"
        listed = (await self._store.listing(commit, leads)).items()
        chosen = [entry for path, entry in listed if entry.is_plain and wanted(path)]
        texts = await self._store.contents([entry.id for entry in chosen])
        names = [os.fsdecode(entry.path) for entry in chosen]
        files = {name: text for name, text in zip(names, texts, strict=True) if _is_inside(name)}
        try:
            await anyio.to_thread.run_sync(_write, place, files)
            yield Excerpt(place, tuple(files))
        finally:
            with anyio.CancelScope(shield=True):
                await remove(place)


def _is_inside(path: str) -> bool:
    """Whether a path of a tree stays in its folder; git makes no others, other programs might."""
    return path.startswith("/") is False and not {"", ".", ".."} & set(path.split("/"))


def _write(place: Path, files: Mapping[str, bytes]) -> None:
    place.mkdir(parents=True)
    for name, text in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:  # the folder is new and has no links
            file.write(text)


def is_occupied(folder: Path) -> bool:
    """Whether a process works there or has one of its files open; False without `/proc`."""
    around = f"{os.path.realpath(folder)}/"
    return any(f"{place}/".startswith(around) for place in _places())


def _places() -> Iterator[str]:
    """Every working folder and open file that this user may see."""
    with suppress(OSError):
        for pid in os.listdir("/proc"):  # noqa: PTH208  a Path for each costs as much again
            if pid.isdigit():
                yield from _places_of(f"/proc/{pid}")


def _places_of(process: str) -> Iterator[str]:
    with suppress(OSError):
        yield os.readlink(f"{process}/cwd")  # noqa: PTH115  as above
        for fd in os.listdir(f"{process}/fd"):  # noqa: PTH208  as above
            with suppress(OSError):
                yield os.readlink(f"{process}/fd/{fd}")  # noqa: PTH115  as above
