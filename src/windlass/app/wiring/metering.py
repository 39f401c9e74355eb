"""How agents reach their model: through the meter where the key is in the environment.

Without a key there (a login by token) the agent's own account is all there is, and what a killed
agent had spent is said to be unknown.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol, runtime_checkable

from msgspec.structs import replace

from windlass.adapters.meter.wire import wire_of
from windlass.adapters.sandbox import Sandbox
from windlass.adapters.sandbox.network import METER_URL
from windlass.app.wiring.agents import vendor_of
from windlass.core.events.model import Usage
from windlass.core.settings import AgentSettings
from windlass.core.state.budget import No
from windlass.ports import Agent, Ask, Held, Ledger


class Books:
    """The ledger that the meter writes to: the run's own, once there is a run."""

    def __init__(self, redact: Callable[[str], str] = str) -> None:
        self.runner: Ledger | None = None
        self._redact = redact

    def reserve(self, ask: Ask) -> Held | No:
        """Set money aside for a request, or say why it may not be sent now."""
        return No.REFUSED if self.runner is None else self.runner.reserve(self._safe(ask))

    def stream(self, id_: str, usage: Usage) -> None:
        """Record what the request has come to so far."""
        if self.runner is not None:
            self.runner.stream(id_, usage)

    def settle(self, id_: str, usage: Usage, *, broke_off: bool = False) -> None:
        """Record what it came to."""
        if self.runner is not None:
            self.runner.settle(id_, usage, broke_off=broke_off)

    def refuse(self, ask: Ask) -> None:
        """Record that too little is left for what was asked."""
        if self.runner is not None:
            self.runner.refuse(self._safe(ask))

    def _safe(self, ask: Ask) -> Ask:
        # An agent can name any model in a request of its own, and the journal keeps such names.
        return replace(ask, model=self._redact(ask.model))


@runtime_checkable
class OwnMeter(Protocol):
    """An agent that books its requests itself, as the meter would: a rehearsed one has no proxy."""

    books: Books


@asynccontextmanager
async def employed(
    settings: AgentSettings,
    sandbox: Sandbox,
    environment: Mapping[str, str],
    given: Agent | None = None,
    *,
    redact: Callable[[str], str],
) -> AsyncGenerator[tuple[Agent, Books]]:
    """The agent for a run, and the books that its meter writes to; one that is given needs none."""
    books = Books(redact)
    if given is not None:
        if isinstance(given, OwnMeter):
            given.books = books
        yield given, books
        return
    vendor = vendor_of(settings)
    credentials = vendor.credentials(environment)

    def make(reached_with: Mapping[str, str]) -> Agent:
        return vendor.make(settings, sandbox, reached_with, redact=redact)

    if not vendor.is_metered(environment):
        yield make(credentials), books
        return
    # A web server and a client for it: nobody but a run that spends should wait for them.
    from windlass.adapters.agents.metered import MeteredAgent
    from windlass.adapters.meter.proxy import Meter

    upstream = credentials.get(vendor.address) or vendor.url
    keys = {name: value for name, value in credentials.items() if name in vendor.keys}
    async with Meter.serving(wire_of(vendor.wire), upstream, keys, books) as meter:
        address = None
        if sandbox.ways_out is not None:
            sandbox.ways_out.meter, address = meter.listening, METER_URL
        yield MeteredAgent(meter, vendor, make, address), books
