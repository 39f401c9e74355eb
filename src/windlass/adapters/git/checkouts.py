"""Checkouts of exactly one commit, fresh or from the pool; which it was, nobody can tell.

The `.git` inside belongs to whoever works there and is never trusted: it is made anew for every
use, and Windlass looks at the files through its own git directory and an index kept elsewhere.
"""

import contextlib
import os
from functools import partial
from pathlib import Path

import anyio.to_thread

from windlass.adapters.concurrently import together
from windlass.adapters.git.dress import Clone, Dress
from windlass.adapters.git.excludes import made_by_setup
from windlass.adapters.git.histories import Histories, Sight
from windlass.adapters.git.pool import Pool, Shelf
from windlass.adapters.git.removal import remove
from windlass.adapters.git.snares import disarm
from windlass.adapters.git.store import Store
from windlass.errors import GitFailed


class Checkouts:
    """Makes checkouts, and takes them back."""

    def __init__(self, store: Store, pool: Pool | None = None, dress: Dress | None = None) -> None:
        self._store = store
        self._pool = pool
        self._dress = dress or Clone(store, Histories(store))

    async def make(self, path: Path, commit: str, index: Path, shelf: Shelf) -> None:
        """A checkout at `path` that is exactly the commit, whole or not at all."""
        building = path.with_name(f".{path.name}.building")
        await remove(building, path, index, _made(index), made_by_setup(index))
        path.parent.mkdir(parents=True, exist_ok=True)
        index.parent.mkdir(parents=True, exist_ok=True)

        async def build() -> None:
            if not await self._renew(building, commit, index, shelf):
                building.mkdir()
                await self._read(building, commit, index)

        await together(build, partial(self._dress.make_ready, commit))
        await self._dress.put_on(building, path, commit, index, Sight((commit,)))
        if self._pool is not None and await self._pool.is_fit(index):
            # A name of its own: git replaces an index, and never writes into one.
            with contextlib.suppress(OSError):  # no links here: then it is not used again
                os.link(index, _made(index))
        building.rename(path)

    async def give_back(self, path: Path, index: Path, shelf: Shelf) -> None:
        """Let a checkout go that nobody works in any more; `shelf` is whom it may serve next."""
        made = _made(index)
        if self._pool is not None and made.is_file() and path.is_dir() and not path.is_symlink():
            await self._pool.give(shelf, path, made)
        await remove(path, made, index)

    async def is_pristine(self, path: Path, index: Path) -> bool:
        """Whether no tracked file of a checkout was touched; no is also the answer in doubt."""
        made = _made(index)
        return (
            self._pool is not None and made.is_file() and await self._pool.is_pristine(path, made)
        )

    async def fill(self, path: Path, treeish: str, index: Path) -> None:
        """Make the tracked files of a checkout those of a tree, whatever they are now."""
        await anyio.to_thread.run_sync(disarm, path)
        await self._read(path, treeish, index)

    async def restore(self, path: Path, index: Path) -> None:
        """Make the tracked files of a checkout those of its index again."""
        await anyio.to_thread.run_sync(disarm, path)
        await self._store.trees("checkout-index", "--all", "--force", work_tree=path, index=index)

    async def dress(self, path: Path, commit: str, index: Path, sight: Sight | None = None) -> None:
        """Give the checkout a new `.git` that stands at the commit, and throw the old one away."""
        await self._dress.put_on(path, path, commit, index, sight or Sight((commit,)))

    async def hand_over(self, path: Path, commit: str, index: Path) -> None:
        """Do the same for a person, who sees the whole repository."""
        await self._dress.put_on(path, path, commit, index, None)

    async def _renew(self, building: Path, commit: str, index: Path, shelf: Shelf) -> bool:
        """Whether one from the pool could be brought to the commit; if not, nothing is left."""
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
    """The index as it was when the checkout was made, before anyone looked through it."""
    return index.with_name(f"{index.name}.made")
