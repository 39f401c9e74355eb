"""The levels without walls: a separate checkout, a bare environment, an empty home.

Law, at every level: a process starts with the variables in `HARMLESS`, those that a person or
Windlass named for it, and no others. A variable whose name suggests a secret is never taken from
the user's environment unless it was named in full.

A process at these levels can reach everything that the user can; `guard.py` compares refs and trees
before and after, and reports changes.
"""

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from windlass.adapters.processes.leftovers import MARKER, mark
from windlass.adapters.processes.limits import Limits
from windlass.adapters.sandbox.box import Box, Entry
from windlass.core.secrets import names_secret
from windlass.core.settings import Level

CERTIFICATES = (
    "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NIX_SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "PIP_CERT",
    "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE",
)  # fmt: skip
"""Variables for certificates: public files that company networks often need."""

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
"""Not included: PIP_INDEX_URL and the like, which often contain a password."""

HARMLESS_FAMILIES = ("LC_", "PYENV_")

ROOTS = {
    "ASDF_DATA_DIR": ".asdf",
    "PYENV_ROOT": ".pyenv",
    "RBENV_ROOT": ".rbenv",
    "RUSTUP_HOME": ".rustup",
    "VOLTA_HOME": ".volta",
}
"""Where toolchains look below the home, and the variables to use when the home is another."""

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Plain:
    """Starts processes without walls, with a bare environment and an empty home."""

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
        """Take an empty folder as home; `marker` names the run of these processes."""
        self.level = level
        self.limits = limits or Limits()
        self._home = home
        self._environment = {**_roots(Path(environment.get("HOME", "/"))), **environment}
        self._pass_env = tuple(pass_env)
        self._marker = marker

    def writable(self, box: Box) -> tuple[str, ...]:  # noqa: ARG002 (the port's signature)
        """Nothing: Landlock is used inside bubblewrap only."""
        return ()

    def inside(self, box: Box) -> str:
        return str(box.checkout)

    @contextmanager
    def entered(self, box: Box, command: Sequence[str]) -> Generator[Entry]:
        """The command as it is; the caller starts it in the checkout."""
        yield Entry(argv=list(command), env=self.environment(box))

    def environment(self, box: Box) -> dict[str, str]:
        """The environment of the box, with a new mark."""
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
        """Nothing: without walls a program cannot be protected from its commands."""
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
    """The environment of a box: the user's harmless variables and those named for it."""
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
    """PATH without relative entries, which would mean another folder in every checkout."""
    entries = tuple(entry for entry in path.split(os.pathsep) if entry.startswith("/"))
    return entries or tuple(SYSTEM_PATH.split(os.pathsep))


def _roots(home: Path) -> dict[str, str]:
    return {name: str(home / root) for name, root in ROOTS.items() if (home / root).is_dir()}


def _is_harmless(name: str) -> bool:
    known = name in HARMLESS or name.startswith(HARMLESS_FAMILIES)
    return known and not names_secret(name)
