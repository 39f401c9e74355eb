"""How much a call has written into its workspace, seen without walking through it all the time.

Law: what counts is what the call wrote and is still there: the blocks of files whose status changed
since the call began (no program can set that time back), and of files that it has deleted and still
holds open. An entry counts as one block at least, so that a flood of empty files is seen, too.

The file system says at once, and for nothing, how much of it is used. Only when that has grown, or
a while has passed, the workspace itself is walked through; the longer that takes, the rarer it is.
What cannot be looked into counts as everything by which the file system has grown.
"""

import math
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct

from windlass.adapters.clock import SystemClock

BLOCK = 4096
"""The least that an entry counts for, in bytes."""

PAUSE = 5.0
"""Seconds between two walks, at least, while the file system has not grown."""

SHARE = 50
"""A walk may take one part in so many of the time."""

GROWTH = 0.125
"""Of the bound: growth of the file system after which the workspace is walked at once."""

BRIEF = 0.005
"""Seconds that the last look may take in any case."""

SLACK = 0.1
"""Seconds by which times of files may be behind the clock."""

LEAST = 64_000_000
"""Bytes that a call may write on a disk that is all but full; the disk itself says no before."""


class Seen(Struct, frozen=True):
    """What a walk found."""

    written: int
    whole: bool
    """False where a folder could not be looked into."""


class DiskWatch:
    """Watches the workspace of one call."""

    def __init__(self, folder: Path, bound: int | None) -> None:
        """Take the bound in bytes; without one, it is half of what is free now."""
        self._folder = folder
        self._begin = time.monotonic()
        self._clock = _wall_clock()
        self._used, free = _used(folder)
        self.bound = max(free // 2, LEAST) if bound is None else bound
        self._known = self._used
        self._due = self._begin + PAUSE

    def excess(
        self, pids: Callable[[], Iterable[int]] = tuple, *, last: bool = False
    ) -> str | None:
        """Say by what the call is beyond its bound now, or None; `pids` gives its processes.

        The `last` look is when the call has ended. Others may have freed meanwhile what this call
        has taken, so it walks always; unless the file system has grown, only for a short time.
        """
        now = time.monotonic()
        used, _ = _used(self._folder)
        grown = used - self._known > max(BLOCK, int(self.bound * GROWTH))
        if not grown and not last and now < self._due:
            return None
        seconds = max(BRIEF, (now - self._begin) / SHARE) if last and not grown else None
        seen = walked(self._folder, self._since(now), self.bound, seconds)
        written = seen.written
        if written <= self.bound:
            written += _held_open(pids(), self._folder)
        if not seen.whole:
            written = max(written, used - self._used)
        after = time.monotonic()
        self._known, self._due = used, after + max(PAUSE, SHARE * (after - now))
        if written <= self.bound:
            return None
        return (
            f"it wrote {written / 1e6:.0f} MB into its workspace, more than the "
            f"{self.bound / 1e6:.0f} MB it may ([sandbox] disk_mb)"
        )

    def _since(self, now: float) -> float:
        """When the call began, also by a clock that was set back meanwhile."""
        return min(self._clock, _wall_clock() - (now - self._begin)) - SLACK


def walked(folder: Path, since: float, enough: int, seconds: float | None = None) -> Seen:
    """Add up what was written below the folder since then; stop once that is more than enough.

    With `seconds`, stop after that time, too.
    """
    written, whole = 0, True
    waiting = [str(folder)]
    until = math.inf if seconds is None else time.monotonic() + seconds
    while waiting and written <= enough and time.monotonic() < until:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode):
                        waiting.append(entry.path)
                    if found.st_ctime >= since:
                        written += max(BLOCK, found.st_blocks * 512)
        except FileNotFoundError:  # it went while it was looked at
            continue
        except OSError:  # closed to us, or deeper than a path can be long
            whole = False
    return Seen(written, whole)


def _held_open(pids: Iterable[int], folder: Path) -> int:
    """Add up the files that these processes have deleted and still hold open."""
    try:
        device = folder.stat().st_dev
    except OSError:
        return 0
    found: dict[int, int] = {}
    for pid in pids:
        try:
            names = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208 (a Path each costs as much again)
        except OSError:
            continue
        for name in names:
            try:
                seen = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116 (as above)
            except OSError:
                continue
            if seen.st_dev == device and not seen.st_nlink and stat.S_ISREG(seen.st_mode):
                found[seen.st_ino] = seen.st_blocks * 512
    return sum(found.values())


def _wall_clock() -> float:
    """Give the time as the file system has it."""
    return SystemClock().now().timestamp()


def _used(folder: Path) -> tuple[int, int]:
    """Give how many bytes of the file system are used, and how many are free for this user."""
    try:
        said = os.statvfs(folder)
    except OSError:
        return 0, sys.maxsize
    return (said.f_blocks - said.f_bfree) * said.f_frsize, said.f_bavail * said.f_frsize
