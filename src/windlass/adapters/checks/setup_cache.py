"""Setup: the project's own commands prepare a checkout for work, once for each set of inputs.

Inside bubblewrap every checkout has the same path, so the result of setup in one (a virtual
environment knows its path) is valid in all; it is kept by the hash of its declared inputs. At other
levels nothing is copied and setup runs in each checkout. New files that setup makes are
by-products; its changes to tracked files are undone, because a checkout is exactly its commit.

Law: a checkout passes results on to other trees only if its code was merged. Setup runs the tree's
code, and an unreviewed tree may do anything; so its results, and the list of them, are used for
that same tree alone until it is merged. The same holds for `keep` folders: what checks of merged
code left in them is kept, what an agent left never is.
"""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

import anyio
import anyio.to_thread
from msgspec.structs import asdict

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
from windlass.core.events.values import SetupFailure
from windlass.core.excerpts import READ, excerpt
from windlass.core.secrets import Redactor
from windlass.core.settings import WorkspaceSettings
from windlass.errors import SetupFailed
from windlass.ports import Activity, Watch

TIMEOUT = 1800
"""Seconds for a setup command: it may download a whole toolchain."""

_FORM = "2"
"""Changed when results of earlier versions must not be used any more."""

MOST_TREES = 8
"""Trees whose own setup results are kept: as many as a few concurrent tasks need."""

# Replaces a link in a file's place; plain cp would write to its target.
_COPY = ("cp", "-a", "--reflink=auto", "--remove-destination", "-T")


class SetupCache:
    """Runs setup, or copies its earlier result; copies kept folders."""

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
        self.watch: Watch = lambda _activity: None
        """Called when a command begins, and again with its time when it ends."""

    async def __call__(self, checkout: Path, index: Path, commit: str, *, task: str = "") -> bool:
        """Prepare a checkout of the commit, whose files are exactly those of `index`.

        `task` is the task that it is for; empty for the base and the tip.
        """
        if not self._settings.setup and not self._folders:
            return False
        if self._sandbox.level == "bwrap":
            async with self._one_at_a_time:  # the first runs setup, the others use its result
                await self._bring_or_make(checkout, index, commit, task)
        elif self._settings.setup:
            await self._set_up(checkout, commit, task)
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

    async def _bring_or_make(self, checkout: Path, index: Path, commit: str, task: str) -> None:
        """Copy the result for these inputs or this tree; run setup if there is none."""
        place = await self._place(checkout, index, self._inputs)
        if self._settings.setup and not await self._brought(place, checkout, index):
            own = await self._place(checkout, index, ()) if self._inputs else place
            if own == place or not await self._brought(own, checkout, index):
                await self._set_up(checkout, commit, task)
                made = await self._note(checkout, index)
                own.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(made_by_setup(index), _listing(own))
                await self._keep(checkout, {path: path for path in made}, own)
                await self._forget_trees()
            if own != place and await self._is_merged(commit):
                await remove(place)
                with contextlib.suppress(OSError):  # it was not kept
                    _listing(own).replace(
                        _listing(place)
                    )  # first: a result without its list is not used
                    own.rename(place)
        for folder in self._folders:
            kept = _of(place, folder)
            if kept.is_dir() and _is_free(checkout, folder):
                (checkout / folder).parent.mkdir(parents=True, exist_ok=True)
                await _copied(kept, checkout / folder)

    def exclude_text(self) -> str:
        """The exclude patterns for snapshots of every workspace."""
        return excludes(keep=self._settings.keep, user=self._store.origin.excludes)

    @property
    def _inputs(self) -> tuple[str, ...]:
        return self._settings.inputs

    async def _place(self, checkout: Path, index: Path, inputs: tuple[str, ...]) -> Path:
        """Where the result for these inputs is kept; without inputs, for all files of the tree."""
        listed = await self._store.trees(
            *("ls-files", "-z", "--stage", "--", *inputs), work_tree=checkout, index=index
        )
        key = "\0".join((_FORM, *self._settings.setup, "", listed.stdout))
        digest = hashlib.sha256(key.encode(errors="surrogateescape")).hexdigest()[:24]
        return self._store.folders.setup_results / (digest if inputs else f"tree-{digest}")

    async def _is_merged(self, commit: str) -> bool:
        """Whether the commit is the base, or was approved and merged."""
        tip = (await self._store.pins(self._tip)).get(self._tip)
        return tip is not None and await self._store.is_ancestor(commit, tip)

    async def _forget_trees(self) -> None:
        """Delete all but the most recent results for single trees."""
        found = [path for path in self._store.folders.setup_results.glob("tree-*") if path.is_dir()]
        found.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for path in found[MOST_TREES:]:
            await remove(path, _listing(path))

    async def _brought(self, kept: Path, checkout: Path, index: Path) -> bool:
        """Copy an earlier result; on failure, remove all of it and return False."""
        if not kept.is_dir() or not _listing(kept).is_file():
            return False
        if await _copied(kept, checkout):
            shutil.copyfile(_listing(kept), made_by_setup(index))
            os.utime(kept)  # it was just used
            return True
        # This commit has other files in these places; setup must start from a clean checkout.
        for path in await self._made(checkout, index):
            await remove(checkout / path)
        await self._checkouts.restore(checkout, index)
        return False

    async def _set_up(self, checkout: Path, commit: str, task: str) -> None:
        # Unreviewed code could send data anywhere, and extend the hosts that agents reach.
        reach = "public" if await self._is_merged(commit) else "listed"
        box = Box(checkout=checkout, network=True, reach=reach, role="setup")
        for command in self._settings.setup:
            self.watch(Activity(task=task, kind="setup", text=command))
            done = await processes.run(
                self._sandbox,
                box,
                ("/bin/sh", "-c", command),
                timeout=TIMEOUT,
                tail=READ,
                redactor=self._redactor,
            )
            self.watch(Activity(task=task, kind="setup", text=command, took=done.seconds))
            if done.exit_code != 0:
                failed = SetupFailure(
                    command=command,
                    exit_code=done.exit_code,
                    timed_out=done.timed_out,
                    seconds=round(done.seconds, 3),
                    output=excerpt(done.output),
                )
                last = failed.output.rpartition("\n")[2] or "no output"
                raise SetupFailed(f"{failed.sentence}: {last}", **asdict(failed))

    async def _note(self, checkout: Path, index: Path) -> list[str]:
        """Record what setup made, for this checkout's snapshots alone."""
        made = await self._made(checkout, index)
        made_by_setup(index).write_text("".join(f"{exclude_pattern(path)}\n" for path in made))
        return made

    async def _made(self, checkout: Path, index: Path) -> list[str]:
        """All files that are not the commit's, without git: setup may have left traps for it."""
        tracked = await self._store.trees("ls-files", "-z", work_tree=checkout, index=index)
        return await anyio.to_thread.run_sync(_beside, checkout, tracked.fields)

    async def _keep(self, source: Path, made: Mapping[str, str], kept: Path) -> None:
        """Keep a copy, whole or not at all."""
        building = kept.with_name(f"{kept.name}.building")
        await remove(building, kept)
        kept.parent.mkdir(parents=True, exist_ok=True)
        for path, name in made.items():
            (building / name).parent.mkdir(parents=True, exist_ok=True)
            if not await _copied(source / path, building / name):
                await remove(building)
                return  # it cannot be kept; setup runs again next time
        if not made:
            building.mkdir()
        # After a power loss, half a result would be copied into every checkout.
        await anyio.to_thread.run_sync(sync_all, building)
        building.rename(kept)


def _beside(checkout: Path, tracked: Iterable[str]) -> list[str]:
    """The paths that are not tracked; a folder without tracked files is listed by its name."""
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
    """Copy it; whether all of it was copied."""
    copy = [*_COPY, str(source), str(target)]
    return (await anyio.run_process(copy, check=False)).returncode == 0


def _listing(kept: Path) -> Path:
    """The list of by-products that the kept result adds to a checkout."""
    return kept.with_name(f"{kept.name}.exclude")


def _of(place: Path, folder: str) -> Path:
    """Where a kept folder is, next to the setup result for the same inputs."""
    return place.with_name(f"{place.name}+{folder.replace('/', '+')}")


def _ways(checkout: Path, folder: str) -> Iterator[Path]:
    """The parents of a folder in a checkout, outermost first."""
    for part in PurePosixPath(folder).parts[:-1]:
        checkout /= part
        yield checkout


def _is_real(checkout: Path, folder: str) -> bool:
    """Whether the folder exists, and no link is on the way to it."""
    return all(is_folder(path) for path in (*_ways(checkout, folder), checkout / folder))


def _is_free(checkout: Path, folder: str) -> bool:
    """Whether nothing is there, and no link on the way would redirect a write."""
    if os.path.lexists(checkout / folder):
        return False
    ways = _ways(checkout, folder)
    return all(is_folder(path) or not os.path.lexists(path) for path in ways)
