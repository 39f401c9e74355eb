"""Used checkouts, cleaned and kept for the next task: only what differs is written then.

Law 1: the pool holds pristine checkouts of this process alone. A checkout enters it when it is
clean, under a name of the pool's own. The pool is emptied when a process begins and when its run
ends, because its files were never synced.
Law 2: a checkout that an agent used goes to Players alone. Agents share the host's network, over
which one agent could hand an open file to another. Checks and Coaches judge, so they get a fresh
checkout or one that checks without network used.
Law 3: the pool is bounded, and a checkout in doubt is removed.
Law 4: pristine means that inode, size and ctime of every file are those git noted in an index that
no agent reaches; everything else is removed. A program can set a file's mtime but not its ctime.
Folders, which no index notes, must have the mode, owner and attributes of Windlass's own.
"""

import contextlib
import itertools
import mmap
import os
import secrets
import struct
import sys
import time
from pathlib import Path
from typing import Literal, TypeAlias

import anyio.to_thread

from windlass.adapters.files import remove, remove_here, remove_tree

Noted: TypeAlias = tuple[int, int, int, int]
"""Of what git notes of a file: ctime and mtime in nanoseconds, ino, size. All else moves ctime."""

_HEADER = struct.Struct(">4sII")
_ENTRY = struct.Struct(">10I")
_VERSION = 2
_LOW = 0xFFFFFFFF
_SECOND = 1_000_000_000
_TRIES = 50


def weed(checkout: Path, index: Path, like: Path, hash_bytes: int) -> bool:
    """Remove all that is not as `index` has it; whether the checkout can be used again.

    `like` is a folder of Windlass's own, as those in the checkout are to be.
    """
    noted = _noted(index.read_bytes(), hash_bytes)
    if noted is None:
        return False
    expected = _look(os.fsencode(like))
    folders, visited = [(os.fsencode(checkout), b"")], list[bytes]()
    while folders:
        path, inner = folders.pop()
        if _look(path) != expected:
            return False
        visited.append(path)
        folders += _sift(path, inner, noted)
    for path in reversed(visited[1:]):
        with os.scandir(path) as entries:
            empty = next(entries, None) is None
        if empty:  # which is no folder to git
            os.rmdir(path)  # noqa: PTH106  names are bytes here
    return True


def is_pristine(checkout: Path, index: Path, hash_bytes: int) -> bool:
    """Whether every file that `index` notes is there as git wrote it, whatever else is there."""
    noted = _noted(index.read_bytes(), hash_bytes)
    if noted is None:
        return False
    missing = sum(map(len, noted.values()))
    folders = [(os.fsencode(checkout), b"")]
    while folders:
        path, inner = folders.pop()
        files = noted[inner]
        with os.scandir(path) as entries:
            for entry in entries:
                name = inner + b"/" + entry.name if inner else entry.name
                if name in noted and entry.is_dir(follow_symlinks=False):
                    folders.append((entry.path, name))
                elif entry.name in files:
                    missing -= _stands(entry) == files[entry.name]
    return missing == 0


def has_moved_on(clock: Path, index: Path) -> bool:
    """Wait until whatever is changed from now on gets another time than what `index` notes."""
    for _ in range(_TRIES):
        if is_later(clock, index):
            return True
        time.sleep(0.001)
    return False


def is_later(clock: Path, index: Path) -> bool:
    """Whether what is changed now gets a later time than `index` has."""
    clock.touch()
    return clock.stat().st_mtime_ns > index.stat().st_mtime_ns


def vouch(index: Path) -> None:
    """Let git believe an index of pristine files, also of those as old as the index itself.

    It compares whole seconds, and reads every file again that may have changed within the last.
    """
    found = index.stat()
    os.utime(index, ns=(found.st_atime_ns, found.st_mtime_ns + 2 * _SECOND))


def tells_of_changes(folder: Path) -> bool:
    """Whether this file system moves a file's ctime when it is written through a map."""
    file, clock = folder / f".probe-{secrets.token_hex(4)}", folder / "clock"
    file.write_bytes(b"a" * mmap.PAGESIZE)
    before = file.stat().st_ctime_ns
    try:
        if not has_moved_on(clock, file):
            return False
        with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
            mapped[0] = 0
        return file.stat().st_ctime_ns != before
    finally:
        file.unlink()


def _sift(
    path: bytes, inner: bytes, noted: dict[bytes, dict[bytes, Noted]]
) -> list[tuple[bytes, bytes]]:
    """Remove from one folder what does not belong; the folders in it that do are the answer."""
    files, folders = noted[inner], list[tuple[bytes, bytes]]()
    with os.scandir(path) as entries:
        for entry in entries:
            name = inner + b"/" + entry.name if inner else entry.name
            if name in noted and entry.is_dir(follow_symlinks=False):
                folders.append((entry.path, name))
            elif _stands(entry) != files.get(entry.name):
                _remove(entry)
    return folders


def _noted(index: bytes, hash_bytes: int) -> dict[bytes, dict[bytes, Noted]] | None:
    """By folder and name, what the index notes; None where it is not one that this reads."""
    if len(index) < _HEADER.size or index[:4] != b"DIRC":
        return None
    _, version, count = _HEADER.unpack_from(index)
    if version != _VERSION:
        return None
    table: dict[bytes, dict[bytes, Noted]] = {b"": {}}
    at, fixed = _HEADER.size, _ENTRY.size + hash_bytes + 2
    for _ in range(count):
        cs, cns, ms, mns, _, ino, _, _, _, size = _ENTRY.unpack_from(index, at)
        end = index.find(b"\0", at + fixed)
        folder, _, name = index[at + fixed : end].rpartition(b"/")
        if folder not in table:
            _add(table, folder)
        table[folder][name] = (cs * _SECOND + cns, ms * _SECOND + mns, ino, size)
        at += (end - at) // 8 * 8 + 8
    return table


def _add(table: dict[bytes, dict[bytes, Noted]], folder: bytes) -> None:
    while folder not in table:
        table[folder] = {}
        folder = folder.rpartition(b"/")[0]


def _stands(entry: os.DirEntry[bytes]) -> Noted:
    """The same of what is there, cut as git cuts it."""
    found = entry.stat(follow_symlinks=False)
    return found.st_ctime_ns, found.st_mtime_ns, found.st_ino & _LOW, found.st_size & _LOW


def _look(folder: bytes) -> tuple[object, ...]:
    """What must be the same of every folder."""
    found = os.lstat(folder)
    attributes = os.listxattr(folder) if sys.platform == "linux" else ()
    return found.st_mode, found.st_uid, found.st_gid, found.st_dev, *sorted(attributes)


def _remove(entry: os.DirEntry[bytes]) -> None:
    if entry.is_dir(follow_symlinks=False):
        remove_tree(Path(os.fsdecode(entry.path)))
    else:
        os.unlink(entry.path)  # noqa: PTH108  names are bytes here


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
