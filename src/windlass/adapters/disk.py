"""What ails a disk, in words for people, each with its cure.

Law: the error's own number tells, and where there is none (git and SQLite say only that it did not
work) a small file is written to see; what a program printed is quoted, and never searched.
"""

import errno
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from windlass.adapters.files import write_durably
from windlass.errors import WindlassError

_PROBE = b"0" * 65536
"""More than a file system keeps in hand for a file that is about to fit."""

_NAMES: Mapping[int, tuple[str, str]] = MappingProxyType(
    {
        errno.ENOSPC: ("the disk is full", "make room"),
        errno.EDQUOT: ("your share of the disk is used up", "make room"),
        errno.EROFS: (
            "the disk has become read-only",
            "mount it writable again (`dmesg` says why)",
        ),
        errno.EIO: ("the disk cannot be read or written", "see what `dmesg` says of it"),
    }
)
"""By the number of the error: what it is called, and what helps."""


class Trouble(Struct, frozen=True):
    """What is wrong, and what helps."""

    what: str
    cure: str


def trouble(error: Exception, folders: Iterable[Path]) -> Trouble:
    """What is behind a failure to write."""
    if isinstance(error, OSError) and error.errno in _NAMES:
        return _named(error)
    for folder in folders:
        if (found := _tried(folder)) is not None:
            return Trouble(f"{_named(found).what} ({_said(error)})", _named(found).cure)
    return Trouble(_said(error), "mend that")


def _named(error: OSError) -> Trouble:
    """One that has a name of its own."""
    name, cure = _NAMES[error.errno or 0]
    where = f": {os.fsdecode(error.filename)!r}" if error.filename else ""
    return Trouble(f"{name}{where}", cure)


def _tried(folder: Path) -> OSError | None:
    """Why a file cannot be written there now, if it has a name."""
    probe = folder / f".windlass-probe-{os.getpid()}"
    try:
        write_durably(probe, _PROBE)
        probe.unlink()
    except OSError as error:
        return error if error.errno in _NAMES else None
    return None


def _said(error: Exception) -> str:
    if isinstance(error, WindlassError):
        return error.message
    if isinstance(error, OSError):
        where = f": {error.filename!r}" if error.filename else ""
        return f"{error.strerror or error}{where}"
    return str(error)
