"""Picks the sandbox a run gets. Law: nothing weaker than what was asked for.

`auto` asks for walls: the strongest that work here. Where none do, it is refused; to go without is
for a person to say, by the level `checkout`.
"""

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias, assert_never

from windlass.adapters.sandbox.model import Sandbox
from windlass.errors import ConfigError, NoWalls
from windlass.settings import Level

Requested: TypeAlias = Level | Literal["auto"]

WITHOUT = 'say it in words: `--sandbox checkout`, or `level = "checkout"` under [sandbox]'
"""How to go on where no walls work."""

CURES = {
    "bwrap": "install bubblewrap (`apt install bubblewrap`), or use `--sandbox checkout`",
    "seatbelt": "elsewhere use bwrap, or `--sandbox checkout`",
}


class Walls(Sandbox, Protocol):
    """A sandbox that may not work on this machine."""

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
    """Return the sandbox of that level; `auto` is the strongest with walls that works here."""
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
