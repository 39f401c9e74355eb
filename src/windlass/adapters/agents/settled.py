"""A Player is done when its work would outlast a power loss, for that it is done is then recorded.

No agent syncs what it writes; without this, a finished and paid Player could leave empty files.
"""

from contextlib import suppress
from pathlib import Path, PurePath

import anyio.to_thread

from windlass.adapters.files import sync_all
from windlass.ports import Agent, Brief, Report, Watch


class SettledAgent:
    """Lets the agent work, and what it wrote settle."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        """As the agent does; a Coach's writes go nowhere, and need not stay."""
        report = await self._agent.work(brief, workspace, watch)
        if brief.role == "player":
            # Somebody may have taken the workspace away meanwhile: then nothing is left to settle,
            # and whether it still stands is the repository's to say.
            with suppress(FileNotFoundError):
                await anyio.to_thread.run_sync(sync_all, Path(workspace))
        return report
