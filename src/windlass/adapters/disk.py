"""Disk errors in words, each with its cure.

Law: the error's number decides. Where there is none (git only fails), or only SQLite's, Windlass
first tries to write a small file. The output of a program is quoted, never searched.
"""

import errno
import os
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from windlass.adapters.files import write_durably
from windlass.errors import SigningFailed, UnsafePath, WindlassError

_PROBE = b"0" * 65536
"""More than a file system reserves for a file in advance."""

_NAMES: Mapping[int, tuple[str, str]] = MappingProxyType(
    {
        errno.ENOSPC: ("the disk is full", "make room"),
        errno.EDQUOT: ("your disk quota is used up", "make room"),
        errno.EROFS: (
            "the disk is now read-only",
            "mount it writable again (`dmesg` says why)",
        ),
        errno.EIO: ("the disk cannot be read or written", "see `dmesg`"),
    }
)
"""By errno: its name, and the cure."""

_SQLITE: Mapping[int, int] = MappingProxyType(
    {
        sqlite3.SQLITE_FULL: errno.ENOSPC,
        sqlite3.SQLITE_IOERR: errno.EIO,
        sqlite3.SQLITE_READONLY: errno.EROFS,
    }
)
"""SQLite's codes as errno; the lowest byte of an extended code is its kind."""


class Trouble(Struct, frozen=True):
    what: str
    cure: str


def trouble(error: Exception, folders: Iterable[Path]) -> Trouble:
    """The cause of a failed write, and its cure."""
    if isinstance(error, UnsafePath | SigningFailed):
        return Trouble(error.message, error.hint)
    if isinstance(error, OSError) and error.errno in _NAMES:
        return _describe(error)
    if isinstance(cause := error.__cause__, OSError) and cause.errno in _NAMES:
        return Trouble(f"{_describe(cause).what} ({_message(error)})", _describe(cause).cure)
    for folder in folders:
        if (found := _probe_write(folder)) is not None:
            return Trouble(f"{_describe(found).what} ({_message(error)})", _describe(found).cure)
    if (number := _SQLITE.get(getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF)) is not None:
        name, cure = _NAMES[number]  # the failure has passed, or is not in these folders
        return Trouble(f"{name} ({_message(error)})", cure)
    return Trouble(_message(error), "fix that")


def disk_error_name(number: int) -> str:
    return _NAMES[number][0]


def _describe(error: OSError) -> Trouble:
    name, cure = _NAMES[error.errno or 0]
    where = f": {os.fsdecode(error.filename)!r}" if error.filename else ""
    return Trouble(f"{name}{where}", cure)


def _probe_write(folder: Path) -> OSError | None:
    """Try to write a file there: the error, if it has a name in the table."""
    probe = folder / f".windlass-probe-{os.getpid()}"
    try:
        write_durably(probe, _PROBE)
        probe.unlink()
    except OSError as error:
        return error if error.errno in _NAMES else None
    return None


def _message(error: Exception) -> str:
    if isinstance(error, WindlassError):
        return error.message
    if isinstance(error, OSError):
        where = f": {error.filename!r}" if error.filename else ""
        return f"{error.strerror or error}{where}"
    return str(error)
