"""Files that survive a power loss, whole. A reader sees the old text or the new, never a part.

The order is what makes it so: a file of its own, synced, then renamed over the old one, then the
folder synced, for a rename lives in the folder.
"""

import contextlib
import fcntl
import os
import secrets
from pathlib import Path

_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
"""On macOS fsync leaves the data in the drive's own memory, and only this brings it further."""


def write_durably(path: Path, content: str | bytes) -> None:
    """Replace the file with this content; when it raises, the old file is as it was."""
    data = content.encode() if isinstance(content, str) else content
    # A link to a file stays a link: what is replaced is the file that it leads to.
    target = Path(os.path.realpath(path))
    # The name owes nothing to the target's, which may be as long as a name can be.
    temp = target.with_name(f".windlass-{secrets.token_hex(8)}.tmp")
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
        temp.unlink(missing_ok=True)
        raise
    fsync_dir(target.parent)


def remove_durably(path: Path) -> None:
    """Take the file away, for good; none is as good as gone."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
        fsync_dir(path.parent)


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


def _sync(fd: int) -> None:
    if _FULL_SYNC is not None:
        # Not every volume knows it; those that do not still know fsync.
        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, _FULL_SYNC)
            return
    os.fsync(fd)
