"""What a process is given, whatever the level of the sandbox that keeps it in."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from windlass.adapters.limits import Limits
from windlass.settings import Level


class Box(Struct, frozen=True, kw_only=True):
    """One process's share of the world."""

    checkout: Path
    """The folder it works in: writable, its working directory, and the only thing that stays."""
    network: bool
    env: Mapping[str, str] = {}
    """Variables it gets beside the harmless ones every process gets; nothing else is inherited."""
    read: tuple[Path, ...] = ()
    """Further files or folders it may read, such as an agent's program."""
    nests: bool = False
    """Whether it starts a box of its own, as a Coach's program does. Then it keeps the calls that
    make namespaces and mounts, and is not behind Landlock, which refuses them."""


class Sandbox(Protocol):
    """Makes the command line that runs a command inside the walls."""

    level: Level
    limits: Limits
    """How much each box may take; whoever starts a command looks after it."""

    def seccomp(self, box: Box) -> bytes:
        """The filter that calls of the box go through; empty where there is none."""
        ...

    def writable(self, box: Box) -> tuple[str, ...]:
        """Where Landlock lets the box write, as the box sees it; empty where it has no Landlock."""
        ...

    def inside(self, box: Box) -> str:
        """The path under which the process sees its checkout."""
        ...

    def argv(self, box: Box, command: Sequence[str]) -> list[str]:
        """The command line to start in place of `command`."""
        ...

    def environment(self, box: Box) -> dict[str, str]:
        """The whole environment to start it with."""
        ...

    def apart(self) -> tuple[str, ...]:
        """What a process puts before a command that is to reach nothing of it; empty where not."""
        ...
