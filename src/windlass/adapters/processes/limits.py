"""Limits of one box: memory, processes and disk, summed over everything that runs in it.

Law 1: the kernel enforces what it can. Inside bubblewrap no process gets more memory than the whole
box may have (RLIMIT_DATA), and a user other than root no more processes (RLIMIT_NPROC). With
control groups the kernel also limits the sum over a box (`cgroups.py`); without them Windlass looks
at every process twice a second. A box beyond its limits is ended as a whole.
Law 2: disk counts what the call wrote and is still there: the blocks of files whose status changed
since the call began (no program can set that time back), and of deleted files that it holds open.
An entry counts as at least one block, so a flood of empty files counts.

The file system reports its use for free. The workspace is walked only when that use has grown or a
while has passed; the longer a walk takes, the rarer it is. A folder that cannot be read counts as
all the growth of the file system.
"""

import math
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import anyio
import anyio.to_thread
from msgspec import Struct, field

from windlass.adapters.clock import SystemClock
from windlass.adapters.processes.cgroups import Group
from windlass.core.settings import Level

BLOCK = 4096
"""The least that an entry counts for, in bytes."""

PAUSE = 5.0
"""The least seconds between two walks while the file system has not grown."""

WALK_SHARE = 50
"""Walks may take one part in this many of the time."""

GROWTH = 0.125
"""Growth of the file system, as a part of the bound, after which the workspace is walked at
once."""

BRIEF = 0.005
"""Seconds that the last look may always take."""

SLACK = 0.1
"""Seconds by which file times may be behind the clock."""

LEAST = 64_000_000
"""Bytes that a call may write on an almost full disk; the disk itself refuses first."""


class Seen(Struct, frozen=True):
    """The result of a walk."""

    written: int
    whole: bool
    """False if a folder could not be read."""


class DiskWatch:
    """Watches the workspace of one call."""

    def __init__(self, folder: Path, bound: int | None) -> None:
        """Take the bound in bytes; by default half of what is free now."""
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
        """How the call exceeds its bound now, in words, or None; `pids` gives its processes.

        The `last` look is when the call has ended. Others may have freed meanwhile what this call
        took, so it always walks; for a short time only, unless the file system has grown.
        """
        now = time.monotonic()
        used, _ = _used(self._folder)
        grown = used - self._known > max(BLOCK, int(self.bound * GROWTH))
        if not grown and not last and now < self._due:
            return None
        seconds = max(BRIEF, (now - self._begin) / WALK_SHARE) if last and not grown else None
        seen = walked(self._folder, self._since(now), self.bound, seconds)
        written = seen.written
        if written <= self.bound:
            written += _held_open(pids(), self._folder)
        if not seen.whole:
            written = max(written, used - self._used)
        after = time.monotonic()
        self._known, self._due = used, after + max(PAUSE, WALK_SHARE * (after - now))
        if written <= self.bound:
            return None
        return (
            f"it wrote {written / 1e6:.0f} MB into its workspace, more than the "
            f"{self.bound / 1e6:.0f} MB it may ([sandbox] disk_mb)"
        )

    def _since(self, now: float) -> float:
        """When the call began, even if the clock was set back since."""
        return min(self._clock, _wall_clock() - (now - self._begin)) - SLACK


def walked(folder: Path, since: float, enough: int, seconds: float | None = None) -> Seen:
    """Add up what was written below the folder since then; stop once it is more than enough.

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
        except FileNotFoundError:  # deleted meanwhile
            continue
        except OSError:  # not readable, or a path that is too long
            whole = False
    return Seen(written, whole)


def _held_open(pids: Iterable[int], folder: Path) -> int:
    """The size of files that these processes have deleted and still hold open."""
    try:
        device = folder.stat().st_dev
    except OSError:
        return 0
    found: dict[int, int] = {}
    for pid in pids:
        try:
            names = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208 (a Path each would double the cost)
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
    """The time as the file system has it."""
    return SystemClock().now().timestamp()


def _used(folder: Path) -> tuple[int, int]:
    """The used bytes of the file system, and those free for this user."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0, sys.maxsize
    return (found.f_blocks - found.f_bfree) * found.f_frsize, found.f_bavail * found.f_frsize


LOOK = 0.5
"""Seconds between two looks at every process."""

GLANCE = 0.05
"""Seconds between two cheap looks at the number of processes on the machine: a fork bomb has
thousands by the time of the next full look, and then leaves no time for it."""

SHARE = 0.75
"""The part of the machine's memory that a box gets by default."""


def _most_memory() -> int:
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * SHARE)


class Limits(Struct, frozen=True, kw_only=True):
    memory: int = field(default_factory=_most_memory)
    """Bytes of their own; what they share with others, such as a program's code, is not counted."""
    processes: int = 4096
    disk: int | None = None
    """Bytes that a call may write into its workspace; by default half of what is free."""


class Process(Struct, frozen=True):
    pid: int
    parent: int
    group: int
    memory: int


def bounded(level: Level, limits: Limits, argv: list[str], group: Group | None = None) -> list[str]:
    """The command line, with the limits that the kernel can enforce."""
    argv = _by_process(level, limits, argv)
    return argv if group is None else group.entered(argv)


def _by_process(level: Level, limits: Limits, argv: list[str]) -> list[str]:
    if level != "bwrap" or (program := _prlimit()) is None:
        return argv
    asked = [f"--data={limits.memory}"]
    if os.geteuid() != 0:
        # It counts all of the user's processes and threads, so those that run already are added.
        asked.append(f"--nproc={limits.processes + _running()}")
    return [program, *asked, *argv]


async def overrun(
    level: Level,
    limits: Limits,
    root: int,
    mark: str,
    *,
    group: Group | None = None,
    disk: DiskWatch | None = None,
) -> str:
    """Wait until the box exceeds its limits; return how, in words."""
    # Inside bubblewrap every process keeps its ancestors; reading marks costs a look at each.
    mark = "" if level == "bwrap" else mark
    crowd, due = _running() + limits.processes, anyio.current_time() + LOOK
    while True:
        # Sleep first: most commands end before the first look.
        await anyio.sleep(GLANCE)
        if _running() <= crowd and anyio.current_time() < due:
            continue
        found = await anyio.to_thread.run_sync(
            excess, limits, root, mark, group, disk, abandon_on_cancel=True
        )
        if found is not None:
            return found
        # The new processes may be others'; only further growth leads to a look before its time.
        crowd, due = max(crowd, _running() + limits.processes // 2), anyio.current_time() + LOOK


def excess(
    limits: Limits,
    root: int,
    mark: str,
    group: Group | None = None,
    disk: DiskWatch | None = None,
) -> str | None:
    """How the box that began with this process exceeds its limits now, or None."""
    found = (
        excess_of_group(limits, group)
        if group is not None
        else _excess_of_processes(limits, root, mark)
    )
    if found is not None or disk is None:
        return found
    return disk.excess(lambda: [each.pid for each in _members(list(_table()), root, mark)])


def excess_of_group(limits: Limits, group: Group) -> str | None:
    """How the group exceeds the limits, or did when the kernel killed a process of it."""
    use = group.use()
    if use.processes > limits.processes:
        return _too_many(use.processes, limits)
    if use.killed:
        return _too_much(use.most, limits)
    # Files in memory may fill the whole limit, and programs need some memory too.
    allowed = limits.memory + limits.memory // 16
    return _too_much(use.memory, limits) if use.memory > allowed else None


def _excess_of_processes(limits: Limits, root: int, mark: str) -> str | None:
    members = _members(list(_table()), root, mark)
    if len(members) > limits.processes:
        return _too_many(len(members), limits)
    used = sum(process.memory for process in members)
    # Memory shared with forks was counted for each; the fair share is slower to read.
    if used > limits.memory and (used := sum(map(_fair_share, members))) > limits.memory:
        return _too_much(used, limits)
    return None


def _too_many(count: int, limits: Limits) -> str:
    return (
        f"it had {count} processes, more than the {limits.processes} it may have "
        "([sandbox] processes)"
    )


def _too_much(used: int, limits: Limits) -> str:
    return (
        f"it had {used / 1e6:.0f} MB of memory, more than the {limits.memory / 1e6:.0f} MB it "
        "may have ([sandbox] memory_mb)"
    )


def _members(table: list[Process], root: int, mark: str) -> list[Process]:
    """The root's descendants, its process group, and all with the mark of its box."""
    children: dict[int, list[Process]] = {}
    for process in table:
        children.setdefault(process.parent, []).append(process)
    found = {p.pid: p for p in table if root in {p.pid, p.group} or _is_marked(p, mark)}
    waiting = list(found)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child.pid not in found:
                found[child.pid] = child
                waiting.append(child.pid)
    return list(found.values())


def _is_marked(process: Process, mark: str) -> bool:
    """Whether the process carries the mark of this box."""
    if not mark or sys.platform != "linux":
        return False
    try:
        return mark.encode() in Path(f"/proc/{process.pid}/environ").read_bytes()
    except OSError:
        return False


def _table() -> Iterator[Process]:
    return _from_proc() if sys.platform == "linux" else _from_ps()


def _from_proc() -> Iterator[Process]:
    page = os.sysconf("SC_PAGE_SIZE")
    for name in os.listdir("/proc"):  # noqa: PTH208 (a Path each would double the cost)
        if name.isdigit():
            # A process that ended meanwhile has nothing any more.
            with suppress(OSError):
                stat = _read(f"/proc/{name}/stat").rpartition(")")[2].split()
                _, resident, shared, *_ = map(int, _read(f"/proc/{name}/statm").split())
                own = max(0, resident - shared) * page
                yield Process(int(name), int(stat[1]), int(stat[2]), own)


def _fair_share(process: Process) -> int:
    """The process's memory, with shared memory divided among those who share it."""
    try:
        lines = _read(f"/proc/{process.pid}/smaps_rollup").splitlines()
    except OSError:
        return process.memory if sys.platform != "linux" else 0
    shares = dict(line.split(":", 1) for line in lines[1:])
    names = ("Pss_Anon", "Pss_Shmem") if "Pss_Anon" in shares else ("Pss",)
    return sum(int(shares[name].split()[0]) * 1024 for name in names)


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 (as above)
        return file.read()


def _from_ps() -> Iterator[Process]:
    asked = ("ps", "-axo", "pid=,ppid=,pgid=,rss=")
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    yield from _parsed(done.stdout.splitlines())


def _parsed(lines: Iterable[str]) -> Iterator[Process]:
    for line in lines:
        pid, parent, group, kilobytes = map(int, line.split())
        yield Process(pid, parent, group, kilobytes * 1024)


def _running() -> int:
    """The number of threads on this machine, of all users; 0 if it is not known."""
    if sys.platform != "linux":
        return 0
    return int(_read("/proc/loadavg").split()[3].partition("/")[2])


@cache
def _prlimit() -> str | None:
    return shutil.which("prlimit", path="/usr/bin:/bin:/usr/sbin:/sbin")
