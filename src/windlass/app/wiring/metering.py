"""How agents reach their model: through the meter, if the key is in the environment.

Without a key (a login by token), only the agent itself reports its usage, and the usage of a killed
agent is unknown.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol, runtime_checkable

from msgspec.structs import replace

from windlass.adapters.meter.holds import Holds
from windlass.adapters.meter.wire import wire_of
from windlass.adapters.sandbox import Sandbox
from windlass.adapters.sandbox.network import METER_URL
from windlass.app.wiring.agents import vendor_of
from windlass.core.events.model import Usage
from windlass.core.settings import AgentSettings
from windlass.core.state.budget import No
from windlass.ports import Agent, Ask, Held, Ledger


class RunLedger:
    """The ledger that the meter writes to; it passes everything on to the run, once that exists."""

    def __init__(self, redact: Callable[[str], str] = str) -> None:
        self.run: Ledger | None = None
        self._redact = redact

    def reserve(self, ask: Ask) -> Held | No:
        """Reserve money for a request; `No` if it may not be sent now."""
        return No.REFUSED if self.run is None else self.run.reserve(self._safe(ask))

    def stream(self, id_: str, usage: Usage) -> None:
        """Record the usage of a request so far."""
        if self.run is not None:
            self.run.stream(id_, usage)

    def settle(self, id_: str, usage: Usage, *, broke_off: bool = False) -> None:
        """Record the usage of a finished request."""
        if self.run is not None:
            self.run.settle(id_, usage, broke_off=broke_off)

    def refuse(self, ask: Ask) -> None:
        """Record that the budget is too small for a request."""
        if self.run is not None:
            self.run.refuse(self._safe(ask))

    def _safe(self, ask: Ask) -> Ask:
        # An agent can put any text into the model's name, and the journal records it.
        return replace(ask, model=self._redact(ask.model))


@runtime_checkable
class OwnMeter(Protocol):
    """An agent that records its requests itself, as the meter would: rehearsals have no proxy."""

    ledger: RunLedger


@asynccontextmanager
async def open_agent(
    settings: AgentSettings,
    sandbox: Sandbox,
    environment: Mapping[str, str],
    given: Agent | None = None,
    *,
    redact: Callable[[str], str],
) -> AsyncGenerator[tuple[Agent, RunLedger]]:
    """The agent for a run, and the ledger for its requests; a given agent gets no meter."""
    ledger = RunLedger(redact)
    if given is not None:
        if isinstance(given, OwnMeter):
            given.ledger = ledger
        yield given, ledger
        return
    vendor = vendor_of(settings)
    credentials = vendor.credentials(environment)

    def make(variables: Mapping[str, str], holds: Holds) -> Agent:
        return vendor.make(settings, sandbox, variables, redact=redact, holds=holds)

    if not vendor.is_metered(environment):
        yield make(credentials, Holds()), ledger
        return
    # A web server and its client are slow to import: only a run that spends needs them.
    from windlass.adapters.agents.metered import MeteredAgent
    from windlass.adapters.meter.proxy import Meter

    upstream = credentials.get(vendor.address) or vendor.url
    keys = {name: value for name, value in credentials.items() if name in vendor.keys}
    wire = wire_of(vendor.wire)
    async with Meter.serving(wire, upstream, keys, ledger, environment) as meter:
        address = None
        if sandbox.ways_out is not None:
            sandbox.ways_out.meter, address = meter.listening, METER_URL
        yield MeteredAgent(meter, vendor, make, address, tuple(keys)), ledger
