"""Gives an agent its span, so that the agent's own telemetry continues from there."""

from collections.abc import Callable
from pathlib import PurePath

from msgspec.structs import replace

from windlass.ports import Agent, Brief, Report, Watch


class TracedAgent:
    """Lets the agent work, with its span's `traceparent` header in the brief."""

    def __init__(self, agent: Agent, traceparent: Callable[[str, str], str]) -> None:
        """Take a function that gives the header for a task and a role."""
        self._agent = agent
        self._traceparent = traceparent

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        traceparent = self._traceparent(brief.task, brief.role)
        return await self._agent.work(replace(brief, traceparent=traceparent), workspace, watch)
