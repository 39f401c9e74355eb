"""Picks the sandbox a run gets. Law: nothing weaker than what was asked for, unless it was `auto`.

What `auto` settled for is in the sandbox's `level`; whoever starts the run says it plainly.
"""

from collections.abc import Callable
from typing import Literal, TypeAlias, assert_never

from windlass.adapters.sandbox.bubblewrap import Bubblewrap
from windlass.adapters.sandbox.model import Sandbox
from windlass.adapters.sandbox.plain import Plain
from windlass.errors import ConfigError
from windlass.settings import Level

Requested: TypeAlias = Level | Literal["auto"]


def choose(
    requested: Requested, *, bubblewrap: Bubblewrap, plain: Callable[[Level], Plain]
) -> Sandbox:
    """Return the sandbox of that level; `auto` is the strongest that works here."""
    match requested:
        case "none" | "checkout":
            return plain(requested)
        case "auto":
            return bubblewrap if bubblewrap.probe() is None else plain("checkout")
        case "bwrap":
            reason = bubblewrap.probe()
            if reason is None:
                return bubblewrap
            message = f"the sandbox level 'bwrap' does not work here: {reason}"
            hint = "install bubblewrap (`apt install bubblewrap`), or use `--sandbox checkout`"
            raise ConfigError(message, hint=hint)
        case _:
            assert_never(requested)
