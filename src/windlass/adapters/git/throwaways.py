"""Checkouts of exactly one commit that live as long as somebody looks at it, and leave nothing."""

import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from windlass.adapters.git.checkouts import Checkouts, remove
from windlass.adapters.git.snares import disarm
from windlass.adapters.git.store import Store, printable

Furnish = Callable[[Path, Path], Awaitable[None]]
"""Runs the setup commands in a checkout with that index, or brings what they made before."""

MAX_TOUCHED = 50
"""How many changed files are told."""


class GitThrowaway:
    """One such checkout."""

    def __init__(self, store: Store, path: Path, index: Path) -> None:
        self.path = path
        self._store = store
        self._index = index

    async def touched(self) -> tuple[str, ...]:
        """The tracked files that whoever worked here has changed."""
        await anyio.to_thread.run_sync(disarm, self.path)
        listed = await self._store.trees(
            "ls-files", "-z", "--modified", work_tree=self.path, index=self._index
        )
        names = dict.fromkeys(printable(path) for path in listed.fields)
        return tuple(names)[:MAX_TOUCHED]


class Throwaways:
    """Makes them, furnished as every checkout of the project is."""

    def __init__(self, store: Store, furnish: Furnish) -> None:
        self._store = store
        self._furnish = furnish
        self._checkouts = Checkouts(store)

    @asynccontextmanager
    async def lend(self, commit: str, label: str) -> AsyncGenerator[GitThrowaway]:
        """A checkout of the commit for as long as the block lasts. Raises SetupFailed."""
        place = self._store.folders.throwaway / f"{label}-{secrets.token_hex(4)}"
        checkout, index = place / "checkout", place / "index"
        try:
            await self._checkouts.make(checkout, commit, index)
            await self._furnish(checkout, index)
            await self._checkouts.dress(checkout, commit, index)  # it knows what setup made now
            yield GitThrowaway(self._store, checkout, index)
        finally:
            with anyio.CancelScope(shield=True):
                await remove(place)
