"""Setup: the project's own commands make a checkout fit to work in, once for each set of inputs.

Inside bubblewrap every checkout appears under one path, so what setup made in one (a virtual
environment knows its path) holds in all, and is kept by the hash of its declared inputs. At other
levels nothing is copied and setup runs in each. What setup makes is told to git as a by-product;
what it changes of tracked files is put back, for a checkout is exactly its commit.
"""

import hashlib
import sys
from pathlib import Path

import anyio

from windlass.adapters import processes
from windlass.adapters.files import write_durably
from windlass.adapters.git.checkouts import Checkouts, remove
from windlass.adapters.git.excludes import excludes, literal
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
        self._checkouts = Checkouts(store)
        self._one_at_a_time = anyio.Lock()

    async def __call__(self, checkout: Path, index: Path) -> None:
        """Make the checkout fit; its files are those of `index` and no more."""
        if not self._settings.setup:
            return
        kept = self._store.folders.furnished / await self._key(checkout, index)
        if self._sandbox.level != "bwrap":
            await self._set_up(checkout)
            await self._note(checkout, index, kept)
        else:
            async with self._one_at_a_time:  # the first makes it, the others find it made
                if not (kept.is_dir() and await self._bring(kept, checkout, index)):
                    await self._set_up(checkout)
                    await self._keep(checkout, await self._note(checkout, index, kept), kept)
        await self._checkouts.restore(checkout, index)

    def exclude_text(self) -> str:
        """What snapshots leave out, with all that setup ever made here."""
        made: set[str] = set()
        for listing in self._store.folders.furnished.glob("*.exclude"):
            made.update(listing.read_text(encoding="utf-8").splitlines())
        return excludes(
            keep=self._settings.keep, setup=sorted(made), user=self._store.origin.excludes
        )

    async def _key(self, checkout: Path, index: Path) -> str:
        """One name for these commands on these inputs; without declared inputs, on all files."""
        listed = await self._store.trees(
            *("ls-files", "-z", "--stage", "--", *self._settings.inputs),
            work_tree=checkout,
            index=index,
        )
        told = "\0".join((*self._settings.setup, "", listed.stdout))
        return hashlib.sha256(told.encode(errors="surrogateescape")).hexdigest()[:24]

    async def _bring(self, kept: Path, checkout: Path, index: Path) -> bool:
        """Whether what was made before could be brought; if not, nothing of it stays."""
        if await _copied(f"{kept}/.", checkout):
            return True
        # This commit has other things in their place; setup is to begin as in any fresh checkout.
        await self._store.trees("clean", "-ffdxq", work_tree=checkout, index=index)
        await self._checkouts.restore(checkout, index)
        return False

    async def _set_up(self, checkout: Path) -> None:
        box = Box(checkout=checkout, network=True)
        for command in self._settings.setup:
            done = await processes.run(
                self._sandbox, box, ("/bin/sh", "-c", command), timeout=TIMEOUT, tail=_TAIL
            )
            if done.exit_code != 0:
                said = done.output.strip().splitlines()
                why = f"failed with {done.exit_code}" if done.started else "could not start"
                why = "took too long" if done.timed_out else why
                raise SetupFailed(
                    f"setup command `{command}` {why}: {said[-1] if said else 'no output'}",
                    hint="mend [workspace] setup in windlass.toml",
                )

    async def _note(self, checkout: Path, index: Path, kept: Path) -> list[str]:
        """What setup made, told to git and remembered for the processes after this one."""
        listed = await self._store.trees(
            "ls-files", "-z", "--others", "--directory", work_tree=checkout, index=index
        )
        made = [path.rstrip("/") for path in listed.fields if path.rstrip("/") != ".git"]
        kept.parent.mkdir(parents=True, exist_ok=True)
        patterns = "".join(f"{literal(path)}\n" for path in made)
        write_durably(kept.with_suffix(".exclude"), patterns)
        write_durably(self._store.folders.git / "info" / "exclude", self.exclude_text())
        return made

    async def _keep(self, checkout: Path, made: list[str], kept: Path) -> None:
        """Keep a copy of what setup made, whole or not at all."""
        building = kept.with_suffix(".building")
        await remove(building)
        await remove(kept)
        building.mkdir()
        for path in made:
            (building / path).parent.mkdir(parents=True, exist_ok=True)
            if not await _copied(checkout / path, building / path):
                return  # it cannot be kept, and is made again each time
        building.rename(kept)


async def _copied(source: Path | str, target: Path) -> bool:
    """Whether all of it could be copied."""
    copy = [*_COPY, str(source), str(target)]
    return (await anyio.run_process(copy, check=False)).returncode == 0
