"""The preloaded library and the file that controls it.

Law: the library is compiled on the machine that uses it. Without a C compiler `build` returns None,
and a sweep uses only the points that Python itself can see.
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
"""The variable with the control file, for a process that is started with the library."""

_PATH_MAX = 4096
_HEAD = struct.Struct("=QQIiiIQ64s")
_SIZE = _HEAD.size + 3 * _PATH_MAX


class Mode(IntEnum):
    """What happens at the chosen call."""

    COUNT = 0
    KILL = 1
    FAIL = 2
    """Only that call fails."""
    FAIL_ON = 3
    """That call and all later ones fail."""
    LOG = 4
    """No fault; every call is logged."""
    KILL_ONE = 5
    """Only the process that makes the call is killed, such as a git while Windlass continues."""


class Hit(Struct, frozen=True):
    """The result of an order."""

    count: int
    """The number of calls."""
    fired: int
    """The number of calls that were hit."""
    what: str
    """The first call that was hit."""
    where: str
    """Its path."""


class Control:
    """One control file, written before a process starts and read after it ends."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self.log = path.with_suffix(".log")
        self._root = root
        self.order(Mode.COUNT)

    def order(self, mode: Mode, at: int = 0, *, error: int = 0) -> None:
        """Reset the count, and choose what happens at which call."""
        head = _HEAD.pack(0, at, mode, error, 0, 0, 0, b"")
        texts = (b"", bytes(self._root), bytes(self.log))
        self.path.write_bytes(head + b"".join(text.ljust(_PATH_MAX, b"\0") for text in texts))

    def hit(self) -> Hit:
        """The result of the last order."""
        data = self.path.read_bytes()
        count, _, _, _, _, _, fired, what = _HEAD.unpack_from(data)
        where = data[_HEAD.size : _HEAD.size + _PATH_MAX]
        return Hit(count, fired, _text(what), _text(where))


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode(errors="replace")


def build(folder: Path) -> Path | None:
    """Compile the library in that folder, unless it is there; None without a compiler."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None or sys.platform != "linux":
        return None
    source = (files("windlass") / "testing" / "faults" / "shim.c").read_bytes()
    made = folder / f"shim-{hashlib.sha256(source).hexdigest()[:12]}.so"
    if not made.exists():
        building = made.with_suffix(f".{os.getpid()}")
        command = [compiler, "-O1", "-shared", "-fPIC", "-x", "c", "-", "-o", str(building), "-ldl"]
        done = subprocess.run(command, input=source, capture_output=True, check=False)
        if done.returncode != 0:  # such as a compiler without headers
            return None
        building.rename(made)
    return made


def attach(control: Path) -> Callable[[str], None]:
    """Let faults hit this process from now on; returns a function that adds a note to the log.

    The process becomes the leader of its own group, and a kill hits the whole group.
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
    return _add_audit_hook(control)


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
"""The points without a compiler: audit events, which Python raises before it acts."""

_WRITELESS = frozenset({"subprocess.Popen", "windlass.recorded"})
"""Events that write nothing themselves, so a broken disk cannot make them fail."""


def _add_audit_hook(control: Path) -> Callable[[str], None]:
    """Count audit events, and die or fail at the chosen one."""
    file = control.open("r+b")
    shared = mmap.mmap(file.fileno(), _SIZE)
    root = _text(shared[_HEAD.size + _PATH_MAX : _HEAD.size + 2 * _PATH_MAX])

    def hook(event: str, args: tuple[object, ...]) -> None:
        if event not in _EVENTS or not _counts(event, args, root):
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

    sys.addaudithook(hook)
    return lambda _text: sys.audit("windlass.recorded")


def _counts(event: str, args: tuple[object, ...], root: str) -> bool:
    """Whether the event starts a program, records facts, or changes a file below the root."""
    if event in _WRITELESS:
        return True
    if event == "open" and not (isinstance(args[2], int) and args[2] & (os.O_CREAT | os.O_TRUNC)):
        return False
    names = [os.fsdecode(arg) for arg in args if isinstance(arg, str | bytes)]
    # A relative name belongs to a directory descriptor, and Windlass uses those only for own files.
    return any(name.startswith(root) or not Path(name).is_absolute() for name in names if name)
