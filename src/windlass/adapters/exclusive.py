"""One at a time, told by the kernel: a file that is held by a process and by the git it starts.

Law: the process that gets the file knows that nothing of an earlier holder is alive, however it
ended; what that one left can be looked at and taken away. The file itself stays.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from windlass.adapters.files import make_folder
from windlass.errors import Busy

PATIENCE = 60.0
"""Seconds to wait for a holder that is alive, or for the git of one that died."""


@contextmanager
def alone(file: Path, busy: Busy) -> Generator[int]:
    """Hold the file; gives its number, for git to keep open too. Raises `busy` in the end."""
    make_folder(file.parent)
    fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not patiently(lambda: _flocked(fd), PATIENCE):
            raise busy
        yield fd
    finally:
        os.close(fd)


def patiently(take: Callable[[], bool], patience: float) -> bool:
    """Try it until it works, or so many seconds have passed; whether it worked."""
    deadline = time.monotonic() + patience
    while not take():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True


def _flocked(fd: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
