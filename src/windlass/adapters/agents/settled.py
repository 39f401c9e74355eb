"""A Player is done only when its work survives a power loss: that it is done is then recorded.

Agents do not sync what they write; without this, a finished and paid Player could leave empty
files.
"""

from contextlib import suppress
from pathlib import Path, PurePath

import anyio.to_thread

from windlass.adapters.files import sync_all
from windlass.ports import Agent, Brief, Report, Watch


class SettledAgent:
    """Lets the agent work, then syncs a Player's workspace."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        """Work, then sync; a Coach's writes are thrown away and need no sync."""
        report = await self._agent.work(brief, workspace, watch)
        if brief.role == "player":
            # If the workspace was removed meanwhile, there is nothing to sync; the repository
            # reports it.
            with suppress(FileNotFoundError):
                await anyio.to_thread.run_sync(sync_all, Path(workspace))
        return report
