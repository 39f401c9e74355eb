"""Checkouts of exactly one commit that live as long as somebody looks at it, and leave nothing."""

import os
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

import anyio
import anyio.to_thread

from windlass.adapters.git.checkouts import Checkouts
from windlass.adapters.git.pool import Shelf
from windlass.adapters.git.removal import remove
from windlass.adapters.git.snares import disarm
from windlass.adapters.git.store import Store, printable_line


class Furnish(Protocol):
    """Makes checkouts fit to work in."""

    async def __call__(self, checkout: Path, index: Path, commit: str) -> bool:
        """Run the setup commands, or bring what they made before; whether there are any."""
        ...

    async def harvest(self, checkout: Path, index: Path, commit: str) -> None:
        """Keep what checks left for the checkouts after it."""
        ...


MAX_TOUCHED = 50
"""How many changed files are told."""


class GitThrowaway:
    """One such checkout."""

    def __init__(self, store: Store, checkouts: Checkouts, path: Path, index: Path) -> None:
        self.path = path
        self._store = store
        self._checkouts = checkouts
        self._index = index

    async def touched(self) -> tuple[str, ...]:
        """The tracked files that whoever worked here has changed."""
        if await self._checkouts.is_pristine(self.path, self._index):
            return ()  # git would read again whatever is as young as the checkout
        await anyio.to_thread.run_sync(disarm, self.path)
        listed = await self._store.trees(
            "ls-files", "-z", "--modified", work_tree=self.path, index=self._index
        )
        names = dict.fromkeys(printable_line(path) for path in listed.fields)
        return tuple(names)[:MAX_TOUCHED]


class Excerpt(NamedTuple):
    """Some files of a commit, as they are named in it."""

    path: Path
    files: tuple[str, ...]


class Throwaways:
    """Makes them, furnished as every checkout of the project is."""

    def __init__(self, store: Store, furnish: Furnish, checkouts: Checkouts) -> None:
        self._store = store
        self._furnish = furnish
        self._checkouts = checkouts

    @asynccontextmanager
    async def lend(
        self, commit: str, label: str, *, then: Shelf | None = None
    ) -> AsyncGenerator[GitThrowaway]:
        """A checkout of the commit for as long as the block lasts. Raises SetupFailed.

        `then` is for checks, and says whom it may serve afterwards: judges only where nothing can
        outlive the block.
        """
        place = self._store.folders.throwaway / f"{label}-{secrets.token_hex(4)}"
        checkout, index = place / "checkout", place / "index"
        try:
            await self._checkouts.make(checkout, commit, index, "judges")
            if await self._furnish(checkout, index, commit):
                await self._checkouts.dress(checkout, commit, index)  # it knows what setup made
            yield GitThrowaway(self._store, self._checkouts, checkout, index)
            with anyio.CancelScope(shield=True):
                if then is not None:
                    await self._furnish.harvest(checkout, index, commit)
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
        """Some plain files of the commit, to be read for as long as the block lasts.

        They are chosen by their paths as text, and written alone, however large the rest is.
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
    """Whether a path of a tree stays in its folder; git makes no others, somebody else might."""
    return path.startswith("/") is False and not {"", ".", ".."} & set(path.split("/"))


def _write(place: Path, files: Mapping[str, bytes]) -> None:
    place.mkdir(parents=True)
    for name, text in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:  # the place is new, and nothing in it is a link
            file.write(text)
