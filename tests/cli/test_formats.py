"""Every format from its files to merged commits and its own state files: real git, real journal."""

import json
from pathlib import Path

import pytest

from desk import Desk
from formats import FEATURE, SPEC, SPECKIT, STATE_MD, TASK, XML
from quick import quick_run
from windlass.core.state import RunState
from windlass.testing.agents import ScriptedAgent


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def run(desk: Desk, plan: str, files: dict[str, str], *tasks: str) -> RunState:
    """Build the repository, run the plan with one file written for each task, to its end."""
    desk.build(files)
    agent = ScriptedAgent({task: {f"{task}.out": f"{task}\n"} for task in tasks}, default={})
    state = quick_run(desk.repo, agent, plan_path=plan)
    assert state.ended == "completed", state.reason
    assert state.done == tasks
    branch = f"windlass/{state.plan.id}/integration"
    shown = desk.git("ls-tree", "--name-only", branch).split()
    assert {f"{task}.out" for task in tasks} <= set(shown)
    return state


def test_a_feature(desk):  # G14 G9 G11
    files = {
        ".guardkit/features/FEAT-1.yaml": FEATURE,
        "tasks/backlog/TASK-1.md": TASK.format(id="TASK-1", more=""),
        "tasks/backlog/TASK-2.md": TASK.format(id="TASK-2", more="# kept\n"),
    }
    run(desk, ".guardkit/features/FEAT-1.yaml", files, "TASK-1", "TASK-2")
    for name in ("TASK-1", "TASK-2"):
        text = (desk.repo / f"tasks/backlog/{name}.md").read_text()
        assert "status: in_review\n" in text
        assert "feature_build:\n" in text
    assert "# kept\n" in text
    assert (desk.repo / ".guardkit/features/FEAT-1.yaml").read_text() == FEATURE


def test_a_folder_of_task_files(desk):  # G14
    files = {
        "tasks/one/TASK-1.md": TASK.format(id="TASK-1", more="wave: 1\n"),
        "tasks/one/TASK-2.md": TASK.format(id="TASK-2", more="wave: 2\ndependencies: [TASK-1]\n"),
        "tasks/one/README.md": "# About\n",
    }
    state = run(desk, "tasks/one", files, "TASK-1", "TASK-2")
    assert [stage.name for stage in state.plan.stages] == ["1", "2"]
    assert "status: in_review\n" in (desk.repo / "tasks/one/TASK-2.md").read_text()


def test_a_spec(desk):  # S1 S2 S12
    files = {".specflow/specs/SPEC-1.md": SPEC, ".specflow/STATE.md": STATE_MD}
    run(desk, ".specflow/specs/SPEC-1.md", files, "G1", "G2")
    folder = desk.repo / ".specflow/execution"
    assert not (folder / "SPEC-1-state.json").exists()
    told = json.loads((folder / "archive/SPEC-1-state.json").read_text())
    assert [wave["status"] for wave in told["waves"]] == ["complete", "complete"]
    assert told["waves"][0]["results"]["G1"]["files_created"] == ["G1.out"]
    status = (desk.repo / ".specflow/STATE.md").read_text()
    assert status.startswith(STATE_MD)
    assert "| SPEC-1 | orchestrated | Complete |" in status


def test_a_folder_of_layers(desk):  # X1 X2
    files = {
        "work/tasks/0-setup/L0-001-base.xml": XML.format(id="L0-001", layer="0-setup"),
        "work/tasks/1-foundation/L1-001-on.xml": XML.format(id="L1-001", layer="1-foundation"),
    }
    run(desk, "work/tasks", files, "L0-001", "L1-001")
    told = json.loads((desk.repo / "work/tasks/execute-state.json").read_text())
    assert told["schema_version"] == "2.0"
    assert told["status"] == "completed"
    assert told["metrics"]["completed_tasks"] == 2
    assert [len(task["commits"]) for task in told["tasks"].values()] == [1, 1]


def test_spec_kits_list(desk):  # B10
    files = {"specs/001-albums/tasks.md": SPECKIT, "specs/001-albums/spec.md": "# Albums\n"}
    state = run(desk, "specs/001-albums", files, "T001", "T002")
    assert state.plan.id == "001-albums"
    ticked = (desk.repo / "specs/001-albums/tasks.md").read_text()
    assert ticked == SPECKIT.replace("[ ]", "[X]")


def test_a_run_of_a_folder_is_found_by_its_path_and_says_nothing_is_edited(desk):  # B7
    files = {"specs/001-albums/tasks.md": SPECKIT}
    run(desk, "specs/001-albums/tasks.md", files, "T001", "T002")
    code, out, err = desk.call("plan", "specs/001-albums/tasks.md", "--diff")
    assert (code, err) == (0, "")
    assert out == "The plan has not changed since the last run.\n", "our own ticks are no edit"
    assert desk.call("status", "specs/001-albums/tasks.md")[0] == 0
