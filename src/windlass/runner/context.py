"""The world as one run has it: every port, and what the project says to agents."""

import random
from collections.abc import AsyncIterator, Callable, Mapping

from msgspec import Struct

from windlass.core.plan import Plan
from windlass.ports import Agent, Checks, Clock, Inbox, Repository, Watch
from windlass.runner.shutdown import stop_signals


class Ports(Struct, frozen=True, kw_only=True):
    """The world, as this run has it."""

    agent: Agent
    repository: Repository
    checks: Checks
    clock: Clock
    inbox: Inbox
    watch: Watch
    plan: Callable[[], Plan | str | None] = lambda: None
    """The plan as its files stand now, or why they cannot be read; None where there are none."""
    metered: bool = False
    """Whether every request of an agent passes the meter."""
    redact: Callable[[str], str] = str
    """Takes secrets out of what agents are told."""
    said: Mapping[str, str] = {}
    """What the project says to agents, by file: its own instructions, and its guide to agents."""
    roll: Callable[[], float] = random.random  # noqa: S311  nothing is secret about a wait
    """A number between 0 and 1, for waits that must not come in step."""
    signals: Callable[[], AsyncIterator[str]] = stop_signals
    """The names of signals that ask the run to stop."""
