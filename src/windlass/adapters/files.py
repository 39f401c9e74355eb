"""Every file write of Windlass goes through here: whole, durable, and through no link.

Law 1: a path is opened component by component below a trusted folder, each relative to the one
before it and none through a link. So what an agent commits cannot lead a write elsewhere, nor can a
link that is swapped in while Windlass writes. Pipes, sockets and devices are refused.
Law 2: a file survives a power loss, whole. A reader sees the old text or the new, never a part: a
temporary file is written, synced and renamed over the old one; then the folder is synced.
Law 3: removing follows no link either.
"""

import contextlib
import ctypes
import errno
import fcntl
import io
import os
import secrets
import shutil
import stat
import subprocess
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import anyio.to_thread

from windlass.errors import UnsafePath

OWN = ".windlass"
"""Windlass's own folder in a repository: below it no link is ever followed."""

_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
"""On macOS fsync leaves the data in the drive's cache; only this flushes it."""

_PREFIX = ".windlass-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_WAY = _FOLDER | getattr(os, "O_PATH", 0)
"""A folder on the way needs to be passed, not read."""
_PLAIN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""A link could lead anywhere, a pipe would block, a terminal could become ours."""
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class _Way(NamedTuple):
    """A path as a trusted folder and the names below it, none of which may be a link."""

    top: Path
    names: tuple[str, ...]

    def shown(self, names: tuple[str, ...] | None = None) -> str:
        """The path, or the part that these names are, for messages."""
        return str(Path(*(names or self.names)))


def write_durably(
    path: Path,
    content: str | bytes,
    *,
    inside: Path | None = None,
    by_way_of: Path | None = None,
    mode: int | None = None,
    synced: bool = True,
) -> None:
    """Replace the file with this content; if this raises, the old file is unchanged.

    No link is followed below `inside`, nor below Windlass's own folder. The temporary file is in
    the folder `by_way_of`, if that is on the same disk: a kill leaves it there. An existing file
    keeps its mode unless `mode` is given. Without `synced` a power loss may lose the file: for what
    can be made again.
    """
    data = content.encode() if isinstance(content, str) else content
    way = _way(path, inside)
    with _opened(way, way.names[:-1]) as folder:
        existing = _plain_stat(folder, way)
        if mode is None and existing is not None:
            mode = existing.st_mode & 0o7777
        try:
            with contextlib.ExitStack() as held:
                draft = folder
                if by_way_of is not None:
                    draft = held.enter_context(_opened_folder(by_way_of))
                _replace(folder, way.names[-1], data, draft, mode, synced=synced)
        except OSError as error:
            if by_way_of is None or error.errno != errno.EXDEV:
                raise
            _replace(folder, way.names[-1], data, folder, mode, synced=synced)
        if synced:
            _sync(folder)


def remove_unfinished(folder: Path) -> None:
    """Delete the temporary files of a killed writer."""
    for temp in folder.glob(f"{_PREFIX}*.tmp"):
        temp.unlink(missing_ok=True)


def remove_durably(path: Path, *, inside: Path | None = None) -> None:
    """Delete the file durably, if there is one. A link is deleted, not its target."""
    way = _way(path, inside)
    with contextlib.suppress(FileNotFoundError), _opened(way, way.names[:-1]) as folder:
        os.unlink(way.names[-1], dir_fd=folder)
        _sync(folder)


def remove_empty_folder(path: Path, *, inside: Path) -> None:
    """Delete the folder if nothing is in it; otherwise it stays."""
    way = _way(path, inside)
    with contextlib.suppress(OSError), _opened(way, way.names[:-1]) as folder:
        os.rmdir(way.names[-1], dir_fd=folder)


def open_plain(path: Path, flags: int, *, inside: Path | None = None) -> int:
    """A descriptor of a plain file; O_CREAT makes the file and its folders.

    A file that is written in place must have no second name, or the write would change that too.
    """
    way = _way(path, inside)
    with _opened(way, way.names[:-1], make=bool(flags & os.O_CREAT)) as folder:
        _plain_stat(folder, way)
        try:
            fd = os.open(way.names[-1], flags | _PLAIN, 0o644, dir_fd=folder)
        except OSError as error:
            raise _explained(error, folder, way, way.names) from None
    try:
        _refuse_opened(os.fstat(fd), way, writing=bool(flags & (os.O_WRONLY | os.O_RDWR)))
    except BaseException:
        os.close(fd)
        raise
    return fd


def _refuse_opened(found: os.stat_result, way: _Way, *, writing: bool) -> None:
    """Raise if the open file is not a plain file with one name."""
    _refuse_special(found, way, way.names)
    if stat.S_ISDIR(found.st_mode):
        where = str(way.top.joinpath(*way.names))
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), where)
    if writing and found.st_nlink > 1:
        raise UnsafePath(
            f"{way.shown()} has another name elsewhere (a hard link), which would change too",
            about=way.shown(),
            hint="remove it; Windlass makes its own",
        )


def open_to_append(path: Path, *, inside: Path | None = None) -> io.FileIO:
    """The file, open for appending, unbuffered; it and its folders are made if missing.

    A file with a second name, as some backups make, is copied first.
    """
    with contextlib.suppress(FileNotFoundError), open_to_read(path, inside=inside) as file:
        if os.fstat(file.fileno()).st_nlink > 1:
            write_durably(path, file.read(), inside=inside, synced=False)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    return io.FileIO(open_plain(path, flags, inside=inside), "ab")


@contextlib.contextmanager
def open_to_read(path: Path, *, inside: Path | None = None) -> Generator[io.BufferedReader]:
    """Open a plain file to read; raises OSError for a link, a pipe, or nothing."""
    with os.fdopen(open_plain(path, os.O_RDONLY, inside=inside), "rb") as file:
        yield file


def read_plainly(path: Path, most: int = 64 * 1024, *, inside: Path | None = None) -> str | None:
    """The text of a small plain file; None for anything else, or if there is none."""
    with contextlib.suppress(OSError, UnicodeError):
        with open_to_read(path, inside=inside) as file:
            content = file.read(most + 1)
        return content.decode() if len(content) <= most else None
    return None


def refuse_unsafe(path: Path, *, inside: Path | None = None) -> None:
    """Raise UnsafePath if a link or a special file is in the path; a missing file is fine."""
    way = _way(path, inside)
    with contextlib.suppress(FileNotFoundError), _opened(way, way.names[:-1]) as folder:
        _plain_stat(folder, way)


def make_folder(path: Path, *, inside: Path | None = None) -> None:
    """Make the folder and its parents, durably."""
    way = _way(path, inside)
    try:
        with _opened(way, way.names, make=True):
            pass
    except NotADirectoryError:
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        raise


def fsync_dir(path: Path | str, *, dir_fd: int | None = None) -> None:
    """Make the folder's entries durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        _sync(fd)
    finally:
        os.close(fd)


def sync_all(*paths: Path) -> None:
    """Make everything on the file systems of these paths durable: content and names.

    For many files that other programs wrote: git syncs an object and never its name, and an agent
    syncs nothing.
    """
    for path in {path.stat().st_dev: path for path in paths}.values():
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _sync_file_system(fd, path)
        finally:
            os.close(fd)


def _way(path: Path, inside: Path | None) -> _Way:
    """Start at the trusted folder, else next to Windlass's own, else at the nearest folder."""
    path = path.absolute()
    if inside is None:
        own = (folder.parent for folder in reversed(path.parents) if folder.name == OWN)
        inside = next(own, None) or next(folder for folder in path.parents if folder.is_dir())
    names = path.relative_to(inside.absolute()).parts
    if not names or ".." in names:
        why = f"{path} does not lie inside {inside}"
        raise UnsafePath(why, about=str(path), hint="name a file in it")
    return _Way(inside, names)


@contextlib.contextmanager
def _opened(way: _Way, names: tuple[str, ...], *, make: bool = False) -> Generator[int]:
    """Open the folder that these names lead to, each in the one before."""
    with contextlib.ExitStack() as held:
        at = os.open(way.top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        held.callback(os.close, at)
        for count in range(1, len(names) + 1):
            flags = _WAY if count < len(names) else _FOLDER
            at = _step(way, names[:count], at, flags, make=make)
            held.callback(os.close, at)
        yield at


@contextlib.contextmanager
def _opened_folder(path: Path) -> Generator[int]:
    way = _way(path / "file", None)
    with _opened(way, way.names[:-1]) as folder:
        yield folder


def _step(way: _Way, names: tuple[str, ...], at: int, flags: int, *, make: bool) -> int:
    name = names[-1]
    try:
        return os.open(name, flags, dir_fd=at)
    except OSError as error:
        if not make or not isinstance(error, FileNotFoundError):
            raise _explained(error, at, way, names, "folder") from None
    with contextlib.suppress(FileExistsError):  # another process was quicker
        os.mkdir(name, dir_fd=at)
        fsync_dir(".", dir_fd=at)  # `at` itself may be O_PATH, which cannot be synced
    try:
        return os.open(name, flags, dir_fd=at)
    except OSError as error:
        raise _explained(error, at, way, names, "folder") from None


def _plain_stat(folder: int, way: _Way) -> os.stat_result | None:
    """The file's status, if it exists; raises if it is not a plain file or folder."""
    try:
        found = os.stat(way.names[-1], dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _refuse_special(found, way, way.names)
    return found


def _refuse_special(
    found: os.stat_result, way: _Way, names: tuple[str, ...], plain: str = "file"
) -> None:
    if (kind := _KINDS.get(stat.S_IFMT(found.st_mode))) is None:
        return
    raise UnsafePath(
        f"{way.shown(names)} is {kind}, and Windlass neither reads nor writes through one",
        about=way.shown(names),
        hint=f"remove it, or put a plain {plain} in its place",
    )


def _explained(
    error: OSError, at: int, way: _Way, names: tuple[str, ...], plain: str = "file"
) -> OSError:
    """The error in plain words, if a link or a special file caused it."""
    swapped = error.errno in {errno.ENOTDIR, errno.ELOOP}
    try:
        found = os.stat(names[-1], dir_fd=at, follow_symlinks=False)
        _refuse_special(found, way, names, plain)
        swapped = swapped and stat.S_ISDIR(found.st_mode) == (plain == "folder")
    except UnsafePath as unsafe:
        return unsafe
    except FileNotFoundError:
        pass  # it is gone again
    except OSError:
        swapped = False
    if swapped:
        return UnsafePath(
            f"{way.shown(names)} was replaced while Windlass opened it; nothing was written",
            about=way.shown(names),
            hint="see which program changes it, then repeat the command",
        )
    return type(error)(error.errno, error.strerror, str(way.top.joinpath(*names)))


def _replace(
    folder: int, name: str, data: bytes, draft: int, mode: int | None, *, synced: bool
) -> None:
    # Not derived from the target's name, which may already have the maximum length.
    temp = f"{_PREFIX}{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    # A private file must never be readable, not even before fchmod.
    fd = os.open(temp, flags, 0o644 if mode is None else 0o644 & mode | 0o600, dir_fd=draft)
    try:
        with os.fdopen(fd, "wb") as file:
            if mode is not None:
                os.fchmod(fd, mode)
            file.write(data)
            file.flush()
            if synced:
                _sync(fd)
        os.rename(temp, name, src_dir_fd=draft, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):  # report the first failure
            os.unlink(temp, dir_fd=draft)
        raise


def _sync_file_system(fd: int, path: Path) -> None:
    if (syncfs := _syncfs()) is None:
        os.sync()
        _sync(fd)  # also flushes the drive's cache
    elif syncfs(fd) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(path))


@cache
def _syncfs() -> Callable[[int], int] | None:
    """The C library's `syncfs`, if it has one; Python does not offer it."""
    return getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)


def _sync(fd: int) -> None:
    if _FULL_SYNC is not None:
        # Not every volume supports it; fsync always works.
        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, _FULL_SYNC)
            return
    os.fsync(fd)


def is_folder(path: Path) -> bool:
    """Whether a folder is there; a link to one does not count."""
    return path.is_dir() and not path.is_symlink()


async def remove(*paths: Path) -> None:
    """Remove files, links and folders, if they exist; large folders in a thread."""
    full = [path for path in paths if not _is_gone_at_once(path)]
    if full:
        await anyio.to_thread.run_sync(remove_here, *full)


def remove_here(*paths: Path) -> None:
    """The same, in this thread."""
    for path in paths:
        if not _is_gone_at_once(path):
            remove_tree(path)


def _is_gone_at_once(path: Path) -> bool:
    """Remove anything but a folder with entries, which takes longer."""
    if is_folder(path):
        try:
            path.rmdir()
        except OSError:
            return False
    else:
        path.unlink(missing_ok=True)
    return True


def remove_tree(path: Path) -> None:
    try:
        shutil.rmtree(path)
    except (PermissionError, RecursionError):
        # A read-only folder keeps its entries; a very deep one exceeds Python's recursion limit.
        _open_up(path)
        subprocess.run(["rm", "-rf", "--", path], check=True)


def _open_up(path: Path) -> None:
    """Make every folder writable, the outer before the inner."""
    folders = [str(path)]
    while folders:
        # rm also handles folders beyond the longest path.
        with contextlib.suppress(OSError):
            folder = folders.pop()
            os.chmod(folder, 0o700)  # noqa: PTH101  a Path per folder is slow in a deep tree
            with os.scandir(folder) as entries:
                folders += [e.path for e in entries if e.is_dir(follow_symlinks=False)]
