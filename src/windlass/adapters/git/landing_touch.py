"""Which files of a checkout a landing may write: those that are clean, and no other.

Law: what is listed here is what a landing that was cut short may be taken back in. A file that is
changed, staged, hidden from git or untracked is the user's and is never listed; git refuses to
write it, or leaves it alone.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol

from msgspec import Struct

from windlass.adapters.git.git import Output
from windlass.adapters.git.store import Store

_FIELDS = 2
_SUBMODULE = "160000"
_PLAIN = "H"
"""How git marks a file of the index that it looks at and that is checked out."""


class AskGit(Protocol):
    """The user's own git in the checkout, with an index of its own."""

    async def __call__(self, *args: str, ok: Sequence[int] = (0,)) -> Output:
        """Run it, and return its answer."""
        ...


class Touch:
    """The files that a landing may write, and the folders that it makes for them."""

    def __init__(self, root: Path, paths: Iterable[str], made: Iterable[str]) -> None:
        """Remember how each of them is now."""
        self._root = root
        self.paths = tuple(paths)
        self.made = tuple(made)
        self._before = {path: _stamp(root / path) for path in self.paths}

    def is_changed(self) -> bool:
        """Whether any of them is not as it was."""
        return any(_stamp(self._root / path) != was for path, was in self._before.items())

    def and_also(self, paths: Sequence[str]) -> "Touch":
        """The same, with more files."""
        more = Touch(self._root, dict.fromkeys((*self.paths, *paths)), self.made)
        more._before |= self._before
        return more


class _Change(Struct, frozen=True):
    path: str
    added: bool


async def touched(store: Store, git: AskGit, root: Path, old: str, new: str) -> Touch:
    """The files that differ between two commits and are clean."""
    await git("update-index", "-q", "--refresh", ok=(0, 1))
    dirty = set((await git("diff-files", "--name-only", "-z")).fields)
    staged = set((await git("diff-index", "--cached", "--name-only", "-z", old)).fields)
    marked = (line.split(" ", 1) for line in (await git("ls-files", "-v", "-z")).fields)
    hidden = {path for tag, path in marked if tag != _PLAIN}
    theirs = dirty | staged | hidden
    told = await store.trees("diff-tree", "-r", "-z", "--raw", "--no-renames", old, new)
    changes = list(_changes(told.fields))
    paths = [
        change.path
        for change in changes
        if change.path not in theirs and not (change.added and _is_taken(root / change.path))
    ]
    added = {change.path for change in changes if change.added}
    return Touch(root, paths, sorted(_missing(root, added & set(paths))))


def _changes(fields: Sequence[str]) -> Iterator[_Change]:
    for told, path in zip(fields[::_FIELDS], fields[1::_FIELDS], strict=True):
        before, after, *_, kind = told.removeprefix(":").split()
        if _SUBMODULE not in {before, after}:
            yield _Change(path, added=kind == "A")


def _missing(root: Path, paths: Iterable[str]) -> set[str]:
    """The folders above these files that are not there."""
    folders = {str(folder) for path in paths for folder in PurePosixPath(path).parents}
    return {folder for folder in folders - {"."} if not _is_folder(root / folder)}


def _is_taken(path: Path) -> bool:
    """Whether something is there; a folder makes way for a file if git finds nothing else in it."""
    return os.path.lexists(path) and not _is_folder(path)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _stamp(path: Path) -> tuple[int, int, int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return (stat.S_IFMT(found.st_mode), found.st_ino, found.st_size, found.st_mtime_ns)
