"""An agent that is told which span it works in, for telemetry of its own to go on from there."""

from collections.abc import Callable
from pathlib import PurePath

from msgspec.structs import replace

from windlass.ports import Agent, Brief, Report, Watch


class TracedAgent:
    """Lets the agent work, with the header of its span."""

    def __init__(self, agent: Agent, traceparent: Callable[[str, str], str]) -> None:
        """Take what gives the header for a task and a role."""
        self._agent = agent
        self._traceparent = traceparent

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        """As the agent does."""
        traceparent = self._traceparent(brief.task, brief.role)
        return await self._agent.work(replace(brief, traceparent=traceparent), workspace, watch)
