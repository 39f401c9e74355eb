"""Ends what a box started and did not end itself, told by the mark all its processes inherit.

Law: only processes of this user, only such as carry the mark (or belong to the session that was
named), never this process. Each is held by a pidfd before it is looked at and signalled through
it, so that a number the kernel has given to somebody else meanwhile can never be hit.

A mark is `<run>:<random>`, where the run may have parts between slashes; any whole leading part
of it names all that begins so, and no other: `plan/1` is not `plan/10`.
Below level bwrap a process that wipes its own environment and leaves its session escapes this;
inside bwrap nothing does, for there the kernel ends the whole pid namespace.
"""

import os
import secrets
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

MARKER = "WINDLASS_BOX"
"""The variable that carries the mark."""

PATIENCE = 5.0
"""How long, in seconds, to go on ending what keeps starting anew or is slow to die."""


def mark(run: str) -> str:
    """Make up the mark of a new box of that run."""
    return f"{run}:{secrets.token_hex(8)}"


def end_leftovers(marker_prefix: str, *, session: int | None = None, grace: float = 0.0) -> int:
    """End all that carries the mark, or is of the session; return how many there were.

    With a grace they are asked first, and have that many seconds to go by themselves.
    """
    if not marker_prefix.rstrip("/:"):
        message = "an empty mark would end every run's processes"
        raise ValueError(message)
    if sys.platform != "linux":
        return _end_group(session, grace)
    found: set[int] = set()
    if grace > 0:
        found |= _end_once(marker_prefix, session, signal.SIGTERM, grace)
    # Again until none is left: what forks while it is being ended shows in the next round.
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        ended = _end_once(marker_prefix, session, signal.SIGKILL, 1.0)
        if not ended:
            break
        found |= ended
    return len(found)


def is_gone(pid: int, wait: float) -> bool:
    """Whether a process has ended, or does so within that time; in doubt it has not.

    The first one of a pid namespace ends when all others in it have.
    """
    if sys.platform != "linux":
        return False
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    try:
        return _is_over(handle, wait)
    finally:
        os.close(handle)


def _end_once(prefix: str, session: int | None, number: signal.Signals, wait: float) -> set[int]:
    """Signal all that is there now and wait until it is gone, at most so long."""
    ended: set[int] = set()
    with ExitStack() as held:
        gone = select.poll()
        for pid, handle in _living(prefix, session):
            held.callback(os.close, handle)
            ended.add(pid)
            gone.register(handle, select.POLLIN)
            with suppress(OSError):  # it went by itself, or became somebody else's
                signal.pidfd_send_signal(handle, number)
        _until_gone(gone, len(ended), wait)
    return ended


def _until_gone(gone: select.poll, count: int, wait: float) -> None:
    deadline = time.monotonic() + wait
    while count and (left := deadline - time.monotonic()) > 0:
        for handle, _ in gone.poll(left * 1000):
            gone.unregister(handle)
            count -= 1


def _living(prefix: str, session: int | None) -> Iterator[tuple[int, int]]:
    """Give each living process of ours that belongs to the box, held by a pidfd."""
    for pid in _pids_of_ours():
        if not _belongs(pid, prefix, session):
            continue
        try:
            handle = os.pidfd_open(pid)
        except OSError:
            continue
        # Looked at once more, for only now the number cannot change hands.
        if _belongs(pid, prefix, session) and not _is_over(handle):
            yield pid, handle
        else:
            os.close(handle)


def _pids_of_ours() -> Iterator[int]:
    for name in os.listdir("/proc"):  # noqa: PTH208 (as below)
        if name.isdigit() and int(name) != os.getpid():
            with suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == os.geteuid():  # noqa: PTH116 (as below)
                    yield int(name)


def _belongs(pid: int, prefix: str, session: int | None) -> bool:
    try:
        if session is not None and os.getsid(pid) == session:
            return True
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 (a Path costs as much again)
            variables = b"\0" + file.read() + b"\0"
    except OSError:
        return False
    wanted = f"\0{MARKER}={prefix.rstrip('/:')}".encode()
    return any(wanted + end in variables for end in (b"\0", b":", b"/"))


def _is_over(handle: int, wait: float = 0.0) -> bool:
    """Tell a zombie: it is in /proc still, but there is nothing left to end."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(wait * 1000))


def _end_group(group: int | None, grace: float) -> int:
    """Where there is no /proc to look through: the process group is all that can be found."""
    if group is None:
        return 0
    with suppress(ProcessLookupError, PermissionError):
        if grace > 0:
            os.killpg(group, signal.SIGTERM)
            deadline = time.monotonic() + grace
            while time.monotonic() < deadline:
                os.killpg(group, 0)
                time.sleep(0.05)
        os.killpg(group, signal.SIGKILL)
        return 1
    return 0
