"""What Windlass knows of an agent's vendor, in one value; every other module asks this value.

The value says how its program is found and started, how it logs in, and which wire protocol its
requests speak. How the agent streams, answers by schema and what its box needs is in the agent that
`make` gives. What its requests cost is known to the module of its wire protocol.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from windlass.adapters.sandbox.box import Sandbox
from windlass.core.settings import AgentSettings
from windlass.ports import Agent


class Program(Struct, frozen=True):
    """An agent's program, as it was found."""

    path: Path
    version: str = ""
    """Empty where only the program itself could say, for starting it takes a second."""


class MakeAgent(Protocol):
    """Makes an agent of this vendor."""

    def __call__(
        self,
        settings: AgentSettings,
        sandbox: Sandbox,
        credentials: Mapping[str, str],
        *,
        redact: Callable[[str], str],
    ) -> Agent:
        """Make an agent that logs in with these variables, and sees no other of the user's."""
        ...


class Vendor(Struct, frozen=True, kw_only=True):
    """One vendor of agents."""

    name: str
    """What `agent.name` calls it."""
    make: MakeAgent
    model: str
    """The model that plays unless the settings name one."""
    find_program: Callable[[], Program | None]
    """Find its program on this machine, without starting it."""
    install: str
    """What to do where its program is missing."""
    keys: tuple[str, ...]
    """Variables that hold a key, which the meter can keep from the agent; the usual one first."""
    logins: tuple[str, ...] = ()
    """Variables that hold a login, which only its own program can use: such a run has no meter."""
    address: str = ""
    """The variable that says where its requests go; empty where there is none."""
    url: str = ""
    """Where its requests go unless that variable says otherwise."""
    wire: str = ""
    """The module of `adapters/meter/wire` that its requests speak; empty: it cannot be metered."""
    provider: str = ""
    """Who answers its requests, by OpenTelemetry's name; its own name unless set."""
    load: Callable[[], object] = lambda: None
    """Import what takes long, worth doing in a thread before the first agent starts."""

    def credentials(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The variables that its agents may need; no other secret goes near them."""
        names = filter(None, (*self.keys, self.address, *self.logins))
        return {name: environment[name] for name in names if environment.get(name, "").strip()}

    def is_metered(self, environment: Mapping[str, str]) -> bool:
        """Whether the meter holds a key in its agents' place."""
        return bool(self.wire) and any(name in self.credentials(environment) for name in self.keys)

    def through_meter(self, token: str, url: str) -> dict[str, str]:
        """The variables by which an agent reaches the meter instead of its provider."""
        return {self.keys[0]: token, self.address: url}
