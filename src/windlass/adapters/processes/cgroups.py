"""Control groups: the kernel's own count of what all processes of one call use together.

Law: one group per call. Its bounds are set before the program starts, and the program is in it from
its first instruction. When the call ends, every process left in the group is killed and the group
is removed. Groups of a killed Windlass are removed at the next start.

A group is made below the one that Windlass is in (version 1), or the nearest that may hold groups
(version 2), and only where this user may do so: in a delegated tree, or as root where systemd does
not manage the tree. Elsewhere there is none, and limits.py looks at processes instead.

The bounds are a little wider than the limits, because the kernel also counts its own tables and
caches: Windlass ends a box beyond its limits and says why; the bound stops one that is faster.
"""

import fcntl
import os
import re
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

NAME = "windlass-"
"""Begins the name of every group of ours."""

PATIENCE = 2.0
"""Seconds to keep killing; a group that is still busy is left to the next start."""

CONTROLLERS = frozenset({"memory", "pids"})

_SYSTEMD = Path("/run/systemd/system")
_ROOM = 32_000_000
"""Bytes on top of the limit and an eighth of it: what the kernel needs for a few processes."""

_ENTER = """\
while [ "$1" != -- ]; do echo 0 > "$1/cgroup.procs" || exit 126; shift; done; shift; exec "$@"
"""


class Bounds(Protocol):
    """The limits of a box; `limits.Limits` fits."""

    @property
    def memory(self) -> int: ...

    @property
    def processes(self) -> int: ...


class Place(Struct, frozen=True):
    """Where groups can be made: one folder, or with version 1 one for each controller."""

    version: Literal[1, 2]
    memory: Path
    pids: Path

    @property
    def folders(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys((self.memory, self.pids)))


class Use(Struct, frozen=True):
    """A group's usage."""

    memory: int
    """Bytes allocated by programs, and files in memory."""
    processes: int
    most: int
    """The most bytes it ever had, including what else the kernel counts."""
    killed: int
    """How many of its processes the kernel killed because the group was at its bound."""


class Group:
    """One call's group; made by `grouped`."""

    def __init__(self, place: Place, name: str) -> None:
        self._place = place
        self._memory, self._pids = place.memory / name, place.pids / name
        self._held: list[int] = []

    @property
    def folders(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys((self._memory, self._pids)))

    def make(self, bounds: Bounds) -> None:
        """Make it with its bounds, and lock it: the lock shows that its owner is alive."""
        for folder in self.folders:
            folder.mkdir()
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            self._held.append(handle)
            fcntl.flock(handle, fcntl.LOCK_EX)
        most = bounds.memory + bounds.memory // 8 + _ROOM
        if self._place.version == 1:
            _write(self._memory / "memory.limit_in_bytes", most)
            with suppress(OSError):  # not every kernel counts swap
                _write(self._memory / "memory.memsw.limit_in_bytes", most)
        else:
            _write(self._memory / "memory.max", most)
            with suppress(OSError):
                _write(self._memory / "memory.swap.max", 0)
            with suppress(OSError):
                _write(self._memory / "memory.oom.group", 1)
        # Threads count here; limits.py counts processes.
        _write(self._pids / "pids.max", 2 * bounds.processes + 64)

    def entered(self, argv: Sequence[str]) -> list[str]:
        """The command line that enters the group and then becomes the command."""
        return ["/bin/sh", "-c", _ENTER, "sh", *map(str, self.folders), "--", *argv]

    def join(self, process: int) -> None:
        """Put a process that waits to become the command into the group."""
        for folder in self.folders:
            _write(folder / "cgroup.procs", process)

    def use(self) -> Use:
        first = self._place.version == 1
        stat = _numbers(self._memory / "memory.stat")
        names = ("total_rss", "total_shmem") if first else ("anon", "shmem")
        events = _numbers(self._memory / ("memory.oom_control" if first else "memory.events"))
        peak = self._memory / ("memory.max_usage_in_bytes" if first else "memory.peak")
        memory = sum(stat.get(name, 0) for name in names)
        return Use(
            memory=memory,
            processes=len(_members(self._pids)),
            most=max(memory, _number(peak)),
            killed=events.get("oom_kill", 0),
        )

    def end(self) -> None:
        """Kill the processes in it, and remove it."""
        _remove(self.folders)
        while self._held:
            os.close(self._held.pop())


@contextmanager
def grouped(bounds: Bounds) -> Generator[Group | None]:
    """A new group with these bounds, or None if groups are not available."""
    place = where()
    group = _made(place, bounds) if isinstance(place, Place) else None
    try:
        yield group
    finally:
        if group is not None:
            group.end()


def is_plain_program(name: str, folder: Path, environment: Mapping[str, str]) -> bool:
    """Whether the kernel will certainly start it, so that a shell in its group can exec it.

    That shell would turn a missing program, or a file that is not one, into a failing command;
    without a sandbox it is started without a group, and the error shows.
    """
    found = shutil.which(folder / name if "/" in name else name, path=environment.get("PATH"))
    try:
        with open(found or "", "rb") as file:  # noqa: PTH123 (a Path would double the cost)
            return file.read(4).startswith((b"#!", b"\x7fELF"))
    except OSError:
        return False


@cache
def where() -> Place | str:
    """Where groups can be made, or why not; removes groups of a killed Windlass."""
    if sys.platform != "linux":
        return "this system has no control groups"
    try:
        own = Path("/proc/self/cgroup").read_text(encoding="utf-8")
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    except OSError as error:
        return f"/proc cannot be read: {error.strerror}"
    found = find_place(own, mounts)
    if isinstance(found, Place):
        remove_leftovers(found)
    return found


def find_place(own: str, mounts: str) -> Place | str:
    """Find where groups can be made, from /proc's text about this process and the mounts."""
    trees = dict(_trees(own, mounts))
    second = trees.get("")
    if second is not None and (folder := _delegated(*second)) is not None:
        return Place(2, folder, folder)
    if trees.keys() >= CONTROLLERS:
        (memory, _), (pids, _) = trees["memory"], trees["pids"]
        if all(_may_hold(folder) for folder in (memory, pids)):
            return Place(1, memory, pids)
    if not trees:
        return "no control groups are mounted"
    return "no control group is delegated to this user"


def remove_leftovers(place: Place) -> int:
    """Remove the groups that no live Windlass holds, with their processes; return how many."""
    count = 0
    for folder in place.folders:
        for left in folder.glob(f"{NAME}*"):
            with suppress(OSError):
                handle = os.open(left, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    count += _remove((left,))
                finally:
                    os.close(handle)
    return count


def _made(place: Place, bounds: Bounds) -> Group | None:
    group = Group(place, f"{NAME}{os.getpid()}-{secrets.token_hex(4)}")
    try:
        group.make(bounds)
    except OSError:  # full, or no longer ours: go on without a group
        group.end()
        return None
    return group


def _trees(own: str, mounts: str) -> Iterator[tuple[str, tuple[Path, Path]]]:
    """For each controller ("" for version 2) the folder of this process, and the mount."""
    paths: dict[str, str] = {}
    for line in own.splitlines():
        _, names, path = line.split(":", 2)
        paths |= dict.fromkeys(names.split(","), path)
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        root, mount = (_unquoted(word) for word in before.split()[3:5])
        kind, _, options = after.split(" ", 2)
        names = {"cgroup": options.strip().split(","), "cgroup2": [""]}.get(kind, [])
        for name in names:
            inside = os.path.relpath(paths.get(name, ".."), root)
            if name in {*CONTROLLERS, ""} and not inside.startswith(".."):
                yield name, (Path(mount) / inside, Path(mount))


def _unquoted(word: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), word)


def _delegated(own: Path, mount: Path) -> Path | None:
    """Find the nearest folder that may hold groups with both controllers.

    In version 2 a group holds either processes or other groups with controllers, so it is mostly a
    folder above. The search must not leave a group that bounds Windlass itself.
    """
    for folder in (own, *own.parents):
        if not folder.is_relative_to(mount):
            return None
        if _may_hold(folder) and _enable(folder):
            return folder
        if _read(folder / "memory.max").strip() not in {"", "max"}:
            return None
    return None


def _enable(folder: Path) -> bool:
    if not set(_read(folder / "cgroup.controllers").split()) >= CONTROLLERS:
        return False
    given = folder / "cgroup.subtree_control"
    if set(_read(given).split()) >= CONTROLLERS:
        return True
    try:
        given.write_text("+memory +pids", encoding="utf-8")
    except OSError:  # it holds processes
        return False
    return True


def _may_hold(folder: Path) -> bool:
    """Whether this user may make groups in this folder."""
    try:
        owner = folder.stat().st_uid
    except OSError:
        return False
    if not os.access(folder, os.W_OK) or not os.access(folder / "cgroup.procs", os.W_OK):
        return False
    if os.geteuid() != 0:
        return owner == os.geteuid()
    return not _SYSTEMD.is_dir() or any(map(_is_marked, (folder, *folder.parents)))


def _is_marked(folder: Path) -> bool:
    """Whether systemd marked the folder as delegated."""
    for name in ("user.delegate", "trusted.delegate"):
        with suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return True
    return False


def _remove(folders: Sequence[Path]) -> bool:
    """Kill the processes in these folders, and remove them; whether they are gone."""
    left = [folder for folder in folders if not _is_removed(folder)]
    deadline = time.monotonic() + PATIENCE
    while left and time.monotonic() < deadline:
        for folder in left:
            _kill(folder)
        left = [folder for folder in left if not _is_removed(folder)]
        if left:
            time.sleep(0.002)
    return not left


def _is_removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _kill(folder: Path) -> None:
    with suppress(OSError):
        _write(folder / "cgroup.kill", 1)
        return
    with suppress(OSError):
        _write(folder / "pids.max", 0)  # no fork can outrun this
    for pid in _members(folder):
        with suppress(OSError):
            handle = os.pidfd_open(pid)
            try:
                # Check again: with the pidfd open, the pid cannot be reused.
                if pid in _members(folder):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
            finally:
                os.close(handle)


def _members(folder: Path) -> list[int]:
    return [int(word) for word in _read(folder / "cgroup.procs").split()]


def _numbers(path: Path) -> dict[str, int]:
    words = (line.split() for line in _read(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in words if pair[1:] and pair[1].isdecimal()}


def _number(path: Path) -> int:
    text = _read(path).strip()
    return int(text) if text.isdecimal() else 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _write(path: Path, value: int) -> None:
    # Must exist: a new file outside a cgroup tree would look like a bound.
    with path.open("r+", encoding="utf-8") as file:
        file.write(str(value))
