"""Tries setup and check commands once, in the sandbox, on a throwaway checkout of one commit.

Law: as in a run, setup reaches public hosts and checks have no network unless the settings give
them one. Nothing of it is left: no ref, no journal, no result that a run would use.
"""

import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from windlass.adapters.checks.runner import run_check
from windlass.adapters.checks.setup_cache import TIMEOUT
from windlass.adapters.files import remove
from windlass.adapters.git.checkouts import Checkouts, is_occupied
from windlass.adapters.git.paths import excludes
from windlass.adapters.git.store import Store
from windlass.adapters.processes.guardian import guarded
from windlass.adapters.sandbox import Box, Sandbox
from windlass.adapters.sandbox.box import Asked
from windlass.app.wiring.project import Project
from windlass.core.events.model import CheckResult
from windlass.core.settings import Settings

_NAME = ".try-"
"""The start of its folder's name; no plan's id begins with a dot."""


class Trial:
    """A checkout of a commit, with a sandbox for commands in it."""

    def __init__(self, project: Project, settings: Settings, sandbox: Sandbox, path: Path) -> None:
        self._project = project
        self._settings = settings
        self._sandbox = sandbox
        self._path = path
        self.reached: dict[str, None] = {}
        """Public hosts that setup reached."""
        self.refused: dict[str, None] = {}
        """Hosts that a command asked for and did not reach."""
        if sandbox.ways_out is not None:
            sandbox.ways_out.tell = self._hear

    async def set_up(self, command: str) -> CheckResult:
        box = Box(checkout=self._path, network=True, reach="public", role="setup")
        return await self._run(box, command, TIMEOUT)

    async def check(self, command: str) -> CheckResult:
        network = bool(self._settings.sandbox.network)
        box = Box(checkout=self._path, network=network, env={"CI": "true"}, role="check")
        return await self._run(box, command, self._settings.check_timeout)

    async def _run(self, box: Box, command: str, seconds: float) -> CheckResult:
        return await run_check(
            self._sandbox, box, command, timeout=seconds, redactor=self._project.redactor
        )

    def _hear(self, asked: Asked) -> None:
        self.reached.update(dict.fromkeys(asked.reached))
        self.refused.update(dict.fromkeys(asked.refused))


@asynccontextmanager
async def open_trial(
    project: Project, settings: Settings, commit: str, tell: Callable[[str], None]
) -> AsyncGenerator[Trial]:
    """A trial on a checkout of the commit; `tell` gets the level of the sandbox."""
    name = f"{_NAME}{secrets.token_hex(4)}"
    mark = f"{project.mark}/{name}"
    sandbox = project.walls.sandbox(settings, mark)
    tell(sandbox.level)
    project.make_home()
    store = Store(project.origin, project.folders(name))
    place = store.folders.throwaway
    with guarded(mark):
        try:
            await _remove_left(store.folders.home.parent)
            store.open(excludes(keep=settings.workspace.keep, user=store.origin.excludes))
            await Checkouts(store).make(place / "checkout", commit, place / "index", "judges")
            yield Trial(project, settings, sandbox, place / "checkout")
        finally:
            store.close()
            with anyio.CancelScope(shield=True):
                await remove(store.folders.home)


async def _remove_left(plans: Path) -> None:
    """Remove what a killed process left."""
    for folder in plans.glob(f"{_NAME}*"):
        if not is_occupied(folder):
            await remove(folder)
