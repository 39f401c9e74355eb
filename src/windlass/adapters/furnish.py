"""Setup: the project's own commands make a checkout fit to work in, once for each set of inputs.

Inside bubblewrap every checkout appears under one path, so what setup made in one (a virtual
environment knows its path) holds in all, and is kept by the hash of its declared inputs. At other
levels nothing is copied and setup runs in each. What setup makes is told to git as a by-product.
"""

import hashlib
import sys
from pathlib import Path

import anyio
import msgspec

from windlass.adapters import processes
from windlass.adapters.git.checkouts import remove
from windlass.adapters.git.excludes import excludes
from windlass.adapters.git.store import Store
from windlass.adapters.sandbox import Box, Sandbox
from windlass.errors import SetupFailed
from windlass.settings import WorkspaceSettings

TIMEOUT = 1800
"""Seconds a setup command may take: it may download a whole toolchain."""

_TAIL = 2000
_COPY = ("cp", "-a", "--reflink=auto") if sys.platform == "linux" else ("cp", "-a")


class Furnisher:
    """Runs setup, or brings what it made before."""

    def __init__(self, store: Store, sandbox: Sandbox, settings: WorkspaceSettings) -> None:
        self._store = store
        self._sandbox = sandbox
        self._settings = settings
        self._one_at_a_time = anyio.Lock()

    async def __call__(self, checkout: Path, commit: str, index: Path) -> None:
        """Make the checkout of that commit fit; its files are those of `index` and no more."""
        if not self._settings.setup:
            return
        kept = self._store.folders.furnished / await self._key(commit)
        async with self._one_at_a_time:  # the first makes it, the others find it made
            if kept.is_dir() and self._sandbox.level == "bwrap":
                await anyio.run_process([*_COPY, f"{kept}/.", str(checkout)])
                return
            await self._set_up(checkout)
            await self._keep(checkout, index, kept)

    def exclude_text(self) -> str:
        """What snapshots leave out, with all that setup ever made here."""
        made: set[str] = set()
        for listing in self._store.folders.furnished.glob("*.json"):
            made.update(msgspec.json.decode(listing.read_bytes(), type=list[str]))
        return excludes(
            keep=self._settings.keep,
            setup=tuple(sorted(made)),
            user=self._store.origin.excludes,
        )

    async def _key(self, commit: str) -> str:
        """One name for these commands on these inputs; without declared inputs, on this tree."""
        inputs = await self._store.tree_of(commit)
        if self._settings.inputs:
            listed = await self._store.trees(
                "ls-tree", "-r", "-z", commit, "--", *self._settings.inputs
            )
            inputs = listed.stdout
        told = msgspec.json.encode((self._settings.setup, inputs))
        return hashlib.sha256(told).hexdigest()[:24]

    async def _set_up(self, checkout: Path) -> None:
        box = Box(checkout=checkout, network=True)
        for command in self._settings.setup:
            done = await processes.run(
                self._sandbox, box, ("/bin/sh", "-c", command), timeout=TIMEOUT, tail=_TAIL
            )
            if done.exit_code != 0:
                said = done.output.strip().splitlines()
                why = "took too long" if done.timed_out else f"failed with {done.exit_code}"
                raise SetupFailed(
                    f"setup command `{command}` {why}: {said[-1] if said else 'no output'}",
                    hint="mend [workspace] setup in windlass.toml",
                )

    async def _keep(self, checkout: Path, index: Path, kept: Path) -> None:
        """Note what setup made, keep a copy where it can be used again, and tell git."""
        listed = await self._store.trees(
            "ls-files", "-z", "--others", "--directory", work_tree=checkout, index=index
        )
        made = [path.rstrip("/") for path in listed.fields if path.rstrip("/") != ".git"]
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.with_suffix(".json").write_bytes(msgspec.json.encode(made))
        (self._store.folders.git / "info" / "exclude").write_text(self.exclude_text())
        if self._sandbox.level != "bwrap":
            return
        building = kept.with_suffix(".building")
        await remove(building)
        building.mkdir()
        for path in made:
            target = building / path
            target.parent.mkdir(parents=True, exist_ok=True)
            await anyio.run_process([*_COPY, str(checkout / path), str(target)])
        building.rename(kept)
