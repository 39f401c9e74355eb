"""The preloaded library and the file it is steered by.

Law: the library is built from its source where it is used, with the C compiler of that machine;
where there is none, `build` says so and the sweep makes do with the points Python itself can see.
"""

import ctypes
import hashlib
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from enum import IntEnum
from importlib.resources import files
from pathlib import Path

from msgspec import Struct

ENVIRONMENT = "WINDLASS_SHIM"
"""Names the control file to a process that is started with the library."""

_PATH_MAX = 4096
_HEAD = struct.Struct("=QQIiiIQ64s")
_SIZE = _HEAD.size + 3 * _PATH_MAX


class Mode(IntEnum):
    """What is to happen at the call that was named."""

    COUNT = 0
    KILL = 1
    FAIL = 2
    """That call fails, and no other."""
    FAIL_ON = 3
    """That call fails, and all after it."""
    LOG = 4
    """Nothing, but all is written down."""
    KILL_ONE = 5
    """The process that makes that call dies, and no other: a git, while Windlass goes on."""


class Hit(Struct, frozen=True):
    """What came of an order."""

    count: int
    """Calls in all."""
    fired: int
    """How many of them were hit."""
    what: str
    """The first of those, and its path."""
    where: str


class Control:
    """One control file: written before a process is started, read after it has ended."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self.log = path.with_suffix(".log")
        self._root = root
        self.order(Mode.COUNT)

    def order(self, mode: Mode, at: int = 0, *, error: int = 0) -> None:
        """Begin to count anew, with this to happen at that call."""
        head = _HEAD.pack(0, at, mode, error, 0, 0, 0, b"")
        texts = (b"", bytes(self._root), bytes(self.log))
        self.path.write_bytes(head + b"".join(text.ljust(_PATH_MAX, b"\0") for text in texts))

    def hit(self) -> Hit:
        """What happened."""
        data = self.path.read_bytes()
        count, _, _, _, _, _, fired, what = _HEAD.unpack_from(data)
        where = data[_HEAD.size : _HEAD.size + _PATH_MAX]
        return Hit(count, fired, _text(what), _text(where))


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode(errors="replace")


def build(folder: Path) -> Path | None:
    """The library, made in that folder unless it is there already; None without a compiler."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None or sys.platform != "linux":
        return None
    source = (files("windlass") / "testing" / "faults" / "shim.c").read_bytes()
    made = folder / f"shim-{hashlib.sha256(source).hexdigest()[:12]}.so"
    if not made.exists():
        building = made.with_suffix(f".{os.getpid()}")
        command = [compiler, "-O1", "-shared", "-fPIC", "-x", "c", "-", "-o", str(building), "-ldl"]
        done = subprocess.run(command, input=source, capture_output=True, check=False)
        if done.returncode != 0:  # a compiler without its headers is as good as none
            return None
        building.rename(made)
    return made


def take_part(control: Path) -> Callable[[str], None]:
    """Let this process be hit from here on; gives what writes a note into the log.

    It becomes the leader of its own group, which is what dies.
    """
    os.setpgid(0, 0)
    with control.open("r+b") as file, mmap.mmap(file.fileno(), _SIZE) as shared:
        fields = list(_HEAD.unpack_from(shared))
        fields[4] = os.getpgid(0)
        _HEAD.pack_into(shared, 0, *fields)
    library = ctypes.CDLL(None)
    if hasattr(library, "windlass_shim_attach"):
        if library.windlass_shim_attach(bytes(control)) != 0:
            raise OSError(f"the control file {control} cannot be mapped")
        return lambda text: library.windlass_shim_note(text.encode())
    return _listen(control)


_EVENTS = frozenset(
    {
        "open",
        "os.chmod",
        "os.link",
        "os.mkdir",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.symlink",
        "os.truncate",
        "subprocess.Popen",
        "windlass.recorded",
    }
)
"""The named points where there is no compiler: what Python tells of itself before it does it."""

_WRITELESS = frozenset({"subprocess.Popen", "windlass.recorded"})
"""Those that write nothing themselves, and so cannot fail for want of a disk."""


def _listen(control: Path) -> Callable[[str], None]:
    """Count what Python says it is about to do, and die or fail at the point that was named."""
    file = control.open("r+b")
    shared = mmap.mmap(file.fileno(), _SIZE)
    root = _text(shared[_HEAD.size + _PATH_MAX : _HEAD.size + 2 * _PATH_MAX])

    def hear(event: str, args: tuple[object, ...]) -> None:
        if event not in _EVENTS or not _concerns(event, args, root):
            return
        fields = list(_HEAD.unpack_from(shared))
        fields[0] += 1
        mode, hit = fields[2], fields[1] == fields[0]
        hit = hit or (mode == Mode.FAIL_ON and 0 < fields[1] < fields[0])
        hit = hit and (mode == Mode.KILL or event not in _WRITELESS)
        if hit and mode in {Mode.KILL, Mode.FAIL, Mode.FAIL_ON}:
            fields[6] += 1
            fields[7] = event.encode()
        _HEAD.pack_into(shared, 0, *fields)
        if hit and mode == Mode.KILL:
            os.killpg(os.getpgid(0), signal.SIGKILL)
        if hit and mode in {Mode.FAIL, Mode.FAIL_ON}:
            raise OSError(fields[3], os.strerror(fields[3]), str(args[0]))

    sys.addaudithook(hear)
    return lambda _text: sys.audit("windlass.recorded")


def _concerns(event: str, args: tuple[object, ...], root: str) -> bool:
    """Whether it changes something below the folder that is watched."""
    if event in _WRITELESS:
        return True
    if event == "open" and not (isinstance(args[2], int) and args[2] & (os.O_CREAT | os.O_TRUNC)):
        return False
    names = [os.fsdecode(arg) for arg in args if isinstance(arg, str | bytes)]
    # A name without a folder is relative to a descriptor, and only Windlass's own files are.
    return any(name.startswith(root) or not Path(name).is_absolute() for name in names if name)
