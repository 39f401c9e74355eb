"""The levels without walls: a checkout of its own, a bare environment, an empty home.

Law, and of every level: a process starts with the variables named in `HARMLESS`, those a person
or Windlass named for it, and nothing else. A variable that sounds like a secret is never taken
from the user's environment unless it was named in full.

A process at these levels can reach whatever the user can, if it sets out to; whoever runs one
compares refs and trees before and after, and says so.
"""

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from windlass.adapters.processes.leftovers import MARKER, mark
from windlass.adapters.processes.limits import Limits
from windlass.adapters.sandbox.box import Box, Entry
from windlass.core.secrets import gives_away
from windlass.core.settings import Level

CERTIFICATES = (
    "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NIX_SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "PIP_CERT",
    "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE",
)  # fmt: skip
"""Variables that name whom to trust: public files, without which no network works in companies."""

HARMLESS = frozenset(
    (
        *CERTIFICATES,
        "ASDF_DATA_DIR",
        "CARGO_HOME",
        "COLORTERM",
        "GOPATH",
        "GOROOT",
        "JAVA_HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "NO_COLOR",
        "NVM_DIR",
        "RBENV_ROOT",
        "RUSTUP_HOME",
        "RUSTUP_TOOLCHAIN",
        "SHELL",
        "TERM",
        "TZ",
        "USER",
        "VIRTUAL_ENV",
        "VOLTA_HOME",
    )
)
"""Not among them: PIP_INDEX_URL and its like, which often carry a password."""

HARMLESS_FAMILIES = ("LC_", "PYENV_")

ROOTS = {
    "ASDF_DATA_DIR": ".asdf",
    "PYENV_ROOT": ".pyenv",
    "RBENV_ROOT": ".rbenv",
    "RUSTUP_HOME": ".rustup",
    "VOLTA_HOME": ".volta",
}
"""Where toolchains look below the home, and the variables that tell them when it is another."""

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Plain:
    """Starts processes as they are, with a bare environment and an empty home."""

    level: Level
    limits: Limits
    ways_out = None

    def __init__(
        self,
        level: Level,
        *,
        home: Path,
        environment: Mapping[str, str],
        pass_env: Sequence[str] = (),
        marker: str,
        limits: Limits | None = None,
    ) -> None:
        """Take an empty folder as home; `marker` names the run whose processes these are."""
        self.level = level
        self.limits = limits or Limits()
        self._home = home
        self._environment = {**_roots(Path(environment.get("HOME", "/"))), **environment}
        self._pass_env = tuple(pass_env)
        self._marker = marker

    def writable(self, box: Box) -> tuple[str, ...]:  # noqa: ARG002 (the port's form)
        """Give nothing: Landlock is used inside bubblewrap alone."""
        return ()

    def inside(self, box: Box) -> str:
        """Give the checkout's own path: nothing is mounted here."""
        return str(box.checkout)

    @contextmanager
    def entered(self, box: Box, command: Sequence[str]) -> Generator[Entry]:
        """Give the command as it is; whoever starts it does so in the checkout."""
        yield Entry(argv=list(command), env=self.environment(box))

    def environment(self, box: Box) -> dict[str, str]:
        """Give the whole environment, with a mark that is new each time."""
        return bare_environment(
            self._environment,
            pass_env=self._pass_env,
            home=self._home,
            temporary=self._environment.get("TMPDIR", "/tmp"),  # noqa: S108 (the system's own)
            run=self._marker,
            env=box.env,
        )

    @property
    def launcher(self) -> tuple[str, ...]:
        """Give nothing: without walls there are none within them."""
        return ()


def bare_environment(
    user: Mapping[str, str],
    *,
    pass_env: Sequence[str],
    home: Path,
    temporary: str,
    run: str,
    env: Mapping[str, str],
) -> dict[str, str]:
    """Make the environment of a box out of the user's and what was named for it."""
    named = {name: user[name] for name in pass_env if name in user}
    return {
        **{name: value for name, value in user.items() if _is_harmless(name)},
        **named,
        "PATH": os.pathsep.join(absolute_path(user.get("PATH", ""))),
        "HOME": str(home),
        "TMPDIR": temporary,
        **env,
        MARKER: mark(run),
    }


def absolute_path(path: str) -> tuple[str, ...]:
    """Split PATH, without the entries that would mean another folder in every checkout."""
    entries = tuple(entry for entry in path.split(os.pathsep) if entry.startswith("/"))
    return entries or tuple(SYSTEM_PATH.split(os.pathsep))


def _roots(home: Path) -> dict[str, str]:
    return {name: str(home / root) for name, root in ROOTS.items() if (home / root).is_dir()}


def _is_harmless(name: str) -> bool:
    known = name in HARMLESS or name.startswith(HARMLESS_FAMILIES)
    return known and not gives_away(name)
