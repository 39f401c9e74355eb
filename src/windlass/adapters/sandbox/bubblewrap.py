"""The level bwrap: walls enforced by the kernel, built by bubblewrap from a list of mounts.

Law 1: a process can write its checkout, and folders in memory that vanish with it; nothing else.
Law 2: a box shows the system, the toolchains on PATH, its checkout and the git objects it needs.
Anything else must be named, and keys and logins cannot be.
Law 3: mounts are ordered by the depth of their paths. A deeper one is laid over the one it is in,
so the result never depends on the order of the requests.
Law 4: a box has its own network. A door (`network.py`) leads out of it, unless the configuration
opens the network.
Law 5: a command that an agent's program runs is in a box in the box. It does not see the program's
home, temporary files, sockets or environment, and has its own users, so the kernel lets it look
into no process of the program. A Coach runs the Player's code, so its commands are sealed: no
network but loopback, no processes but their own, and no writing to the checkout's git directory,
which the program's own git would obey. The one file of the program's that a command needs, into
which the shell writes its last folder, is bound alone; its name ends the command.

Every checkout is mounted at the same path in all boxes, because a virtualenv knows its path.
"""

import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Self

from msgspec import Struct

from windlass.adapters.git.layout import git_folders_shown
from windlass.adapters.processes.limits import Limits
from windlass.adapters.sandbox.box import Box, Entry, why_not
from windlass.adapters.sandbox.host import (
    ETC,
    LOGINS,
    SYSTEM,
    host_sockets,
    is_login,
    private_paths,
    readable,
    toolchains,
)
from windlass.adapters.sandbox.landlock import QUIET, confined
from windlass.adapters.sandbox.mounts import InheritedFiles, Mounts
from windlass.adapters.sandbox.network import WaysOut
from windlass.adapters.sandbox.plain import CERTIFICATES, absolute_path, bare_environment
from windlass.adapters.sandbox.seccomp import filter_for
from windlass.core.settings import Level
from windlass.errors import ConfigError

AGENT = "/windlass-agent"
"""The program's own place in the box."""
AGENT_HOME = f"{AGENT}/home"
AGENT_TEMPORARY = f"{AGENT}/tmp"  # noqa: S108 (the program's alone)
LAUNCHER = f"{AGENT}/launch"
SHELL_ALONE = (shutil.which("bash", path="/usr/bin:/bin") or "/bin/sh", "-c")
"""Runs a command with nothing more around it."""

APART = ("--unshare-user",)
SEALED = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--die-with-parent",
    "--new-session",
)
INNER: tuple[tuple[str, ...], ...] = (("--proc", "/proc"), ())
"""With its own /proc, or the outer one's: root's box has no full /proc to make another from."""

_SCRIPT = """\
command=$1
set --
folder=${{command##* >| }}
case $folder in
  {temporary}/*[!0-9A-Za-z-]*) ;;
  {temporary}/?*) : >> "$folder"; set -- --bind "$folder" "$folder" ;;
esac
exec /usr/bin/env -i {environment} {start} --tmpfs {agent} "$@" --remount-ro {agent} \\
  -- {shell} "$command"
"""


class InnerBox(Struct, frozen=True):
    """How to build a box in the box."""

    program: str
    """Bubblewrap's path."""
    checkout: str
    proc: tuple[str, ...]

    def script(self, environment: Mapping[str, str], shell: Sequence[str], *, sealed: bool) -> str:
        """A program that runs its one argument, a shell command, in its own box."""
        git = f"{self.checkout}/.git"
        walls = (*SEALED, *self.proc, "--ro-bind-try", git, git) if sealed else APART
        return _SCRIPT.format(
            agent=AGENT,
            temporary=AGENT_TEMPORARY,
            environment=shlex.join(f"{name}={value}" for name, value in environment.items()),
            start=shlex.join((self.program, "--dev-bind", "/", "/", *walls)),
            shell=shlex.join(shell),
        )


FLAGS = (
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
    "--new-session",
    *("--cap-drop", "ALL"),
)

FRESH = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 (in the box they are the box's own)
EMPTY = ("/etc", "/home", "/mnt", "/opt", "/root", "/run", "/srv", "/var")
"""Folders that programs expect to be there."""

IN_MEMORY = 5
"""Folders in memory that a box may fill: its home, the agent's, two for temporary files,
/dev/shm."""
SYSCTL = ("--ro-bind", "/proc/sys", "/proc/sys")
"""For root only: its uid may write the kernel's settings even without any capability, and one
of them names a program that the host starts. Bubblewrap leaves them writable. For other users they
are read-only anyway, and a mount there would keep a box in the box from having its own /proc."""

UID = 1000
"""Root's uid in a box. As root without capabilities a process could not build a box within the box;
as any other user it can."""

NEEDED = ("/etc/resolv.conf", "/etc/hosts", "/etc/localtime", "/etc/nsswitch.conf")
"""Files that may be links into `/run`."""


class Bubblewrap:
    """Runs a command in a box: its own mounts, processes and network."""

    level: Level
    limits: Limits

    def __init__(
        self,
        *,
        home: Path,
        repository: Path,
        path: str,
        environment: Mapping[str, str],
        marker: str,
        masked: Sequence[Path] = (),
        read: Sequence[Path] = (),
        pass_env: Sequence[str] = (),
        program: str = "bwrap",
        limits: Limits | None = None,
        ways_out: WaysOut | None = None,
        open_network: bool = False,
        nested: bool = False,
    ) -> None:
        """Take the host as it is now; `marker` names the run of these processes.

        Of `repository` and `masked` only toolchains are shown; `read` is what a person added. With
        an open network, boxes with a network share the host's. With `nested` any box may start
        boxes.
        """
        self.level = "bwrap"
        self.limits = limits or Limits()
        self.ways_out = None if open_network else ways_out or WaysOut()
        self._home = home.absolute()
        self._homes = (self._home, self._home.resolve())
        self._repository = repository.absolute()
        self._masked = (self._repository, *masked)
        self._path = tuple(Path(entry) for entry in absolute_path(path))
        self._read = tuple(readable(folder, self._homes) for folder in read)
        self._environment = environment
        self._pass_env = tuple(pass_env)
        self._marker = marker
        self._nested = nested
        self._program = self._found(program)
        # A host that has a /workspace may have the repository in it.
        self._mount = "/windlass-workspace" if Path("/workspace").exists() else "/workspace"
        if self._repository.resolve() == Path("/"):
            message = "the repository is the root of the file system, which cannot be covered"
            raise ConfigError(message, hint="use `--sandbox checkout`")

    def of_run(self, marker: str, ways_out: WaysOut) -> Self:
        """The same walls for the processes of a run; what was tested here is not tested again."""
        made = copy(self)
        made._marker = marker  # noqa: SLF001  (its own copy)
        made.ways_out = None if self.ways_out is None else ways_out
        return made

    def inside(self, box: Box) -> str:  # noqa: ARG002 (the port's signature)
        return self._mount

    @contextmanager
    def entered(self, box: Box, command: Sequence[str]) -> Generator[Entry]:
        """Bubblewrap's command line, with everything that it must inherit."""
        with ExitStack() as held:
            handed = held.enter_context(InheritedFiles())
            door = self.ways_out.door(box) if self.ways_out is not None else None
            if door is not None:
                held.enter_context(door)
            built = (
                *(door.arguments if door is not None else ()),
                *handed.filter(self._filter(box)),
                *self._mounted(box, handed),
                *(() if box.runs == "itself" else self._place_of_agent(box, handed)),
            )
            argv, env = self._line(box, built, command), self.environment(box)
            if door is None or self.ways_out is None:
                yield Entry(argv=argv, env=env, inherited=handed.numbers)
                return
            inherited = (*handed.numbers, *door.inherited)
            way_out = partial(self.ways_out.opened, door, box)
            yield Entry(argv=argv, env=env, inherited=inherited, way_out=way_out)

    def _line(self, box: Box, built: Sequence[str], command: Sequence[str]) -> list[str]:
        return [
            self._program or "bwrap",  # if it is missing, the start fails as it should
            *FLAGS,
            *_user(),
            *(() if self._is_open(box) else ("--unshare-net",)),
            *built,
            *("--remount-ro", "/"),
            *("--chdir", self._mount),
            "--",
            *command,
        ]

    def _mounted(self, box: Box, handed: InheritedFiles) -> Iterator[str]:
        """What every box has: the host's part, its devices, its checkout."""
        mounts = self._host.copy()
        mounts.show(*box.read)
        for place, folder in git_folders_shown(box.checkout).items():
            mounts.show_at(place, folder)
        mounts.hide(*host_sockets())
        for folder in EMPTY:
            yield from ("--dir", folder)
        yield from ("--symlink", "../run", "/var/run")
        yield from mounts.arguments(self._size)
        yield from handed.file("/etc/passwd", self._passwd)
        yield from handed.file("/etc/group", f"user:x:{_ids()[1]}:\nnogroup:x:65534:\n")
        yield from ("--proc", "/proc", "--dev", "/dev")
        yield from (*self._size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev")  # noqa: S108
        yield from SYSCTL if os.geteuid() == 0 else ()
        yield from ("--bind", str(box.checkout.resolve()), self._mount)

    def _place_of_agent(self, box: Box, handed: InheritedFiles) -> Iterator[str]:
        """A home for an agent's program, and the launcher that runs commands apart from it."""
        yield from (*self._size, "--tmpfs", AGENT)
        yield from ("--dir", AGENT_HOME, "--dir", AGENT_TEMPORARY)
        if self._inner is not None:
            sealed = box.runs == "sealed"
            start = self._confined_shell if sealed else SHELL_ALONE
            quiet = QUIET if start is not SHELL_ALONE else {}
            env = {**self._commands_have(box), **quiet}
            script = self._inner.script(env, start, sealed=sealed)
            yield from handed.file(LAUNCHER, script)

    @cached_property
    def _confined_shell(self) -> tuple[str, ...]:
        """Runs a Coach's command behind Landlock, with the narrow filter."""
        if not self._lands or self._nested:
            return SHELL_ALONE
        # The shell writes its last folder there; everything else in it is read-only.
        places = (*self._bounds, AGENT_TEMPORARY)
        return tuple(confined(SHELL_ALONE, places, seccomp=self._narrow))

    def environment(self, box: Box) -> dict[str, str]:
        """The environment of the box's first process, with a new mark."""
        own = {} if box.runs == "itself" else {"HOME": AGENT_HOME, "TMPDIR": AGENT_TEMPORARY}
        return self._bare({**own, **self._leads_out(box), **box.env})

    def _commands_have(self, box: Box) -> dict[str, str]:
        """The environment of a program's commands: nothing of the program's."""
        leads_out = self._leads_out(box) if box.runs == "apart" else {}
        return {**self._bare({**leads_out, **box.tools}), "GIT_EDITOR": "true"}

    def _is_open(self, box: Box) -> bool:
        return box.network and self.ways_out is None

    def _leads_out(self, box: Box) -> dict[str, str]:
        return self.ways_out.environment(box) if self.ways_out is not None else {}

    def _bare(self, env: Mapping[str, str]) -> dict[str, str]:
        return bare_environment(
            {**self._environment, "PATH": self._inner_path},
            pass_env=self._pass_env,
            home=self._inner_home,
            temporary="/tmp",  # noqa: S108 (the box's own)
            run=self._marker,
            env=env,
        )

    @property
    def launcher(self) -> tuple[str, ...]:
        return ("/bin/sh", "-e", LAUNCHER) if self._inner is not None else ()

    @cached_property
    def _inner(self) -> InnerBox | None:
        """The box in the box that works here; with its own /proc if possible."""
        # By its path: the lookup happens outside the inner box.
        program = self._found("bwrap")
        if program is None:
            return None
        tries = (InnerBox(program, self._mount, words) for words in INNER)
        return next((inner for inner in tries if self._works(inner)), None)

    def _works(self, inner: InnerBox) -> bool:
        script = inner.script({}, SHELL_ALONE, sealed=True)
        return self._tried("/bin/sh", "-c", script, "sh", "true", by=self._wide) is None

    def _filter(self, box: Box) -> bytes:
        """The seccomp filter for this box, if the kernel accepts one."""
        return self._wide if self._nests(box) else self._narrow

    @property
    def _wide(self) -> bytes:
        return filter_for(platform.machine(), nests=True) if self._narrow else b""

    @cached_property
    def _narrow(self) -> bytes:
        known = filter_for(platform.machine(), nests=False)
        return known if known and self._tried("true", by=known) is None else b""

    @property
    def is_filtered(self) -> bool:
        return bool(self._narrow)

    def writable(self, box: Box) -> tuple[str, ...]:
        """Where the box can write, if Landlock can enforce it."""
        return self._bounds if self._lands and not self._nests(box) else ()

    def _nests(self, box: Box) -> bool:
        return self._nested or box.runs != "itself"

    @property
    def _bounds(self) -> tuple[str, ...]:
        places = (self._mount, self._inner_home, *FRESH, "/dev/shm")  # noqa: S108 (the box's own)
        return tuple(map(str, places))

    @cached_property
    def _lands(self) -> bool:
        """Whether Landlock works in a box here."""
        command = confined(["true"], self._bounds)
        return command != ["true"] and self._tried(*command, by=b"") is None

    def probe(self) -> str | None:
        """Run `true` in a box; return why that fails here, or None."""
        if self._program is None:
            return "bubblewrap (`bwrap`) is not installed"
        return None if self._narrow else self._tried("true", by=b"")

    def _tried(self, *command: str, by: bytes) -> str | None:
        """Run a command in an empty box with this filter; return why it failed, or None."""
        with (
            tempfile.TemporaryDirectory(prefix="windlass-probe-") as folder,
            InheritedFiles() as handed,
        ):
            box = Box(checkout=Path(folder), network=False)
            built = (*handed.filter(by), *self._mounted(box, handed), "--tmpfs", AGENT)
            argv = self._line(box, built, command)
            return why_not(argv, {**self.environment(box), **QUIET}, handed.numbers)

    def _found(self, program: str) -> str | None:
        # The system's folders first: other users may write to those on PATH.
        path = os.pathsep.join(("/usr/bin", "/bin", *map(str, self._path)))
        return shutil.which(program, path=path)

    @cached_property
    def _size(self) -> tuple[str, ...]:
        """Limits the next folder in memory, if this bubblewrap can."""
        if self._program is None or not _knows_size(self._program):
            return ()
        return ("--size", str(self.limits.memory // IN_MEMORY))

    @cached_property
    def _passwd(self) -> str:
        """The box's user, for programs that look it up by number."""
        (uid, gid), home = _ids(), self._inner_home
        shell = self._environment.get("SHELL", "/bin/sh")
        return (
            f"user:x:{uid}:{gid}::{home}:{shell}\n"
            "nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n"
        )

    @cached_property
    def _inner_home(self) -> Path:
        # A service user's home may be missing or the root itself; neither can be covered.
        usable = self._home.is_dir() and self._home.resolve() != Path("/")
        return self._home if usable else Path("/home/windlass")

    @cached_property
    def _host(self) -> Mounts:
        """What every box of this run shows of the host."""
        mounts = Mounts()
        for folder in map(Path, SYSTEM):
            mounts.show(folder)
        etc = [found for pattern in ETC for found in sorted(Path("/etc").glob(pattern))]
        mounts.show(*etc)
        mounts.lay("fresh", *FRESH)
        mounts.lay("cover", *self._masked)
        # After those: the home may be the repository, or be in it.
        mounts.lay("fresh", self._inner_home)
        mounts.link(*self._path)
        mounts.show(
            *toolchains(self._path, self._home, self._repository, tuple(map(Path, SYSTEM))),
            *self._read,
            *(Path(file) for file in NEEDED),
            *self._certificates(),
        )
        mounts.hide(*private_paths(mounts.named, (*etc, Path("/usr/local/etc"))))
        mounts.hide(*(self._home.resolve() / login for login in LOGINS))
        mounts.hold(*self._path)
        return mounts

    @cached_property
    def _inner_path(self) -> str:
        """PATH without folders where a process in the box could put its own program."""
        places = map(self._host.place, self._path)
        return os.pathsep.join(str(place) for place in places if place is not None)

    def _certificates(self) -> tuple[Path, ...]:
        named = (Path(self._environment.get(name, "")) for name in CERTIFICATES)
        return tuple(path for path in named if path.is_absolute() and not self._is_login(path))

    def _is_login(self, path: Path) -> bool:
        return any(is_login(name, home) for name in (path, path.resolve()) for home in self._homes)


def _ids() -> tuple[int, int]:
    """The ids in a box: the same as outside, but not root."""
    return os.geteuid() or UID, os.getegid() or UID


def _user() -> tuple[str, ...]:
    """Gives a box its own users: for root always, for others where the kernel allows it."""
    if os.geteuid() != 0:
        return ("--unshare-user-try",)
    uid, gid = _ids()
    return ("--unshare-user", "--uid", str(uid), "--gid", str(gid))


@cache
def _knows_size(program: str) -> bool:
    """Whether it can limit folders in memory; before 0.7, `--size` was an error."""
    try:
        done = subprocess.run([program, "--help"], capture_output=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return b"--size" in done.stdout
