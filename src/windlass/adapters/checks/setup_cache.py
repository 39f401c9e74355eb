"""Setup: the project's own commands make a checkout fit to work in, once for each set of inputs.

Inside bubblewrap every checkout appears under one path, so what setup made in one (a virtual
environment knows its path) holds in all, and is kept by the hash of its declared inputs. At other
levels nothing is copied and setup runs in each. What setup makes in a checkout is a by-product in
that one; what it changes of tracked files is put back, for a checkout is exactly its commit.

Law: what one checkout leaves for others is made by code that was merged, or serves no other tree.
Setup runs what the tree says, and a tree that is yet to be judged may say anything; so what it made
there, the list of it included, is for that very tree alone, until it is merged. So it is with
`keep` folders: what checks of merged code left in them is kept, what an agent left never.
"""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

import anyio
import anyio.to_thread

from windlass.adapters.files import is_folder, remove, sync_all
from windlass.adapters.git.checkouts import Checkouts
from windlass.adapters.git.layout import Refs
from windlass.adapters.git.paths import (
    as_any_file_system,
    exclude_pattern,
    excludes,
    kept_folders,
    made_by_setup,
)
from windlass.adapters.git.store import Store
from windlass.adapters.sandbox import Box, Sandbox
from windlass.adapters.sandbox import commands as processes
from windlass.core.secrets import Redactor
from windlass.core.settings import WorkspaceSettings
from windlass.errors import SetupFailed

TIMEOUT = 1800
"""Seconds a setup command may take: it may download a whole toolchain."""

_TAIL = 2000
_FORM = "2"
"""Changed when what was kept before must not be believed any more."""

MOST_TREES = 8
"""How many single trees have what setup made of them kept: as much as a few tasks at once need."""

# A link that a tree has in the place of a file is replaced; cp would write to where it leads.
_COPY = ("cp", "-a", "--reflink=auto", "--remove-destination", "-T")


class SetupCache:
    """Runs setup, or brings what it made before; brings kept folders."""

    def __init__(
        self,
        store: Store,
        refs: Refs,
        sandbox: Sandbox,
        settings: WorkspaceSettings,
        redactor: Redactor | None = None,
    ) -> None:
        self._redactor = redactor
        self._store = store
        self._tip = refs.tip
        self._sandbox = sandbox
        self._settings = settings
        self._folders = kept_folders(settings.keep)
        self._checkouts = Checkouts(store)
        self._one_at_a_time = anyio.Lock()

    async def __call__(self, checkout: Path, index: Path, commit: str) -> bool:
        """Make a checkout of the commit fit; its files are those of `index` and no more."""
        if not self._settings.setup and not self._folders:
            return False
        if self._sandbox.level == "bwrap":
            async with self._one_at_a_time:  # the first makes it, the others find it made
                await self._bring_or_make(checkout, index, commit)
        elif self._settings.setup:
            await self._set_up(checkout, commit)
            await self._note(checkout, index)
        if self._settings.setup:
            await self._checkouts.restore(checkout, index)
        return bool(self._settings.setup)

    async def keep_results(self, checkout: Path, index: Path, commit: str) -> None:
        """Keep what checks left in `keep` folders, if the code they ran was merged."""
        if self._sandbox.level != "bwrap" or not (self._folders and self._inputs):
            return
        place = await self._place(checkout, index, self._inputs)
        for folder in self._folders:
            target = _of(place, folder)
            if target.exists() or (place / folder).exists() or not _is_real(checkout, folder):
                continue
            if not await self._is_merged(commit):
                return
            await self._keep(checkout / folder, {".": "."}, target)

    async def _bring_or_make(self, checkout: Path, index: Path, commit: str) -> None:
        """Bring what there is for these inputs or this tree; what is missing is made."""
        place = await self._place(checkout, index, self._inputs)
        if self._settings.setup and not await self._brought(place, checkout, index):
            own = await self._place(checkout, index, ()) if self._inputs else place
            if own == place or not await self._brought(own, checkout, index):
                await self._set_up(checkout, commit)
                made = await self._note(checkout, index)
                own.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(made_by_setup(index), _listing(own))
                await self._keep(checkout, {path: path for path in made}, own)
                await self._forget_trees()
            if own != place and await self._is_merged(commit):
                await remove(place)
                with contextlib.suppress(OSError):  # it could not be kept
                    _listing(own).replace(_listing(place))  # first: neither serves without it
                    own.rename(place)
        for folder in self._folders:
            kept = _of(place, folder)
            if kept.is_dir() and _is_free(checkout, folder):
                (checkout / folder).parent.mkdir(parents=True, exist_ok=True)
                await _copied(kept, checkout / folder)

    def exclude_text(self) -> str:
        """What snapshots of every workspace leave out."""
        return excludes(keep=self._settings.keep, user=self._store.origin.excludes)

    @property
    def _inputs(self) -> tuple[str, ...]:
        return self._settings.inputs

    async def _place(self, checkout: Path, index: Path, inputs: tuple[str, ...]) -> Path:
        """Where what these commands make of these inputs is kept; of none named, of all files."""
        listed = await self._store.trees(
            *("ls-files", "-z", "--stage", "--", *inputs), work_tree=checkout, index=index
        )
        told = "\0".join((_FORM, *self._settings.setup, "", listed.stdout))
        digest = hashlib.sha256(told.encode(errors="surrogateescape")).hexdigest()[:24]
        return self._store.folders.setup_results / (digest if inputs else f"tree-{digest}")

    async def _is_merged(self, commit: str) -> bool:
        """Whether the commit is the base, or has passed its judges and was merged."""
        tip = (await self._store.pins(self._tip)).get(self._tip)
        return tip is not None and await self._store.is_ancestor(commit, tip)

    async def _forget_trees(self) -> None:
        """Keep what was made for single trees no longer than it is likely to be asked for."""
        found = [path for path in self._store.folders.setup_results.glob("tree-*") if path.is_dir()]
        found.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for path in found[MOST_TREES:]:
            await remove(path, _listing(path))

    async def _brought(self, kept: Path, checkout: Path, index: Path) -> bool:
        """Whether what was made before could be brought; if not, nothing of it stays."""
        if not kept.is_dir() or not _listing(kept).is_file():
            return False
        if await _copied(kept, checkout):
            shutil.copyfile(_listing(kept), made_by_setup(index))
            os.utime(kept)  # it was of use just now
            return True
        # This commit has other things in their place; setup is to begin as in any fresh checkout.
        for path in await self._made(checkout, index):
            await remove(checkout / path)
        await self._checkouts.restore(checkout, index)
        return False

    async def _set_up(self, checkout: Path, commit: str) -> None:
        # Code that is yet to be judged could send anything anywhere, and widen what agents reach.
        reach = "public" if await self._is_merged(commit) else "listed"
        box = Box(checkout=checkout, network=True, reach=reach, role="setup")
        for command in self._settings.setup:
            done = await processes.run(
                self._sandbox,
                box,
                ("/bin/sh", "-c", command),
                timeout=TIMEOUT,
                tail=_TAIL,
                redactor=self._redactor,
            )
            if done.exit_code != 0:
                said = done.output.strip().splitlines()
                why = f"failed with {done.exit_code}" if done.started else "could not start"
                why = "took too long" if done.timed_out else why
                raise SetupFailed(
                    f"setup command `{command}` {why}: {said[-1] if said else 'no output'}",
                    hint="mend [workspace] setup in windlass.toml",
                )

    async def _note(self, checkout: Path, index: Path) -> list[str]:
        """What setup made, told to whatever looks at this checkout, and at no other."""
        made = await self._made(checkout, index)
        made_by_setup(index).write_text("".join(f"{exclude_pattern(path)}\n" for path in made))
        return made

    async def _made(self, checkout: Path, index: Path) -> list[str]:
        """All that is there and not of the commit; git is not asked: setup may have left traps."""
        tracked = await self._store.trees("ls-files", "-z", work_tree=checkout, index=index)
        return await anyio.to_thread.run_sync(_beside, checkout, tracked.fields)

    async def _keep(self, source: Path, made: Mapping[str, str], kept: Path) -> None:
        """Keep a copy of what was made, whole or not at all."""
        building = kept.with_name(f"{kept.name}.building")
        await remove(building, kept)
        kept.parent.mkdir(parents=True, exist_ok=True)
        for path, name in made.items():
            (building / name).parent.mkdir(parents=True, exist_ok=True)
            if not await _copied(source / path, building / name):
                await remove(building)
                return  # it cannot be kept, and is made again each time
        if not made:
            building.mkdir()
        # Found half after a power loss, it would be brought into every checkout from then on.
        await anyio.to_thread.run_sync(sync_all, building)
        building.rename(kept)


def _beside(checkout: Path, tracked: Iterable[str]) -> list[str]:
    """What is there beside these files; of a folder that has none of them, its name alone."""
    files = set(tracked)
    folders = {str(way) for path in files for way in PurePosixPath(path).parents}
    found, left = list[str](), [checkout]
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in entries:
                path = os.path.relpath(entry.path, checkout)
                if as_any_file_system(entry.name) == ".git" or path in files:
                    continue
                if path not in folders:
                    found.append(path)
                elif entry.is_dir(follow_symlinks=False):
                    left.append(Path(entry.path))
    return sorted(found)


async def _copied(source: Path | str, target: Path) -> bool:
    """Whether all of it could be copied."""
    copy = [*_COPY, str(source), str(target)]
    return (await anyio.run_process(copy, check=False)).returncode == 0


def _listing(kept: Path) -> Path:
    """What of a checkout is a by-product once this was brought into it."""
    return kept.with_name(f"{kept.name}.exclude")


def _of(place: Path, folder: str) -> Path:
    """Where a kept folder is, beside what setup made of the same inputs."""
    return place.with_name(f"{place.name}+{folder.replace('/', '+')}")


def _ways(checkout: Path, folder: str) -> Iterator[Path]:
    """The folders on the way to one in a checkout."""
    for part in PurePosixPath(folder).parts[:-1]:
        checkout /= part
        yield checkout


def _is_real(checkout: Path, folder: str) -> bool:
    """Whether the folder is there, and no link on the way to it."""
    return all(is_folder(path) for path in (*_ways(checkout, folder), checkout / folder))


def _is_free(checkout: Path, folder: str) -> bool:
    """Whether nothing is there, and no link on the way would lead what is written elsewhere."""
    if os.path.lexists(checkout / folder):
        return False
    ways = _ways(checkout, folder)
    return all(is_folder(path) or not os.path.lexists(path) for path in ways)
