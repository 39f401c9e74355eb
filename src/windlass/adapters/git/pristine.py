"""A used checkout brought back to files that nobody has touched since git wrote them.

Law: what stays is, by inode, size and the time of its last change to the nanosecond, what git noted
in an index that no agent reaches; all else goes, whatever it is. Anyone can set a file's mtime, no
one its ctime; links added elsewhere, modes, attributes and writes through a map all move it. What
no index notes of a folder (mode, owner, attributes) must be as in one of Windlass's own. Where
anything is in doubt the answer is no, and the checkout is thrown away.
"""

import mmap
import os
import secrets
import struct
import sys
import time
from pathlib import Path
from typing import TypeAlias

from windlass.adapters.git.removal import remove_tree

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
