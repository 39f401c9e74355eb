"""Everything Windlass knows about an agent's vendor, in one value; other modules ask this value.

The value says how the program is found and started, how it logs in, and which wire protocol its
requests use. How the agent streams, answers by schema and what its box needs is in the agent that
`make` returns. Prices are in the module of the wire protocol.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from windlass.adapters.meter.holds import Holds
from windlass.adapters.sandbox.box import Sandbox
from windlass.core.settings import AgentSettings
from windlass.ports import Agent


class Program(Struct, frozen=True):
    """An agent's program on this machine."""

    path: Path
    version: str = ""
    """Empty if only the program itself could tell: starting it takes a second."""


class MakeAgent(Protocol):
    def __call__(
        self,
        settings: AgentSettings,
        sandbox: Sandbox,
        credentials: Mapping[str, str],
        *,
        redact: Callable[[str], str],
        holds: Holds,
    ) -> Agent:
        """Make an agent that logs in with these variables and sees no others of the user's.

        `holds` says while the meter holds one of its requests: no time to count as idle.
        """
        ...


class Vendor(Struct, frozen=True, kw_only=True):
    name: str
    """Its name in `agent.name`."""
    make: MakeAgent
    model: str
    """The model to use unless the settings name one."""
    find_program: Callable[[], Program | None]
    """Find its program on this machine, without starting it."""
    install: str
    """What to do if its program is missing."""
    keys: tuple[str, ...]
    """Variables that hold a key, which the meter can keep from the agent; the usual one first."""
    logins: tuple[str, ...] = ()
    """Variables that hold a login, which only its program can use: such a run has no meter."""
    address: str = ""
    """The variable that sets where its requests go; empty if there is none."""
    url: str = ""
    """Where its requests go by default."""
    wire: str = ""
    """The module of `adapters/meter/wire` for its requests; empty: it cannot be metered."""
    co_author: str = ""
    """Its name and address in a Co-Authored-By trailer; empty: commits do not name it."""
    provider: str = ""
    """Who answers its requests, by OpenTelemetry's name; by default the vendor's name."""

    def credentials(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The variables that its agents may need; they get no other secret."""
        names = filter(None, (*self.keys, self.address, *self.logins))
        return {name: environment[name] for name in names if environment.get(name, "").strip()}

    def is_metered(self, environment: Mapping[str, str]) -> bool:
        """Whether the meter holds the key instead of its agents."""
        return bool(self.wire) and any(name in self.credentials(environment) for name in self.keys)

    def through_meter(self, token: str, url: str) -> dict[str, str]:
        """The variables by which an agent reaches the meter instead of its provider."""
        return {self.keys[0]: token, self.address: url}
