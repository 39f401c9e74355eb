"""Used checkouts, cleaned and kept for the next task: only what differs is written then.

Law 1: the pool holds pristine checkouts of this process alone. A checkout enters it when it is
clean, and gets a new name there. The pool is emptied when a process begins and when its run ends,
because its files were never synced.
Law 2: a checkout that an agent used goes to Players alone. Agents share the host's network, over
which one agent could hand an open file to another. Checks and Coaches judge, so they get a fresh
checkout or one that checks without network used.
Law 3: the pool is bounded, and a checkout in doubt is removed.
Law 4: pristine means that inode, size and ctime of every file are those that git wrote into an
index that no agent reaches; everything else is removed. A program can set a file's mtime but not
its ctime. An index has no folders: theirs must have the mode, owner and attributes of Windlass's.
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

FileStat: TypeAlias = tuple[int, int, int, int]
"""ctime and mtime in nanoseconds, inode, size, as in an index. Any other change moves ctime."""

_HEADER = struct.Struct(">4sII")
_ENTRY = struct.Struct(">10I")
_VERSION = 2
_LOW = 0xFFFFFFFF
_SECOND = 1_000_000_000
_TRIES = 50


def clean(checkout: Path, index: Path, like: Path, hash_bytes: int) -> bool:
    """Remove everything that differs from `index`; whether the checkout can be used again.

    `like` is one of Windlass's own folders; those in the checkout must be like it.
    """
    noted = _parse_index(index.read_bytes(), hash_bytes)
    if noted is None:
        return False
    expected = _folder_stat(os.fsencode(like))
    folders, visited = [(os.fsencode(checkout), b"")], list[bytes]()
    while folders:
        path, inner = folders.pop()
        if _folder_stat(path) != expected:
            return False
        visited.append(path)
        folders += _clean_folder(path, inner, noted)
    for path in reversed(visited[1:]):
        with os.scandir(path) as entries:
            empty = next(entries, None) is None
        if empty:  # git has no empty folders
            os.rmdir(path)  # noqa: PTH106  names are bytes here
    return True


def is_pristine(checkout: Path, index: Path, hash_bytes: int) -> bool:
    """Whether every file in `index` is as git wrote it; other files do not matter."""
    noted = _parse_index(index.read_bytes(), hash_bytes)
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
                    missing -= _file_stat(entry) == files[entry.name]
    return missing == 0


def wait_for_later(clock: Path, index: Path) -> bool:
    """Wait until changes get a later time than `index` has; whether that came."""
    for _ in range(_TRIES):
        if is_later(clock, index):
            return True
        time.sleep(0.001)
    return False


def is_later(clock: Path, index: Path) -> bool:
    """Whether a change made now gets a later time than `index` has."""
    clock.touch()
    return clock.stat().st_mtime_ns > index.stat().st_mtime_ns


def trust_index(index: Path) -> None:
    """Make git trust an index of pristine files, also for files as old as the index itself.

    Git compares whole seconds, and otherwise reads every file again that may have changed in the
    last one.
    """
    found = index.stat()
    os.utime(index, ns=(found.st_atime_ns, found.st_mtime_ns + 2 * _SECOND))


def ctime_shows_writes(folder: Path) -> bool:
    """Whether this file system changes a file's ctime when the file is written by mmap."""
    file, clock = folder / f".probe-{secrets.token_hex(4)}", folder / "clock"
    file.write_bytes(b"a" * mmap.PAGESIZE)
    before = file.stat().st_ctime_ns
    try:
        if not wait_for_later(clock, file):
            return False
        with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
            mapped[0] = 0
        return file.stat().st_ctime_ns != before
    finally:
        file.unlink()


def _clean_folder(
    path: bytes, inner: bytes, noted: dict[bytes, dict[bytes, FileStat]]
) -> list[tuple[bytes, bytes]]:
    """Remove from one folder what is not in the index; returns its folders that are."""
    files, folders = noted[inner], list[tuple[bytes, bytes]]()
    with os.scandir(path) as entries:
        for entry in entries:
            name = inner + b"/" + entry.name if inner else entry.name
            if name in noted and entry.is_dir(follow_symlinks=False):
                folders.append((entry.path, name))
            elif _file_stat(entry) != files.get(entry.name):
                _remove(entry)
    return folders


def _parse_index(index: bytes, hash_bytes: int) -> dict[bytes, dict[bytes, FileStat]] | None:
    """The files of an index by folder and name; None for an index of another version."""
    if len(index) < _HEADER.size or index[:4] != b"DIRC":
        return None
    _, version, count = _HEADER.unpack_from(index)
    if version != _VERSION:
        return None
    table: dict[bytes, dict[bytes, FileStat]] = {b"": {}}
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


def _add(table: dict[bytes, dict[bytes, FileStat]], folder: bytes) -> None:
    while folder not in table:
        table[folder] = {}
        folder = folder.rpartition(b"/")[0]


def _file_stat(entry: os.DirEntry[bytes]) -> FileStat:
    """The same of the file on disk, truncated as in an index."""
    found = entry.stat(follow_symlinks=False)
    return found.st_ctime_ns, found.st_mtime_ns, found.st_ino & _LOW, found.st_size & _LOW


def _folder_stat(folder: bytes) -> tuple[object, ...]:
    """The properties that every folder must share."""
    found = os.lstat(folder)
    attributes = os.listxattr(folder) if sys.platform == "linux" else ()
    return found.st_mode, found.st_uid, found.st_gid, found.st_dev, *sorted(attributes)


def _remove(entry: os.DirEntry[bytes]) -> None:
    if entry.is_dir(follow_symlinks=False):
        remove_tree(Path(os.fsdecode(entry.path)))
    else:
        os.unlink(entry.path)  # noqa: PTH108  names are bytes here


Shelf: TypeAlias = Literal["judges", "players"]
"""Who may get a checkout; Players never get one of the judges' shelf."""

MOST = 3
"""How many checkouts a shelf can hold."""


class Pool:
    """Spare checkouts, each with an index of every file that git wrote in it."""

    def __init__(self, folder: Path, *, hash_bytes: int) -> None:
        self._folder = folder
        self._clock = folder / "clock"
        self._hash_bytes = hash_bytes
        self._numbers = itertools.count()
        self._trusted: bool | None = None

    async def empty(self) -> None:
        await remove(self._folder)
        self._trusted = None

    def has_room(self, shelf: Shelf) -> bool:
        """Whether another checkout would be kept; two callers at once may both get True."""
        return sum(1 for _ in self._folder.glob(f"*{shelf}-*")) < MOST

    async def is_fit(self, index: Path) -> bool:
        """Whether later changes to the checkout of this new index can be detected."""
        with contextlib.suppress(OSError):
            if self._trusted and is_later(self._clock, index):
                return True  # the clock is fine enough, so no thread has to wait
        return await anyio.to_thread.run_sync(self._is_fit, index)

    async def is_pristine(self, checkout: Path, index: Path) -> bool:
        """Whether every file of the checkout, which was fit with this index, is untouched."""
        with contextlib.suppress(OSError):
            return await anyio.to_thread.run_sync(is_pristine, checkout, index, self._hash_bytes)
        return False

    async def take(self, shelf: Shelf, checkout: Path, index: Path) -> bool:
        """Move a spare checkout to `checkout` and its index to `index`; whether there was one."""
        for place in sorted(self._folder.glob(f"{shelf}-*"), reverse=True):
            mine = place.with_name(f".taken-{place.name}")
            try:
                place.rename(mine)
            except FileNotFoundError:
                continue  # another task took it
            try:
                trust_index(mine / "index")
                (mine / "index").rename(index)
                (mine / "checkout").rename(checkout)
                mine.rmdir()
            except OSError:  # damaged, or it cannot be moved there
                await anyio.to_thread.run_sync(remove_here, mine, checkout, index)
                continue
            return True
        return False

    async def give(self, shelf: Shelf, checkout: Path, index: Path) -> None:
        """Take back an unused checkout, with the index it was made with."""
        await anyio.to_thread.run_sync(self._give, shelf, checkout, index)

    def _give(self, shelf: Shelf, checkout: Path, index: Path) -> None:
        place = self._folder / f"{shelf}-{next(self._numbers):09}"
        # Another task may take the place as soon as it has its name: theirs is then `.taken-…`.
        building = place.with_name(f".new-{place.name}")
        try:
            if self._move_in(shelf, checkout, index, building):
                building.rename(place)
        except OSError:
            pass  # it could not be cleaned or moved: remove it
        finally:
            remove_here(building, checkout, index)

    def _move_in(self, shelf: Shelf, checkout: Path, index: Path, building: Path) -> bool:
        if not self.has_room(shelf):
            return False
        building.mkdir()
        checkout.rename(building / "checkout")
        index.rename(building / "index")
        return clean(
            building / "checkout", building / "index", building, hash_bytes=self._hash_bytes
        )

    def _is_fit(self, index: Path) -> bool:
        try:
            if self._trusted is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._trusted = ctime_shows_writes(self._folder)
            return self._trusted and wait_for_later(self._clock, index)
        except OSError:  # no space or no permission: every checkout is then a fresh one
            return False
