"""Ends the processes that a box started and did not end, found by the mark that they inherit.

Law: only processes of this user, only those with the mark (or of the named session), never this
process. Each is held by a pidfd before it is examined, and signalled through it, so a pid that the
kernel has reused is never hit.

A mark is `<run>:<random>`, where the run may have parts between slashes; any whole leading part
matches all that begins with it, and no other: `plan/1` does not match `plan/10`.
Below level bwrap a process that clears its environment and leaves its session escapes this; inside
bwrap none does, because the kernel ends the whole pid namespace.
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
"""Seconds to keep ending processes that start again or are slow to die."""


def mark(run: str) -> str:
    """A new mark for a box of that run."""
    return f"{run}:{secrets.token_hex(8)}"


def end_leftovers(marker_prefix: str, *, session: int | None = None, grace: float = 0.0) -> int:
    """End all processes with the mark or of the session; return how many there were.

    With `grace`, they get SIGTERM first and that many seconds to end by themselves.
    """
    if not marker_prefix.rstrip("/:"):
        message = "an empty mark would end every run's processes"
        raise ValueError(message)
    if sys.platform != "linux":
        return _end_group(session, grace)
    found: set[int] = set()
    if grace > 0:
        found |= _end_once(marker_prefix, session, signal.SIGTERM, grace)
    # Repeat until none is left: a process that forks while it is ended shows in the next round.
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        ended = _end_once(marker_prefix, session, signal.SIGKILL, 1.0)
        if not ended:
            break
        found |= ended
    return len(found)


def is_gone(pid: int, wait: float) -> bool:
    """Whether a process has ended, or does so within that time; in doubt it has not.

    The first process of a pid namespace ends when all others in it have.
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
    """Signal all present processes and wait until they are gone, up to `wait` seconds."""
    ended: set[int] = set()
    with ExitStack() as held:
        gone = select.poll()
        for pid, handle in _living(prefix, session):
            held.callback(os.close, handle)
            ended.add(pid)
            gone.register(handle, select.POLLIN)
            with suppress(OSError):  # it ended by itself, or changed its user
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
    """Each live process of ours that belongs to the box, with its pidfd."""
    for pid in _pids_of_ours():
        if not _belongs(pid, prefix, session):
            continue
        try:
            handle = os.pidfd_open(pid)
        except OSError:
            continue
        # Check again: with the pidfd open, the pid cannot be reused.
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
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 (a Path would double the cost)
            variables = b"\0" + file.read() + b"\0"
    except OSError:
        return False
    wanted = f"\0{MARKER}={prefix.rstrip('/:')}".encode()
    return any(wanted + end in variables for end in (b"\0", b":", b"/"))


def _is_over(handle: int, wait: float = 0.0) -> bool:
    """Whether it has ended: a zombie is still in /proc."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(wait * 1000))


def _end_group(group: int | None, grace: float) -> int:
    """Without /proc, only the process group can be found."""
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
