"""Pause, stop and abort a live run of each format: real git, real journal, its own state files."""

import json
from pathlib import Path

import anyio.to_thread
import pytest

from desk import Desk
from formats import FEATURE, SPEC, SPECKIT, STATE_MD, TASK, XML
from quick import quick_run
from waiting import eventually
from windlass.adapters.journal.inbox import send
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.core.events import model as e
from windlass.core.exchange import Message
from windlass.core.settings import Settings, StateFileSettings
from windlass.ports import Report
from windlass.testing.agents import ScriptedAgent

PLANS: dict[str, tuple[str, dict[str, str]]] = {
    "milestone": ("p.md", {"p.md": "## Task 1: a\n\n## Task 2: b\n"}),
    "taskfile": ("T.md", {"T.md": TASK.format(id="T", more="")}),
    "taskfolder": (
        "tasks/one",
        {
            f"tasks/one/TASK-{n}.md": TASK.format(id=f"TASK-{n}", more=f"wave: {n}\n")
            for n in (1, 2)
        },
    ),
    "feature": (
        "f.yaml",
        {
            "f.yaml": FEATURE,
            **{f"tasks/backlog/TASK-{n}.md": TASK.format(id=f"TASK-{n}", more="") for n in (1, 2)},
        },
    ),
    "spec": (
        ".specflow/specs/SPEC-1.md",
        {".specflow/specs/SPEC-1.md": SPEC, ".specflow/STATE.md": STATE_MD},
    ),
    "layers": (
        "tasks",
        {f"tasks/{n}-l/L{n}-001.xml": XML.format(id=f"L{n}-001", layer=f"{n}-l") for n in (0, 1)},
    ),
    "speckit": ("specs/tasks.md", {"specs/tasks.md": SPECKIT}),
}
STATE_FILES = {
    "milestone": ("state/p_state.json", "plan_path"),
    "spec": (".specflow/execution/SPEC-1-state.json", "waves"),
    "layers": ("tasks/execute-state.json", "status"),
}
SETTINGS = Settings(agents=1, state_files=StateFileSettings(milestone=True))
ENDS = {"pause": e.RunEnd.PAUSED, "stop": e.RunEnd.STOPPED, "abort": e.RunEnd.ABORTED}
WORDS = {"pause": "stopped", "stop": "stopped", "abort": "abandoned"}


class Resting(ScriptedAgent):
    """Sends a command to the run while its first Player works."""

    def __init__(self, repo: Path, command: str) -> None:
        super().__init__({}, default={"a.txt": "1"})
        self.plans, self.command = repo / ".windlass/plans", command

    async def work(self, brief, workspace, watch) -> Report:
        if self.command and brief.role == "player":
            [folder] = self.plans.iterdir()
            send(folder / "inbox", Message(command=self.command))
            self.command = ""
            await anyio.to_thread.run_sync(eventually, lambda: _heard(folder))
        return await super().work(brief, workspace, watch)


def _heard(folder: Path) -> bool:
    with SqliteJournal.read_only(folder / "journal.db") as journal:
        return any(isinstance(entry.event, e.StopRequested) for entry in journal.read())


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("command", ENDS)
def test_a_run_of_any_format_comes_to_rest(tmp_path: Path, name: str, command: str):  # S3 S9
    path, files = PLANS[name]
    # The only turn of a plan of one task is all of it, so that a pause must not wait for its end.
    asked = "pause_now" if (name, command) == ("taskfile", "pause") else command
    desk = Desk(tmp_path)
    desk.build({"README.md": "hello\n", **files})
    state = quick_run(desk.repo, Resting(desk.repo, asked), plan_path=path, settings=SETTINGS)
    assert state.ended is ENDS[command], state.reason
    if name in STATE_FILES:
        file, key = STATE_FILES[name]
        shown = json.loads((desk.repo / file).read_text())
        assert key in shown
        assert name != "layers" or shown["status"] == WORDS[command]
