"""Files that survive a power loss, whole. A reader sees the old text or the new, never a part.

The order is what makes it so: a file of its own, synced, then renamed over the old one, then the
folder synced, for a rename lives in the folder.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Callable
from functools import cache
from pathlib import Path

_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
"""On macOS fsync leaves the data in the drive's own memory, and only this brings it further."""


_PREFIX = ".windlass-"


def write_durably(path: Path, content: str | bytes, *, by_way_of: Path | None = None) -> None:
    """Replace the file with this content; when it raises, the old file is as it was.

    What a kill leaves unfinished lies in the folder `by_way_of`, where that is on the same disk.
    """
    data = content.encode() if isinstance(content, str) else content
    # A link to a file stays a link: what is replaced is the file that it leads to.
    target = Path(os.path.realpath(path))
    try:
        _replace(target, data, by_way_of or target.parent)
    except OSError as error:
        if by_way_of is None or error.errno != errno.EXDEV:
            raise
        _replace(target, data, target.parent)
    fsync_dir(target.parent)


def remove_unfinished(folder: Path) -> None:
    """Take away what a killed writer left there."""
    for temp in folder.glob(f"{_PREFIX}*.tmp"):
        temp.unlink(missing_ok=True)


def _replace(target: Path, data: bytes, folder: Path) -> None:
    # The name owes nothing to the target's, which may be as long as a name can be.
    temp = folder / f"{_PREFIX}{secrets.token_hex(8)}.tmp"
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        with os.fdopen(fd, "wb") as file:
            with contextlib.suppress(FileNotFoundError):
                os.fchmod(fd, target.stat().st_mode & 0o7777)
            file.write(data)
            file.flush()
            _sync(fd)
        temp.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):  # the first failure is the one to tell
            temp.unlink(missing_ok=True)
        raise


def remove_durably(path: Path) -> None:
    """Take the file away, for good; none is as good as gone."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
        fsync_dir(path.parent)


def read_plainly(path: Path, most: int = 64 * 1024) -> str | None:
    """The text of a small plain file; None for whatever else is there, or nothing."""
    # A link could lead anywhere, and a pipe would wait for ever.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with contextlib.suppress(OSError, UnicodeError):
        with os.fdopen(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            content = file.read(most + 1)
        return content.decode() if len(content) <= most else None
    return None


def make_folder(path: Path) -> None:
    """Make the folder and those above it, each durable in the one that holds it."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in reversed(missing):
        fsync_dir(folder.parent)


def fsync_dir(path: Path) -> None:
    """Make durable which files the folder holds, and under which names."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _sync(fd)
    finally:
        os.close(fd)


def sync_all(*paths: Path) -> None:
    """Make durable all that anybody has written on the disks of these: content and names.

    For what other programs made, many files at once: git syncs an object and never its name, and
    an agent syncs nothing.
    """
    for path in {path.stat().st_dev: path for path in paths}.values():
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _sync_file_system(fd, path)
        finally:
            os.close(fd)


def _sync_file_system(fd: int, path: Path) -> None:
    if (syncfs := _syncfs()) is None:
        os.sync()
        _sync(fd)  # which also empties the drive's own memory
    elif syncfs(fd) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(path))


@cache
def _syncfs() -> Callable[[int], int] | None:
    """The system's own, where it has one: Python does not know it."""
    return getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)


def _sync(fd: int) -> None:
    if _FULL_SYNC is not None:
        # Not every volume knows it; those that do not still know fsync.
        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, _FULL_SYNC)
            return
    os.fsync(fd)
