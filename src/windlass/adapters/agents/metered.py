"""An agent that never holds the key: it gets a token for the meter, and the meter alone counts.

What the agent says it has cost is left out, for every request it made is in the journal already.
"""

from collections.abc import Callable, Mapping
from pathlib import PurePath

from msgspec.structs import replace

from windlass.adapters.meter.proxy import Meter
from windlass.events.model import Usage
from windlass.ports import Agent, Brief, Report, Watch


class MeteredAgent:
    """Lets a fresh agent work through the meter."""

    def __init__(self, meter: Meter, make: Callable[[Mapping[str, str]], Agent]) -> None:
        """Take what makes an agent with the very variables it reaches its model with."""
        self._meter = meter
        self._make = make

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        """Work with a token that is good for this call only."""
        admission = self._meter.admit(brief.task, brief.role)
        credentials = {
            "ANTHROPIC_API_KEY": admission.token,
            "ANTHROPIC_BASE_URL": admission.url,
        }
        try:
            report = await self._make(credentials).work(brief, workspace, watch)
        finally:
            self._meter.dismiss(admission.token)
        return replace(report, usage=Usage())
