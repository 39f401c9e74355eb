"""Locks that the kernel holds, and frees when the holder ends in any way.

`PlanLock`: one run of a plan at a time. Its file is never removed: otherwise two processes could
each lock a file of that name. Its content is for messages and decides nothing.

`exclusively`: one process at a time in a repository. Windlass and the git it starts hold the file,
so the process that gets it knows that nothing of an earlier holder is alive.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import msgspec
from msgspec import Struct

from windlass.adapters.files import make_folder, open_plain
from windlass.errors import Busy

PATIENCE = 0.2
"""Seconds to try: the holder may only be asking (see `holder`), or be ending."""

UNKNOWN = 0
"""The pid of a holder that is not known."""


class _Holder(Struct, frozen=True, kw_only=True):
    pid: int
    boot: str
    started: str
    """In kernel ticks; with `boot` it tells a process from a later one with the same pid."""
    plan: str


class PlanLock:
    """Held until the end of the `with` block, or of the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def __enter__(self) -> Self:
        """Take the lock, or raise Busy with the holder's pid."""
        # Close-on-exec, or an agent that outlives its run would keep the lock.
        fd = open_plain(self._path, os.O_RDWR | os.O_CREAT)
        try:
            _take(fd, self._path.parent.name)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        return self

    @property
    def held(self) -> bool:
        return self._fd is not None

    def __exit__(self, *_: object) -> None:
        """Release the lock; the file stays, empty."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            # The content is only for messages: no run fails over it.
            with contextlib.suppress(OSError):
                os.ftruncate(fd, 0)
            os.close(fd)


def holder(path: Path) -> int | None:
    """The pid of the run that holds the lock, UNKNOWN if it is not known, None if it is free.

    Asking takes the lock for an instant, shared with others who ask; a run that begins in that
    instant waits for it.
    """
    try:
        fd = open_plain(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return None if _locked(fd, fcntl.LOCK_SH) else _pid(fd)
    finally:
        os.close(fd)


def _take(fd: int, plan: str) -> None:
    if not _locked(fd, fcntl.LOCK_EX, patience=PATIENCE):
        raise Busy(
            f"plan {plan!r} is already running (PID {_pid(fd) or 'unknown'})",
            about=plan,
            hint="`windlass status` shows it",
        )
    pid = os.getpid()
    me = _Holder(pid=pid, boot=_boot(), started=_started(pid), plan=plan)
    # In place: a renamed file would not be the locked one.
    os.ftruncate(fd, 0)
    os.pwrite(fd, msgspec.json.encode(me), 0)


def _locked(fd: int, how: int, *, patience: float = 0.0) -> bool:
    def take() -> bool:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(fd, how | fcntl.LOCK_NB)
            return True
        return False

    return wait_until(take, patience)


def _pid(fd: int) -> int:
    """The pid in the file, if that process still runs."""
    try:
        found = msgspec.json.decode(os.pread(fd, 4096, 0), type=_Holder)
    except (msgspec.MsgspecError, UnicodeError):
        return UNKNOWN
    # A dead run's pid stays, and the next holder may not have written its own yet.
    alive = found.boot == _boot() and found.started == _started(found.pid)
    return found.pid if alive else UNKNOWN


def _boot() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


def _started(pid: int) -> str:
    with contextlib.suppress(OSError, IndexError):
        # A program's name may contain spaces and brackets; the last bracket ends it.
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[19]
    return ""


EXCLUSIVE_PATIENCE = 60.0
"""Seconds to wait for a live holder, or for the git of a dead one."""


@contextmanager
def exclusively(file: Path, busy: Busy) -> Generator[int]:
    """Hold the file; yields its descriptor, for git to inherit. Raises `busy` in the end."""
    make_folder(file.parent)
    fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not _locked(fd, fcntl.LOCK_EX, patience=EXCLUSIVE_PATIENCE):
            raise busy
        yield fd
    finally:
        os.close(fd)


def wait_until(take: Callable[[], bool], patience: float) -> bool:
    """Call `take` until it returns True or the time is up; whether it did."""
    deadline = time.monotonic() + patience
    while not take():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.01)
    return True
