"""Picks the sandbox a run gets. Law: nothing weaker than what was asked for, unless it was `auto`.

What `auto` settled for is in the sandbox's `level`; whoever starts the run says it plainly.
"""

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias, assert_never

from windlass.adapters.sandbox.model import Sandbox
from windlass.errors import ConfigError
from windlass.settings import Level

Requested: TypeAlias = Level | Literal["auto"]

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
    """Return the sandbox of that level; `auto` is the strongest that works here."""
    match requested:
        case "none" | "checkout":
            return plain(requested)
        case "auto":
            walls = (bubblewrap, seatbelt)
            return next((wall for wall in walls if wall.probe() is None), None) or plain("checkout")
        case "bwrap":
            return _working(bubblewrap)
        case "seatbelt":
            return _working(seatbelt)
        case _:
            assert_never(requested)


def _working(walls: Walls) -> Sandbox:
    reason = walls.probe()
    if reason is None:
        return walls
    message = f"the sandbox level {walls.level!r} does not work here: {reason}"
    raise ConfigError(message, hint=CURES[walls.level])
