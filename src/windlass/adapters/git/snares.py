"""What an agent can leave in a folder that stops or misleads every git that looks at it.

A pipe that is called as one of git's own files makes git wait until somebody writes to it, which is
for ever; a `.git` inside leads it wherever that says, to a pipe as well; and of a folder that it
may not open, git only warns, and goes on as if it were empty.

Law: every folder is looked into, whatever it is called. Which ones git passes by is for git to say,
for a tree can have it look anywhere; and git is asked of a folder only once all above it are clear.
"""

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path, PurePath
from typing import Literal, NamedTuple

from windlass.adapters.git.names import folded


class Snare(NamedTuple):
    """One of them, by its path in the folder that was looked into."""

    path: PurePath
    kind: Literal["closed", "no file", "repository"]

    @property
    def place(self) -> PurePath:
        """The folder that git must come to."""
        return self.path if self.kind == "closed" else self.path.parent


def snares(folder: Path) -> Iterator[Snare]:
    """All of them, but for what is in the folder's own `.git`."""
    # Strings, for a Path an entry is slow in a large tree.
    top, folders = str(folder), [""]
    while folders:
        inner = folders.pop()
        if not os.access(f"{top}/{inner}", os.R_OK | os.X_OK):
            yield Snare(PurePath(inner), "closed")
            continue
        with os.scandir(f"{top}/{inner}") as entries:
            for entry in entries:
                if (gits := _gits(entry.name)) == ".git":
                    if inner:
                        yield Snare(PurePath(inner, entry.name), "repository")
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(f"{inner}/{entry.name}" if inner else entry.name)
                elif gits and _stops_git(entry, gits):
                    yield Snare(PurePath(inner, entry.name), "no file")


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
        elif snare.kind == "no file":
            path.unlink()


def _ways(snare: Snare) -> Iterator[PurePath]:
    """The folders that git goes through, the place itself included."""
    yield snare.place
    yield from snare.place.parents[:-1]


def _gits(name: str) -> str:
    """The name if it may be one of git's own to some file system, as git has it; else nothing."""
    if name[0] != "." and name.isascii():
        return ""
    return plain if (plain := folded(name)).startswith(".git") else ""


def _stops_git(entry: os.DirEntry[str], name: str) -> bool:
    if entry.is_symlink():
        return name == ".gitmodules"  # the one that git follows, to wherever it leads
    return not entry.is_file()
