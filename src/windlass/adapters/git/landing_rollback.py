"""A landing that was cut short is taken back: every file that it wrote is as it was before.

Law: only files are touched that were clean when the landing began, and of these only what git can
have written: nothing, or content of the old or the new commit, or a part of it. A part is the
beginning of the content; after a power loss it may have zeros in place of what was not yet on the
disk. Such a file holds no byte that is not in a commit. What holds anything else is a person's edit
made since, and stays.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import anyio.to_thread
from msgspec import Struct

from windlass.adapters.files import sync_all
from windlass.adapters.git.git import act
from windlass.adapters.git.landing_intent import Home, Intent
from windlass.adapters.git.store import Store
from windlass.errors import GitFailed

_ATTRIBUTES = ".gitattributes"
_SUBMODULE = "160000"


class _Found(Struct, frozen=True):
    """A file or a link, as it is on the disk."""

    kind: int
    content: bytes
    executable: bool = False


class Rollback:
    """One landing that is taken back."""

    def __init__(
        self,
        store: Store,
        environment: Mapping[str, str],
        home: Home,
        place: Path,
        held: Sequence[int],
    ) -> None:
        """Take the checkout that it was about to move."""
        self._store = store
        self._environment = environment
        self._home = home
        self._place = place
        self._held = held

    async def run(self, intent: Intent) -> None:
        """Put back what the landing wrote, and sync it."""
        mine = set(self._home.paths())
        if not self._home.holds_index():
            # The lock was removed by hand: what has been staged since is a person's decision.
            mine -= await self._staged_otherwise(intent.old)
        old, new = await self._listed(intent.old), await self._listed(intent.new)
        before = await self._stage("old", old, mine)
        after = await self._stage("new", new, mine)
        for path in sorted(mine - old.keys()):
            if self._is_written(path, after.get(path)):
                (self._place / path).unlink()
        for folder in sorted(self._home.made(), reverse=True):
            with contextlib.suppress(OSError):  # the user has put something there, or it is gone
                (self._place / folder).rmdir()
        lost = [path for path in sorted(mine & old.keys()) if self._is_lost(path, before, after)]
        attributes = [path for path in lost if _is_attributes(path)]
        await self._write(attributes)
        await self._write([path for path in lost if not _is_attributes(path)])
        await anyio.to_thread.run_sync(sync_all, self._place, self._home.own)

    async def _staged_otherwise(self, old: str) -> set[str]:
        asked = ("diff-index", "--cached", "--name-only", "-z", old)
        within = {"GIT_OPTIONAL_LOCKS": "0"}
        answer = await act(
            *asked, cwd=self._place, environment=self._environment, within=within, held=self._held
        )
        return set(answer.fields)

    async def _listed(self, commit: str) -> dict[str, str]:
        """What a commit holds: mode and name of the object, by path."""
        listed = await self._store.trees("ls-tree", "-r", "-z", commit)
        entries = (line.partition("\t") for line in listed.fields)
        found = {path: told.split() for told, _, path in entries}
        return {p: f"{mode} {name}" for p, (mode, _, name) in found.items() if mode != _SUBMODULE}

    async def _stage(
        self, name: str, listed: Mapping[str, str], mine: set[str]
    ) -> dict[str, _Found]:
        """What git writes for these files of a commit, written into a folder of the landing's own.

        Its attributes come first, for they say how the others are written.
        """
        folder, index = self._home.folder / f"tree-{name}", self._home.folder / f"{name}.index"
        folder.mkdir(exist_ok=True)
        for left in (index, index.with_name(f"{index.name}.lock")):
            left.unlink(missing_ok=True)
        attributes = [path for path in listed if _is_attributes(path)]
        wanted = sorted(mine & listed.keys())
        entries = "".join(f"{listed[path]}\t{path}\0" for path in {*attributes, *wanted})
        within = {
            "GIT_DIR": str(self._home.own),
            "GIT_WORK_TREE": str(folder),
            "GIT_INDEX_FILE": str(index),
        }
        await self._git("update-index", "-z", "--index-info", within=within, stdin=entries)
        for paths in (attributes, wanted):
            with contextlib.suppress(GitFailed):  # a filter that fails: those files stay as found
                await self._git(
                    *("checkout-index", "--force", "--quiet", "-z", "--stdin"),
                    within=within,
                    stdin="".join(f"{path}\0" for path in paths),
                )
        staged = {path: _found(folder, path) for path in wanted}
        return {path: found for path, found in staged.items() if found is not None}

    async def _write(self, paths: Iterable[str]) -> None:
        """Let git write these files as the old commit has them."""
        within = {
            "GIT_DIR": str(self._home.own),
            "GIT_WORK_TREE": str(self._place),
            "GIT_INDEX_FILE": str(self._home.folder / "old.index"),
        }
        await self._git(
            *("checkout-index", "--force", "--quiet", "-z", "--stdin"),
            within=within,
            stdin="".join(f"{path}\0" for path in paths),
        )

    async def _git(self, *args: str, within: Mapping[str, str], stdin: str) -> None:
        if not stdin:
            return
        place = Path(within["GIT_WORK_TREE"])
        await act(
            *args,
            cwd=place,
            environment=self._environment,
            within=within,
            stdin=stdin,
            held=self._held,
        )

    def _is_written(self, path: str, after: _Found | None) -> bool:
        """Whether a file is there that the landing added."""
        found = _found(self._place, path)
        return found is not None and after is not None and _is_part(found, after)

    def _is_lost(
        self, path: str, before: Mapping[str, _Found], after: Mapping[str, _Found]
    ) -> bool:
        """Whether a file is not what it was, and only the landing can have made it so."""
        if not _is_reachable(self._place, path):
            return False
        was, found = before.get(path), _found(self._place, path)
        if found is None:
            return not os.path.lexists(self._place / path)
        if found == was:
            return False
        return any(_is_part(found, each) for each in (was, after.get(path)) if each is not None)


def _is_attributes(path: str) -> bool:
    return path.rpartition("/")[2] == _ATTRIBUTES


def _is_reachable(root: Path, path: str) -> bool:
    """Whether the folders above it are folders, as far as they are there: no link leads away."""
    folder = root
    for part in path.split("/")[:-1]:
        folder /= part
        try:
            if not stat.S_ISDIR(folder.lstat().st_mode):
                return False
        except FileNotFoundError:
            return True
    return True


def _found(root: Path, path: str) -> _Found | None:
    """The file or link under that name; None for nothing, a folder, or anything else."""
    if not _is_reachable(root, path):
        return None
    try:
        status = (root / path).lstat()
    except FileNotFoundError:
        return None
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFLNK:
        return _Found(kind, os.fsencode((root / path).readlink()))
    if kind == stat.S_IFREG:
        return _Found(kind, (root / path).read_bytes(), bool(status.st_mode & stat.S_IXUSR))
    return None


def _is_part(found: _Found, whole: _Found) -> bool:
    if found.kind != whole.kind:
        return False
    if whole.kind == stat.S_IFLNK:
        return found.content == whole.content
    return is_part(found.content, whole.content)


def is_part(found: bytes, whole: bytes) -> bool:
    """Whether this is what can be left of a file that was being written."""
    if len(found) > len(whole):
        return False
    if whole.startswith(found):
        return True
    return all(one in {other, 0} for one, other in zip(found, whole, strict=False))
