"""The agent of runs that are rehearsed under faults; everything else in them is real."""

import os
from pathlib import Path, PurePath

from windlass.adapters.disk import disk_error_name
from windlass.adapters.processes.leftovers import MARKER
from windlass.adapters.sandbox import Box, Sandbox
from windlass.adapters.sandbox import commands as processes
from windlass.app.wiring.metering import RunLedger
from windlass.app.wiring.project import Project
from windlass.core.events.model import Failure
from windlass.core.settings import Settings
from windlass.core.state.budget import No
from windlass.ports import Activity, Ask, Brief, Report, Watch
from windlass.testing.faults.story import COST, PLAN_ID, SCRIPT, WORST, reviewed

__all__ = ["TinyAgent", "disk_error_name", "left_running"]

TIMEOUT = 60


class TinyAgent:
    """Plays the story with a small shell script in the workspace, inside the run's walls.

    Each call is one request. It is recorded as the meter does: reserved before, settled after.
    """

    def __init__(self, project: Project, settings: Settings, calls: Path) -> None:
        """`calls` is a file that gets a line for every call, to be counted."""
        self._sandbox: Sandbox = project.walls.sandbox(settings, f"{project.mark}/{PLAN_ID}/tiny")
        self._calls = calls
        self.ledger = RunLedger()

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        request = self.ledger.reserve(
            Ask(task=brief.task, role=brief.role, model=brief.model, most=WORST, least=WORST)
        )
        if isinstance(request, No):
            return Report(failure=Failure.BUDGET, message="the budget is used up")
        with self._calls.open("a", encoding="utf-8") as file:
            file.write(f"{brief.role} {brief.task} {brief.n}\n")
        watch(Activity(task=brief.task, kind="start", text=brief.role))
        report = await self._reply(brief, Path(workspace))
        self.ledger.settle(request.id, COST)
        return report

    async def _reply(self, brief: Brief, checkout: Path) -> Report:
        if brief.role == "coach":
            return Report(answer=reviewed(brief, checkout))
        command = ("/bin/sh", "-c", SCRIPT, "player", brief.task)
        box = Box(checkout=checkout, network=False)
        done = await processes.run(self._sandbox, box, command, timeout=TIMEOUT, tail=500)
        if done.exit_code != 0:
            return Report(failure=Failure.CRASHED, message=done.output)
        return Report(summary=f"Wrote {brief.task}.txt.")


def left_running(project: Project) -> list[int]:
    """Processes that a run of the project started, or whose folder is in it; Linux only."""
    if not Path("/proc/self/environ").exists():
        return []
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208
    return [pid for pid in pids if pid != os.getpid() and _is_of(pid, project)]


def _is_of(pid: int, project: Project) -> bool:
    try:
        works_there = Path(f"/proc/{pid}/cwd").readlink().is_relative_to(project.root)
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # it has ended, or belongs to another user
        return False
    return works_there or f"{MARKER}={project.mark}/".encode() in environment
