"""The level bwrap: walls that the kernel keeps, built by bubblewrap from a list of mounts.

Law 1: a process can write its checkout, and folders in memory that go away with it; nothing else.
Law 2: of the home it sees the toolchains, of the repository the git objects and toolchains, of
`/run` nothing; of keys and logins nothing, however wide a folder was asked to be readable.
Law 3: the order of the mounts is the depth of their paths. A deeper one is laid upon the one it
lies in, so what covers a folder and what shows a part of it never depend on who asked first.

Every checkout is mounted at one path, the same in all boxes, for a virtualenv knows its path.
With network the host's own is shared, and with it loopback and abstract sockets.
"""

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path

from windlass.adapters.limits import Limits
from windlass.adapters.sandbox.landlock import QUIET, confined
from windlass.adapters.sandbox.model import Box
from windlass.adapters.sandbox.mounts import Mounts
from windlass.adapters.sandbox.plain import CERTIFICATES, absolute_path, bare_environment
from windlass.adapters.sandbox.private import private
from windlass.adapters.sandbox.probing import why_not
from windlass.adapters.sandbox.seccomp import filter_for, filtered
from windlass.adapters.sandbox.sockets import sockets
from windlass.adapters.sandbox.toolchains import LOGINS, is_login, toolchains
from windlass.errors import ConfigError
from windlass.settings import Level

FLAGS = (
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
    "--new-session",
    *("--cap-drop", "ALL"),
)

APART = (
    (
        *("bwrap", "--dev-bind", "/", "/", "--proc", "/proc"),
        *("--unshare-user", "--unshare-pid", "--die-with-parent", "--"),
    ),
    ("unshare", "--user", "--pid", "--fork", "--kill-child", "--"),
)
"""Boxes in the box, with all that the outer one has; the first that works is used. For root it is
the second: its box has no full /proc to make another of, and no right to have its own uid there.

Users of their own: the kernel lets no process look into one whose users are not its own. Processes
of their own: what has no number cannot be killed."""

FRESH = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 (in the box they are nobody else's)
UNUSED = frozenset({"boot", "dev", "lost+found", "proc"})
COVERED = (Path("/home"), Path("/root"), Path("/run"), Path("/var/run"))

IN_MEMORY = 4
"""How many folders in memory a box may fill: its home, two for temporary files, and /dev/shm."""
SYSCTL = ("--ro-bind", "/proc/sys", "/proc/sys")
"""For root alone: its uid may write the kernel's settings even without any capability, and one of
them names a program that the host starts. Bubblewrap leaves them open. To anybody else they are
read-only anyway, and a mount there would keep another bubblewrap from working inside the box."""

PRIVATE = (
    "etc/gshadow*",
    "etc/kubernetes",
    "etc/rancher",
    "etc/shadow*",
    "etc/ssh",
    "etc/ssl/private",
    "mnt/?/Users",
    "var/lib/incus",
    "var/lib/lxd",
    "var/log",
    "var/snap/lxd",
)
"""Keys, logins, logs outside of homes, which some could read, and sockets that lead out again."""

NEEDED = ("/etc/resolv.conf", "/etc/hosts", "/etc/localtime", "/etc/nsswitch.conf")
"""Files that may be links into `/run`; without them no name resolves."""


class Bubblewrap:
    """Runs a command in a box: its own mounts and processes, and no network unless allowed."""

    level: Level
    limits: Limits

    def __init__(
        self,
        *,
        home: Path,
        repository: Path,
        objects: Sequence[Path],
        path: str,
        environment: Mapping[str, str],
        marker: str,
        masked: Sequence[Path] = (),
        read: Sequence[Path] = (),
        pass_env: Sequence[str] = (),
        program: str = "bwrap",
        limits: Limits | None = None,
        nested: bool = False,
    ) -> None:
        """Look at the host as it is now; `marker` names the run whose processes these will be.

        Of `repository` and `masked` only git's `objects` show; `read` is what a person added.
        With `nested` any box may start boxes of its own.
        """
        self.level = "bwrap"
        self.limits = limits or Limits()
        self._home = home.absolute()
        self._homes = (self._home, self._home.resolve())
        self._repository = repository.absolute()
        self._objects = tuple(objects)
        self._masked = (self._repository, *masked)
        self._path = tuple(Path(entry) for entry in absolute_path(path))
        self._read = tuple(self._readable(folder) for folder in read)
        self._environment = environment
        self._pass_env = tuple(pass_env)
        self._marker = marker
        self._nested = nested
        self._program = self._found(program)
        # A host that has a /workspace may well have the repository in it.
        self._mount = "/windlass-workspace" if Path("/workspace").exists() else "/workspace"
        if self._repository.resolve() == Path("/"):
            message = "the repository is the root of the file system, which cannot be covered"
            raise ConfigError(message, hint="use `--sandbox checkout`")

    def inside(self, box: Box) -> str:  # noqa: ARG002 (the port's form: it is the same for all)
        """Give the one path at which every box has its checkout."""
        return self._mount

    def argv(self, box: Box, command: Sequence[str]) -> list[str]:
        """Give bubblewrap's command line, to be started with exactly `environment(box)`.

        Whoever starts it adds the filter (`seccomp.filtered`), which a process must inherit.
        """
        mounts = self._host.copy()
        mounts.show(*box.read)
        mounts.hide(*sockets())
        return [
            self._program or "bwrap",  # missing, it fails to start, which is what it should
            *FLAGS,
            *(() if box.network else ("--unshare-net",)),
            *mounts.arguments(self._size),
            *("--proc", "/proc", "--dev", "/dev"),
            *(*self._size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108
            *(SYSCTL if os.geteuid() == 0 else ()),
            *("--bind", str(box.checkout.resolve()), self._mount),
            *("--remount-ro", "/"),
            *("--chdir", self._mount),
            "--",
            *command,
        ]

    def environment(self, box: Box) -> dict[str, str]:
        """Give the whole environment, with a mark that is new each time."""
        return bare_environment(
            {**self._environment, "PATH": self._inner_path},
            pass_env=self._pass_env,
            home=self._inner_home,
            temporary="/tmp",  # noqa: S108 (the box's own)
            run=self._marker,
            box=box,
        )

    def apart(self) -> tuple[str, ...]:
        """Give the command line of a box in the box, where the kernel allows one."""
        return self._apart

    @cached_property
    def _apart(self) -> tuple[str, ...]:
        # By their paths, for who looks them up is not in the inner box yet.
        named = ((self._found(program) or program, *words) for program, *words in APART)
        return next((words for words in named if self._works(*words)), ())

    def _works(self, *words: str) -> bool:
        return self._tried(*words, "true", by=self._wide) is None

    def seccomp(self, box: Box) -> bytes:
        """Give the filter for this box on this machine, where its kernel takes one."""
        if not self._narrow:
            return b""
        return self._wide if self._nests(box) else self._narrow

    @property
    def _wide(self) -> bytes:
        return filter_for(platform.machine(), nests=True) if self._narrow else b""

    @cached_property
    def _narrow(self) -> bytes:
        known = filter_for(platform.machine(), nests=False)
        return known if known and self._tried("true", by=known) is None else b""

    def writable(self, box: Box) -> tuple[str, ...]:
        """Give what a box can write, where Landlock can keep it to that."""
        return self._bounds if self._lands and not self._nests(box) else ()

    def _nests(self, box: Box) -> bool:
        return self._nested or box.nests

    @property
    def _bounds(self) -> tuple[str, ...]:
        places = (self._mount, self._inner_home, *FRESH, "/dev/shm")  # noqa: S108 (the box's own)
        return tuple(map(str, places))

    @cached_property
    def _lands(self) -> bool:
        """Whether a command behind Landlock works in a box here."""
        command = confined(["true"], self._bounds)
        return command != ["true"] and self._tried(*command, by=b"") is None

    def probe(self) -> str | None:
        """Run `true` in a box; return why that does not work here, or None."""
        if self._program is None:
            return "bubblewrap (`bwrap`) is not installed"
        return None if self._narrow else self._tried("true", by=b"")

    def _found(self, program: str) -> str | None:
        # The system's own first: PATH may lead through folders that somebody else writes.
        path = os.pathsep.join(("/usr/bin", "/bin", *map(str, self._path)))
        return shutil.which(program, path=path)

    def _tried(self, *command: str, by: bytes) -> str | None:
        with tempfile.TemporaryDirectory(prefix="windlass-probe-") as folder:
            box = Box(checkout=Path(folder), network=False)
            with filtered(self.argv(box, command), by) as (argv, inherited):
                return why_not(argv, {**self.environment(box), **QUIET}, inherited)

    @cached_property
    def _size(self) -> tuple[str, ...]:
        """What bounds the next folder in memory, where this bubblewrap is young enough to."""
        if self._program is None or not _knows_size(self._program):
            return ()
        return ("--size", str(self.limits.memory // IN_MEMORY))

    @cached_property
    def _inner_home(self) -> Path:
        # A service user's home may be missing, or be the root itself; neither can be laid over.
        usable = self._home.is_dir() and self._home.resolve() != Path("/")
        return self._home if usable else Path("/home/windlass")

    @cached_property
    def _host(self) -> Mounts:
        """What every box of this run shows of the host."""
        mounts = Mounts()
        for entry in sorted(Path("/").iterdir()):
            if entry.is_symlink():
                mounts.link(entry)
            # Hidden entries belong to whoever has the root as home; each mount takes its time, so
            # a folder in which nothing can be seen is left out.
            elif entry.name not in UNUSED and not entry.name.startswith(".") and _shows(entry):
                mounts.show(entry)
        mounts.lay("fresh", *FRESH)
        mounts.lay("cover", *COVERED, *self._masked)
        # After those, for it may be /root, or the repository, or lie in either.
        mounts.lay("fresh", self._inner_home)
        mounts.link(*self._path)
        mounts.show(
            *toolchains(self._path, self._home, self._repository),
            *self._objects,
            *self._read,
            *(Path(file) for file in NEEDED),
            *self._certificates(),
        )
        listed = (found for pattern in PRIVATE for found in Path("/").glob(pattern))
        # Who may not read them out here may not in there either.
        mounts.hide(*(found for found in listed if found.is_file() or _shows(found)))
        mounts.hide(*private(mounts.named))
        mounts.hide(*(self._home.resolve() / login for login in LOGINS))
        mounts.hold(*self._path)
        return mounts

    @cached_property
    def _inner_path(self) -> str:
        """PATH without folders in which anybody in the box could put a program of their own."""
        places = map(self._host.place, self._path)
        return os.pathsep.join(str(place) for place in places if place is not None)

    def _certificates(self) -> tuple[Path, ...]:
        named = (Path(self._environment.get(name, "")) for name in CERTIFICATES)
        return tuple(path for path in named if path.is_absolute() and not self._is_login(path))

    def _is_login(self, path: Path) -> bool:
        return any(is_login(name, home) for name in (path, path.resolve()) for home in self._homes)

    def _readable(self, folder: Path) -> Path:
        """Refuse what must not be read, rather than leave it out in silence."""
        if folder.parts[:1] == ("~",):
            folder = self._home.joinpath(*folder.parts[1:])
        if self._is_login(folder) or folder.resolve() in self._homes:
            message = f"[sandbox] read names {str(folder)!r}, which holds keys and logins"
            hint = "name a folder without them, or pass single values with [sandbox] env"
            raise ConfigError(message, hint=hint)
        return folder


def _shows(folder: Path) -> bool:
    """Whether there is anything in the folder that this user can see."""
    try:
        return any(True for _ in folder.iterdir())
    except OSError:
        return False


@cache
def _knows_size(program: str) -> bool:
    """Whether it bounds folders in memory; before 0.7 it did not, and took --size for an error."""
    try:
        done = subprocess.run([program, "--help"], capture_output=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return b"--size" in done.stdout
