"""The level bwrap: walls that the kernel keeps, built by bubblewrap from a list of mounts.

Law 1: a process can write its checkout, and folders in memory that go away with it; nothing else.
Law 2: a box shows the system, the toolchains that PATH leads to, its checkout and the git objects
it needs. Anything else must be named, and keys and logins cannot be.
Law 3: mounts are ordered by the depth of their paths. A deeper one is laid upon the one it lies in,
so what covers a folder and what shows a part of it never depend on the order of the requests.
Law 4: a box has a network of its own. A door (`network.py`) leads out of it, unless the
configuration opens the network.
Law 5: a command that an agent's program runs is in a box in the box. It does not see the program's
home, temporary files, sockets or environment, and has users of its own, so the kernel lets it look
into no process of the program. A Coach runs the Player's code, so its commands are sealed: no
network but loopback, no processes but their own, and no writing to the checkout's git directory,
which the program's own git would obey. The one file of the program's that a command needs, into
which the shell writes the folder it ended in, is bound alone; its name ends the command.

Every checkout is mounted at one path, the same in all boxes, because a virtualenv knows its path.
"""

import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, cached_property, partial
from pathlib import Path

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
"""What runs a command, where nothing more is laid around it."""

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
"""With a /proc of its own, or the outer one's: root's box has no full /proc to make another of."""

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
    """How a box in the box is built here."""

    program: str
    """Bubblewrap, by its path."""
    checkout: str
    proc: tuple[str, ...]

    def script(self, environment: Mapping[str, str], shell: Sequence[str], *, sealed: bool) -> str:
        """Write the program that runs its one argument, a shell command, in a box of its own."""
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
"""How many folders in memory a box may fill: its home, the agent's own, two for temporary files,
and /dev/shm."""
SYSCTL = ("--ro-bind", "/proc/sys", "/proc/sys")
"""For root alone: its uid may write the kernel's settings even without any capability, and one of
them names a program that the host starts. Bubblewrap leaves them open. To other users they are
read-only anyway, and a mount there would keep a box in the box from having a /proc of its own."""

UID = 1000
"""Who root is in a box. As root, with all its capabilities dropped, a process could not build a box
within the box; as any other user it can."""

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
        """Look at the host as it is now; `marker` names the run whose processes these will be.

        Of `repository` and `masked` nothing shows but toolchains; `read` is what a person added.
        With an open network, boxes that have a way out share the host's own. With `nested` any box
        may start boxes of its own.
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
        # A host that has a /workspace may well have the repository in it.
        self._mount = "/windlass-workspace" if Path("/workspace").exists() else "/workspace"
        if self._repository.resolve() == Path("/"):
            message = "the repository is the root of the file system, which cannot be covered"
            raise ConfigError(message, hint="use `--sandbox checkout`")

    def inside(self, box: Box) -> str:  # noqa: ARG002 (the port's form: it is the same for all)
        """Give the one path at which every box has its checkout."""
        return self._mount

    @contextmanager
    def entered(self, box: Box, command: Sequence[str]) -> Generator[Entry]:
        """Give bubblewrap's command line, with all that it must inherit."""
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
            self._program or "bwrap",  # missing, it fails to start, which is what it should
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
        """Give what every box has: the host's part, its own devices, its checkout."""
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
        """Give an agent's program a home of its own, and what starts its commands without it."""
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
        """What starts a command of a Coach's behind Landlock, with the narrower filter."""
        if not self._lands or self._nested:
            return SHELL_ALONE
        # The shell writes the folder it ends in there; all else in it is read-only.
        places = (*self._bounds, AGENT_TEMPORARY)
        return tuple(confined(SHELL_ALONE, places, seccomp=self._narrow))

    def environment(self, box: Box) -> dict[str, str]:
        """Give the whole environment of the box's first process, with a mark that is new."""
        own = {} if box.runs == "itself" else {"HOME": AGENT_HOME, "TMPDIR": AGENT_TEMPORARY}
        return self._bare({**own, **self._leads_out(box), **box.env})

    def _commands_have(self, box: Box) -> dict[str, str]:
        """Give the whole environment of what an agent's program runs: nothing of the program."""
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
        """Give what starts a command apart from the program, where the kernel allows it."""
        return ("/bin/sh", "-e", LAUNCHER) if self._inner is not None else ()

    @cached_property
    def _inner(self) -> InnerBox | None:
        """The box in the box that works here; with a /proc of its own where that can be had."""
        # By its path, for who looks it up is not in the inner box yet.
        program = self._found("bwrap")
        if program is None:
            return None
        tries = (InnerBox(program, self._mount, words) for words in INNER)
        return next((inner for inner in tries if self._works(inner)), None)

    def _works(self, inner: InnerBox) -> bool:
        script = inner.script({}, SHELL_ALONE, sealed=True)
        return self._tried("/bin/sh", "-c", script, "sh", "true", by=self._wide) is None

    def _filter(self, box: Box) -> bytes:
        """The filter for this box on this machine, where its kernel takes one."""
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
        """Tell whether calls into the kernel are filtered here."""
        return bool(self._narrow)

    def writable(self, box: Box) -> tuple[str, ...]:
        """Give what a box can write, where Landlock can keep it to that."""
        return self._bounds if self._lands and not self._nests(box) else ()

    def _nests(self, box: Box) -> bool:
        return self._nested or box.runs != "itself"

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
        # The system's own first: PATH may lead through folders that others write.
        path = os.pathsep.join(("/usr/bin", "/bin", *map(str, self._path)))
        return shutil.which(program, path=path)

    @cached_property
    def _size(self) -> tuple[str, ...]:
        """What bounds the next folder in memory, where this bubblewrap is young enough to."""
        if self._program is None or not _knows_size(self._program):
            return ()
        return ("--size", str(self.limits.memory // IN_MEMORY))

    @cached_property
    def _passwd(self) -> str:
        """Who the box's user is, for programs that ask by number."""
        (uid, gid), home = _ids(), self._inner_home
        shell = self._environment.get("SHELL", "/bin/sh")
        return (
            f"user:x:{uid}:{gid}::{home}:{shell}\n"
            "nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n"
        )

    @cached_property
    def _inner_home(self) -> Path:
        # A service user's home may be missing, or be the root itself; neither can be laid over.
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
        # After those, for it may be the repository, or lie in it.
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
        """PATH without folders in which a process in the box could put a program of its own."""
        places = map(self._host.place, self._path)
        return os.pathsep.join(str(place) for place in places if place is not None)

    def _certificates(self) -> tuple[Path, ...]:
        named = (Path(self._environment.get(name, "")) for name in CERTIFICATES)
        return tuple(path for path in named if path.is_absolute() and not self._is_login(path))

    def _is_login(self, path: Path) -> bool:
        return any(is_login(name, home) for name in (path, path.resolve()) for home in self._homes)


def _ids() -> tuple[int, int]:
    """Who the user is in a box: the same as outside, and not root."""
    return os.geteuid() or UID, os.getegid() or UID


def _user() -> tuple[str, ...]:
    """Give users of its own to a box: for root always, for others where the kernel lets them."""
    if os.geteuid() != 0:
        return ("--unshare-user-try",)
    uid, gid = _ids()
    return ("--unshare-user", "--uid", str(uid), "--gid", str(gid))


@cache
def _knows_size(program: str) -> bool:
    """Whether it bounds folders in memory; before 0.7 it did not, and took --size for an error."""
    try:
        done = subprocess.run([program, "--help"], capture_output=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return b"--size" in done.stdout
