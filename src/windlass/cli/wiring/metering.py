"""How agents reach their model: through the meter where the key is in the environment.

Without a key there (a login by token) the agent's own account is all there is, and what a killed
agent had spent is said to be unknown.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol, runtime_checkable

from windlass.adapters.agents.claude import PROVIDER, ClaudeAgent
from windlass.adapters.sandbox import Sandbox
from windlass.adapters.sandbox.ways_out import METER_URL
from windlass.events.model import Usage
from windlass.ports import Agent
from windlass.settings import AgentSettings

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
"""Credentials that the meter can hold in the agents' place."""


class Spender(Protocol):
    """Whoever keeps the record of what is spent: a run, or a command that lets an agent write."""

    def reserve(self, task: str, role: str, model: str, usd: float) -> str | None:
        """Let a request go, or not."""
        ...

    def settle(self, reservation: str, usage: Usage) -> None:
        """Record what it came to."""
        ...


class Books:
    """Where the meter writes: the run's own record, once there is a run."""

    def __init__(self, redact: Callable[[str], str] = str) -> None:
        self.runner: Spender | None = None
        self._redact = redact

    def reserve(self, task: str, role: str, model: str, usd: float) -> str | None:
        """Let a request go, or not."""
        if self.runner is None:
            return None
        # An agent can name any model in a request of its own, and the journal keeps such names.
        return self.runner.reserve(task, role, self._redact(model), usd)

    def settle(self, reservation: str, usage: Usage) -> None:
        """Record what it came to."""
        if self.runner is not None:
            self.runner.settle(reservation, usage)


@runtime_checkable
class OwnMeter(Protocol):
    """An agent that books its requests itself, as the meter would: a rehearsed one has no proxy."""

    books: Books


def is_metered(credentials: Mapping[str, str]) -> bool:
    """Whether there is a key that agents need not hold."""
    return any(name in credentials for name in KEYS)


@asynccontextmanager
async def employed(
    settings: AgentSettings,
    sandbox: Sandbox,
    credentials: Mapping[str, str],
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

    def make(reached_with: Mapping[str, str]) -> Agent:
        return ClaudeAgent(settings, sandbox, reached_with, redact=redact)

    if not is_metered(credentials):
        yield make(credentials), books
        return
    # A web server and a client for it: nobody but a run that spends should wait for them.
    from windlass.adapters.agents.metered import MeteredAgent
    from windlass.adapters.meter.proxy import Meter

    upstream = credentials.get("ANTHROPIC_BASE_URL") or PROVIDER
    keys = {name: value for name, value in credentials.items() if name in KEYS}
    async with Meter.serving(upstream, keys, books) as meter:
        address = None
        if sandbox.ways_out is not None:
            sandbox.ways_out.meter, address = meter.listening, METER_URL
        yield MeteredAgent(meter, make, address), books
