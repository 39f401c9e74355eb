"""Checkouts that were used, kept for whoever needs one next: only what differs is written then.

Law 1: what stands in the pool is pristine (see pristine.py) and of this process: a checkout gets
its place under a name of the pool's own when it is clean, never before, and the pool is emptied
when a process begins and when its run ends. Files in it were never synced, and a fresh checkout
costs a run little; so nothing is gained by trusting what another process or another boot left.
Law 2: what agents worked in goes to Players alone. Agents share the host's network, over which one
could hand an open file of its checkout to another that outlives it. Checks and Coaches judge, so
they stand in what is fresh, or was used by checks without network, of which nothing outlives.
Law 3: it is bounded, and whatever is in doubt is removed.
"""

import contextlib
import itertools
from pathlib import Path
from typing import Literal, TypeAlias

import anyio.to_thread

from windlass.adapters.git.pristine import (
    has_moved_on,
    is_later,
    is_pristine,
    tells_of_changes,
    vouch,
    weed,
)
from windlass.adapters.git.removal import remove, remove_here

Shelf: TypeAlias = Literal["judges", "players"]
"""For whom a checkout is fit; what is fit for judges is never taken by Players."""

MOST = 3
"""How many checkouts a shelf holds."""


class Pool:
    """Spare checkouts, each with the index that tells of every file git wrote in it."""

    def __init__(self, folder: Path, *, hash_bytes: int) -> None:
        self._folder = folder
        self._clock = folder / "clock"
        self._hash_bytes = hash_bytes
        self._numbers = itertools.count()
        self._trusted: bool | None = None

    async def empty(self) -> None:
        """Remove all of it."""
        await remove(self._folder)
        self._trusted = None

    def has_room(self, shelf: Shelf) -> bool:
        """Whether another one would be kept; two that come at once may both be told so."""
        return sum(1 for _ in self._folder.glob(f"*{shelf}-*")) < MOST

    async def is_fit(self, index: Path) -> bool:
        """Whether changes made from now on to the checkout of this new index will be seen."""
        with contextlib.suppress(OSError):
            if self._trusted and is_later(self._clock, index):
                return True  # as where the time is fine enough; else somebody has to wait
        return await anyio.to_thread.run_sync(self._is_fit, index)

    async def is_pristine(self, checkout: Path, index: Path) -> bool:
        """Whether nobody has touched a file of the checkout, which was fit with this index."""
        with contextlib.suppress(OSError):
            return await anyio.to_thread.run_sync(is_pristine, checkout, index, self._hash_bytes)
        return False

    async def take(self, shelf: Shelf, checkout: Path, index: Path) -> bool:
        """Whether there was one; it stands at `checkout` then, and its index at `index`."""
        for place in sorted(self._folder.glob(f"{shelf}-*"), reverse=True):
            mine = place.with_name(f".{place.name}")
            try:
                place.rename(mine)
            except FileNotFoundError:
                continue  # another task was quicker
            try:
                vouch(mine / "index")
                (mine / "index").rename(index)
                (mine / "checkout").rename(checkout)
                mine.rmdir()
            except OSError:  # spoilt, or it cannot be moved there
                await anyio.to_thread.run_sync(remove_here, mine, checkout, index)
                continue
            return True
        return False

    async def give(self, shelf: Shelf, checkout: Path, index: Path) -> None:
        """Take a checkout back, with the index it was made with; nobody works in it any more."""
        await anyio.to_thread.run_sync(self._give, shelf, checkout, index)

    def _give(self, shelf: Shelf, checkout: Path, index: Path) -> None:
        place = self._folder / f"{shelf}-{next(self._numbers):09}"
        building = place.with_name(f".{place.name}")
        try:
            if self._shelved(shelf, checkout, index, building):
                building.rename(place)
        except OSError:
            pass  # it could not be cleaned or moved, and is removed
        finally:
            remove_here(building, checkout, index)

    def _shelved(self, shelf: Shelf, checkout: Path, index: Path, building: Path) -> bool:
        if not self.has_room(shelf):
            return False
        building.mkdir()
        checkout.rename(building / "checkout")
        index.rename(building / "index")
        return weed(
            building / "checkout", building / "index", building, hash_bytes=self._hash_bytes
        )

    def _is_fit(self, index: Path) -> bool:
        try:
            if self._trusted is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._trusted = tells_of_changes(self._folder)
            return self._trusted and has_moved_on(self._clock, index)
        except OSError:  # no place, no rights: every checkout is made afresh, as it must work too
            return False
