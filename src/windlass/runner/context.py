"""Everything that a run uses: the ports, and the project's instructions for agents."""

import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager

from msgspec import Struct

from windlass.core.plan import Plan
from windlass.ports import Agent, Checks, Clock, Inbox, Repository, Watch
from windlass.runner.shutdown import stop_signals


class Ports(Struct, frozen=True, kw_only=True):
    agent: Agent
    repository: Repository
    checks: Checks
    clock: Clock
    inbox: Inbox
    watch: Watch
    plan: Callable[[], Plan | str | None] = lambda: None
    """Reads the plan's files: the plan, or why it cannot be read; None if there are no files."""
    metered: bool = False
    """Whether all requests of agents go through the meter."""
    redact: Callable[[str], str] = str
    """Removes secrets from prompts and reports."""
    instructions: Mapping[str, str] = {}
    """The project's own prompt files and its guide for agents, by file name."""
    roll: Callable[[], float] = random.random  # noqa: S311  not for security
    """A number between 0 and 1, so that retries do not all happen at once."""
    signals: Callable[[], AbstractContextManager[AsyncIterator[str]]] = stop_signals
    """Catches signals that ask the run to stop, and gives their names."""
