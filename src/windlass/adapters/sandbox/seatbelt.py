"""The level seatbelt: walls enforced by the kernel of macOS, from a profile for `sandbox-exec`.

Law 1: what the profile does not allow is denied, including the host's services: a process that
could ask launchd to start a program would have it started outside.
Law 2: the last matching rule of a profile wins, so keys and logins are denied after everything that
is allowed, and what a box must write is allowed after that.
Law 3: paths in a profile are real paths: the kernel compares the targets of links.

Nothing is mounted, so a checkout keeps its own path; home and temporary folder are the box's own,
made fresh each time. A process that leaves its session is not found at the end, because there is no
/proc to find its mark; it stays inside the walls. Loopback counts as network here.
"""

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path

from windlass.adapters.git.layout import git_folders_shown
from windlass.adapters.processes.limits import Limits
from windlass.adapters.sandbox.box import Box, Entry, why_not
from windlass.adapters.sandbox.host import LOGINS, readable, toolchains
from windlass.adapters.sandbox.plain import absolute_path, bare_environment
from windlass.core.settings import Level
from windlass.errors import ConfigError

PROGRAM = Path("/usr/bin/sandbox-exec")

SYSTEM = (
    "/Applications", "/Library", "/System", "/bin", "/nix", "/opt", "/private/etc",
    "/private/var/db/dyld", "/private/var/db/timezone", "/private/var/db/xcode_select_link",
    "/private/var/select", "/sbin", "/usr",
)  # fmt: skip
"""What every box may read of the host: programs, and what they need to start."""

PRIVATE = (
    "/Library/Keychains",
    "/Library/Application Support/com.apple.TCC",
    "/private/etc/master.passwd",
    "/private/etc/ssh",
    "/private/etc/sudoers",
    "/private/etc/sudoers.d",
)
"""Keys and logins in those folders."""

HOME_KEYS = ("Library/Keychains", "Library/Cookies", "Library/Mail", "Library/Messages")
"""Keys and mail of a Mac's user, in addition to the logins of every system."""

DEVICES = ("null", "zero", "random", "urandom", "dtracehelper", "tty", "ptmx")

SERVICES = (
    "com.apple.bsd.dirhelper",
    "com.apple.system.logger",
    "com.apple.system.notification_center",
    "com.apple.system.opendirectoryd.libinfo",
    "com.apple.system.opendirectoryd.membership",
)
"""User lookup, temporary folders, time: no program runs without these."""

NETWORK_SERVICES = (
    "com.apple.SystemConfiguration.DNSConfiguration",
    "com.apple.SystemConfiguration.configd",
    "com.apple.networkd",
    "com.apple.trustd",
    "com.apple.trustd.agent",
)
"""Names and certificates; none of these starts programs or holds keys."""

ALWAYS = """\
(version 1)
(deny default)
(allow process-fork)
(allow process-exec)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow ipc-posix-sem*)
(allow ipc-posix-shm*)
(allow pseudo-tty)
"""

NETWORK = """\
(allow system-socket)
(allow network-outbound (remote ip))
(allow network-inbound (local ip))
(allow network-bind (local ip))
(allow network-outbound (literal "/private/var/run/mDNSResponder"))
"""
"""Only the socket that resolves names: docker and ssh listen on others in the file system."""


class Seatbelt:
    """Runs a command under its own profile."""

    level: Level
    limits: Limits
    ways_out = None

    def __init__(
        self,
        *,
        home: Path,
        repository: Path,
        path: str,
        environment: Mapping[str, str],
        marker: str,
        places: Path,
        read: Sequence[Path] = (),
        pass_env: Sequence[str] = (),
        limits: Limits | None = None,
        program: Path = PROGRAM,
    ) -> None:
        """Take the host as it is now; homes and temporary folders of boxes are in `places`."""
        self.level = "seatbelt"
        self.limits = limits or Limits()
        self._home = home.absolute()
        self._homes = tuple(dict.fromkeys((self._home, self._home.resolve())))
        self._repository = repository.absolute()
        self._path = tuple(Path(entry) for entry in absolute_path(path))
        self._read = tuple(readable(folder, self._homes) for folder in read)
        self._environment = {**environment, "PATH": path}
        self._pass_env = tuple(pass_env)
        self._marker = marker
        self.places = places.absolute()
        self._program = program

    def writable(self, box: Box) -> tuple[str, ...]:  # noqa: ARG002 (the port's signature)
        """Nothing: Landlock is used inside bubblewrap only."""
        return ()

    def inside(self, box: Box) -> str:
        return str(box.checkout.resolve())

    @contextmanager
    def entered(self, box: Box, command: Sequence[str]) -> Generator[Entry]:
        """The command line; makes the box's folders fresh."""
        yield Entry(argv=self.argv(box, command), env=self.environment(box))

    def argv(self, box: Box, command: Sequence[str]) -> list[str]:
        """The command line; makes the box's folders fresh."""
        place = self._place(box)
        shutil.rmtree(place, ignore_errors=True)
        for folder in ("home", "tmp"):
            (place / folder).mkdir(parents=True)
        return [str(self._program), "-p", self.profile(box), *command]

    def environment(self, box: Box) -> dict[str, str]:
        """The environment of the box, with a new mark."""
        place = self._place(box)
        return bare_environment(
            self._environment,
            pass_env=self._pass_env,
            home=place / "home",
            temporary=str(place / "tmp"),
            run=self._marker,
            env=box.env,
        )

    @property
    def launcher(self) -> tuple[str, ...]:
        """Nothing: a profile cannot be narrowed from within."""
        return ()

    def probe(self) -> str | None:
        """Run `true` under a profile; return why that fails here, or None."""
        if sys.platform != "darwin":
            return "seatbelt is a part of macOS"
        with tempfile.TemporaryDirectory(prefix="windlass-probe-") as folder:
            # In a temporary folder: a probe must not make the box's own.
            trial = copy(self)
            trial.places = Path(folder)
            box = Box(checkout=Path(folder), network=False)
            return why_not(trial.argv(box, ["/usr/bin/true"]), trial.environment(box))

    def profile(self, box: Box) -> str:
        """The profile's rules for this box."""
        own = [box.checkout.resolve(), self._place(box).resolve()]
        services = (*SERVICES, *(NETWORK_SERVICES if box.network else ()))
        return "".join(
            (
                ALWAYS,
                _rule("allow file-read*", [_literal(Path("/")), *map(_subpath, self._shown(box))]),
                _rule("allow file-read* file-write-data file-ioctl", list(_devices())),
                _rule("deny file-read* file-write*", [_subpath(path) for path in self._hidden()]),
                _rule("allow file-read* file-write*", [_subpath(path) for path in own]),
                _rule("allow mach-lookup", [f"(global-name {_quoted(s)})" for s in services]),
                NETWORK if box.network else "",
            )
        )

    def _shown(self, box: Box) -> list[Path]:
        """What may be read: the system, toolchains, git's objects, and what was named."""
        named = (
            *(Path(folder) for folder in SYSTEM),
            *toolchains(self._path, self._home, self._repository),
            *(path for path in self._path if self._is_public(path)),
            *self._read,
            *box.read,
            *git_folders_shown(box.checkout).values(),
        )
        return sorted({path.resolve() for path in named})

    def _hidden(self) -> list[Path]:
        """What may not be read, even inside a folder that was named."""
        logins = (home / login for home in self._homes for login in (*LOGINS, *HOME_KEYS))
        return sorted({path.resolve() for path in (*map(Path, PRIVATE), *logins)})

    def _is_public(self, path: Path) -> bool:
        """Whether a folder on PATH neither contains nor is in the home or the repository."""
        places = (*self._homes, self._repository, self._repository.resolve())
        names = (path, path.resolve())
        within = any(name.is_relative_to(place) for name in names for place in places)
        around = any(place.is_relative_to(name) for name in names for place in places)
        return not within and not around

    def _place(self, box: Box) -> Path:
        name = hashlib.sha256(bytes(box.checkout.absolute())).hexdigest()[:16]
        return self.places / name


def _rule(head: str, filters: Iterable[str]) -> str:
    return "".join((f"({head}", *(f"\n  {each}" for each in filters), ")\n"))


def _devices() -> Iterable[str]:
    yield from (_literal(Path("/dev") / name) for name in DEVICES)
    yield '(regex #"^/dev/fd[0-9/]*$")'
    # A terminal that the box opened itself carries this extension; the user's own do not.
    yield '(require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty"))'


def _subpath(path: Path) -> str:
    return f"(subpath {_quoted(str(path))})"


def _literal(path: Path) -> str:
    return f"(literal {_quoted(str(path))})"


def _quoted(text: str) -> str:
    """The text as a string in a profile; raises if it cannot be quoted."""
    if not text.isprintable():
        message = f"the path {text!r} cannot be written into a seatbelt profile"
        raise ConfigError(message, hint="rename the folder, or use `--sandbox checkout`")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
