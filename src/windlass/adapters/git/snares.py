"""What an agent can leave in a folder that stops or misleads every git that looks at it.

A pipe that is called as one of git's own files makes git wait until somebody writes to it, which is
for ever; a `.git` inside leads it wherever that says, to a pipe as well; what it reads of rules it
holds in memory, many times as large, with those of all folders above; and of a folder that it may
not open, git only warns, and goes on as if it were empty.

Law: every folder is looked into, whatever it is called. Which ones git passes by is for git to say,
for a tree can have it look anywhere; and git is asked of a folder only once all above it are clear.
"""

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path, PurePath
from typing import Literal, NamedTuple, TypeAlias

from windlass.adapters.git.names import folded

RULES = frozenset({".gitattributes", ".gitignore", ".gitmodules"})
"""Files that git reads wherever it goes."""

MOST_RULES = 2**20
"""Bytes that these may have in a folder and all above it."""


Kind: TypeAlias = Literal["closed", "no file", "repository", "too large"]


class Snare(NamedTuple):
    """One of them, by its path in the folder that was looked into."""

    path: PurePath
    kind: Kind

    @property
    def place(self) -> PurePath:
        """The folder that git must come to."""
        return self.path if self.kind == "closed" else self.path.parent


def snares(folder: Path) -> Iterator[Snare]:
    """All of them, but for what is in the folder's own `.git`."""
    # Strings, for a Path an entry is slow in a large tree.
    top, folders = str(folder), [("", 0)]
    while folders:
        inner, size = folders.pop()
        if not os.access(f"{top}/{inner}", os.R_OK | os.X_OK):
            yield Snare(PurePath(inner), "closed")
            continue
        below: list[str] = []
        with os.scandir(f"{top}/{inner}") as entries:
            for entry in entries:
                name = _gits(entry.name)
                own = not inner and entry.name == ".git"
                if name != ".git" and entry.is_dir(follow_symlinks=False):
                    below.append(f"{inner}/{entry.name}" if inner else entry.name)
                elif name:
                    if name in RULES:
                        size += entry.stat(follow_symlinks=False).st_size
                    if (kind := _kind(entry, name, size)) and not own:
                        yield Snare(PurePath(inner, entry.name), kind)
        folders += [(name, size) for name in below]


async def first_met(
    found: Iterable[Snare], passed_by: Callable[[list[str]], Awaitable[set[str]]]
) -> Snare | None:
    """The first that git would come upon; `passed_by` says which of some folders it ignores."""
    left = sorted(found, key=lambda snare: len(snare.place.parts))
    while left:
        depth = len(left[0].place.parts)
        level = [snare for snare in left if len(snare.place.parts) == depth]
        ways = {str(way): None for snare in level for way in _ways(snare)}
        passed = await passed_by(list(ways)) if depth else set[str]()
        left = [snare for snare in left if passed.isdisjoint(map(str, _ways(snare)))]
        if left and left[0] in level:
            return left[0]
    return None


def disarm(folder: Path) -> None:
    """Remove them, and open what is closed, where Windlass is about to write files itself.

    Where it does git looks at tracked files alone, and at no repository inside.
    """
    for snare in snares(folder):
        path = folder / snare.path
        if snare.kind == "closed":
            path.chmod(0o700)
            disarm(path)
        elif snare.kind != "repository":
            path.unlink()


def _ways(snare: Snare) -> Iterator[PurePath]:
    """The folders that git goes through, the place itself included."""
    yield snare.place
    yield from snare.place.parents[:-1]


def _gits(name: str) -> str:
    """The name if it may be one of git's own to some file system, as git has it; else nothing."""
    if name[0] != "." and name.isascii() and "~" not in name:
        return ""
    return plain if (plain := folded(name)).startswith(".git") else ""


def _kind(entry: os.DirEntry[str], name: str, size: int) -> Kind | None:
    """What it is to git; `size` is that of all rules up to this one."""
    if name == ".git":
        return "repository"
    if entry.is_symlink():
        return "no file" if name == ".gitmodules" else None  # which git follows, wherever it leads
    if not entry.is_file():
        return "no file"
    return "too large" if name in RULES and size > MOST_RULES else None
