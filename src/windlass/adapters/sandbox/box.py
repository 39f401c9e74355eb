"""What every sandbox offers: a box for a process, and the choice of the level.

Law: a run gets no weaker sandbox than was asked for. `auto` picks the strongest level with walls
that works here, tested with one harmless command. If none works, the run is refused; a person may
go without walls by naming the level `checkout`.
"""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from pathlib import Path
from socket import socket
from typing import Literal, Protocol, TypeAlias, assert_never

from msgspec import Struct

from windlass.adapters.processes.limits import Limits
from windlass.core.hosts import Reach
from windlass.core.settings import Level
from windlass.errors import ConfigError, NoWalls


class Box(Struct, frozen=True, kw_only=True):
    """What one process may see and reach."""

    checkout: Path
    """Its working directory: writable, and the only thing that remains."""
    network: bool
    """Whether it has a network."""
    reach: Reach = "listed"
    """Which hosts it may reach."""
    hosts: tuple[str, ...] = ()
    """Hosts it may reach in addition to the configured ones, such as its model's."""
    model: bool = False
    """Whether it may reach the meter."""
    env: Mapping[str, str] = {}
    """Variables it gets in addition to the harmless ones; nothing else is inherited."""
    read: tuple[Path, ...] = ()
    """Further files or folders it may read, such as an agent's program."""
    runs: Literal["itself", "apart", "sealed"] = "itself"
    """Whose commands run in it. itself: one command, and what that starts · apart: an agent's
    program, with its own home that its commands do not see · sealed: the same, and its commands
    have no network, and their own processes."""
    tools: Mapping[str, str] = {}
    """Variables for the commands of an agent's program; they get none of the program's own."""
    task: str = ""
    role: str = ""
    """Who it is for, in reports of what it asked for."""


class Entry(Struct, frozen=True, kw_only=True):
    """One start of a process in a box; its resources are open while it is entered."""

    argv: list[str]
    env: dict[str, str]
    inherited: tuple[int, ...] = ()
    """Descriptors that the process must inherit."""
    way_out: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    """Serves the box's network while the block lasts; entered once the process has started."""


class Asked(Struct, frozen=True, kw_only=True):
    """What one box asked its proxy for, where a person should know."""

    task: str
    role: str
    reached: tuple[str, ...] = ()
    """Public hosts that setup reached, apart from the listed ones."""
    refused: tuple[str, ...] = ()


Serve: TypeAlias = Callable[[socket], AbstractAsyncContextManager[None]]


class WaysOut(Protocol):
    """What the doors of a run's boxes lead to."""

    meter: Serve | None
    """Serves the meter on a listener while the block lasts; set while there is one."""
    tell: Callable[[Asked], None]
    """Called when a box ends, if there is something to report."""

    def allow(self, hosts: Sequence[str]) -> None:
        """Let agents reach these too, because setup of merged code did."""
        ...


class Sandbox(Protocol):
    """Makes the command line that runs a command in the sandbox."""

    level: Level
    limits: Limits
    """The limits of each box; the caller that starts a command enforces them."""

    @property
    def ways_out(self) -> WaysOut | None:
        """What the doors of its boxes lead to; None if a box shares the host's network."""
        ...

    def writable(self, box: Box) -> tuple[str, ...]:
        """Where Landlock lets the box write, as paths in the box; empty without Landlock."""
        ...

    def inside(self, box: Box) -> str:
        """The checkout's path inside the box."""
        ...

    def entered(self, box: Box, command: Sequence[str]) -> AbstractContextManager[Entry]:
        """What to start instead of `command`."""
        ...

    @property
    def launcher(self) -> tuple[str, ...]:
        """The words an agent's program puts before a shell command, which is one more argument.

        Empty if a program cannot be protected from its commands.
        """
        ...


def may_run_commands(sandbox: Sandbox, role: str) -> bool:
    """Whether an agent of this role may run commands in this sandbox.

    A Coach may not if its commands could forge its answer, unless the level is `none`.
    """
    return role != "coach" or bool(sandbox.launcher) or sandbox.level == "none"


Requested: TypeAlias = Level | Literal["auto"]

WITHOUT = 'say it in words: `--sandbox checkout`, or `level = "checkout"` under [sandbox]'
"""How to continue if no sandbox works."""

CURES = {
    "bwrap": "install bubblewrap (`apt install bubblewrap`), or use `--sandbox checkout`",
    "seatbelt": "elsewhere use bwrap, or `--sandbox checkout`",
}


class Walls(Sandbox, Protocol):
    def probe(self) -> str | None:
        """Why it does not work here, or None."""
        ...


def choose(
    requested: Requested,
    *,
    bubblewrap: Walls,
    seatbelt: Walls,
    plain: Callable[[Level], Sandbox],
) -> Sandbox:
    """The sandbox of that level; `auto` is the strongest with walls that works here."""
    match requested:
        case "none" | "checkout":
            return plain(requested)
        case "auto":
            return _strongest(bubblewrap, seatbelt)
        case "bwrap":
            return _working(bubblewrap)
        case "seatbelt":
            return _working(seatbelt)
        case _:
            assert_never(requested)


def _strongest(*walls: Walls) -> Sandbox:
    reasons: list[str] = []
    for wall in walls:
        reason = wall.probe()
        if reason is None:
            return wall
        reasons.append(f"{wall.level}: {reason}")
    raise NoWalls(f"no sandbox works here ({'; '.join(reasons)})", hint=WITHOUT)


def _working(walls: Walls) -> Sandbox:
    reason = walls.probe()
    if reason is None:
        return walls
    message = f"the sandbox level {walls.level!r} does not work here: {reason}"
    raise ConfigError(message, hint=CURES[walls.level])


PATIENCE = 10
"""Seconds for a probe."""


def why_not(
    argv: Sequence[str], environment: Mapping[str, str], inherited: tuple[int, ...] = ()
) -> str | None:
    """Why the command failed, or None if it succeeded."""
    try:
        done = subprocess.run(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            pass_fds=inherited,
            timeout=PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"it ended with {done.returncode}"
