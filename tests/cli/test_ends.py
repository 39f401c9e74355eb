"""The end of a run: what is let go, and what is told of it even if its process is killed."""

import json
from pathlib import Path

import pytest

import plans
from quick import quick_run
from windlass.core.settings import Settings, StateFileSettings
from windlass.testing.agents import ScriptedAgent
from windlass.testing.stage import Stage

WITH_FILE = Settings(state_files=StateFileSettings(milestone=True))


def completed(root: Path) -> Stage:
    stage = Stage(root, "http://127.0.0.1:9")
    stage.build({"plan.md": plans.plan_text({"a": ()})})
    assert (
        quick_run(stage.repo, ScriptedAgent({"a": {"a": "1"}}), settings=WITH_FILE).ended
        == "completed"
    )
    return stage


def test_the_workspace_of_the_last_task_goes_as_those_before_it(tmp_path):
    stage = completed(tmp_path)
    assert list((stage.repo / ".windlass/plans/plan/workspaces").iterdir()) == []


def resume(stage: Stage) -> tuple[int, str]:
    with stage.windlass("resume", "plan.md") as process:
        _, err = process.communicate(timeout=60)
    return process.returncode, err


def test_the_end_is_told_by_resume_and_only_then_is_there_nothing_to_resume(tmp_path):  # B4 K3
    stage = completed(tmp_path)
    [own] = stage.repo.glob(".windlass/plans/plan/runs/*/state.json")
    shown = stage.repo / "state/plan_state.json"
    files = {path: path.read_text() for path in (own, shown)}
    tip = stage.git("for-each-ref")
    workspace = stage.repo / ".windlass/plans/plan/workspaces/a"
    _as_before_the_end(own, shown, workspace)
    code, err = resume(stage)
    assert code == 0, err
    assert "1 task: 1 completed" in err
    assert {path: path.read_text() for path in files} == files
    assert not workspace.exists()
    assert stage.git("for-each-ref") == tip
    code, err = resume(stage)
    assert code == 2
    assert "nothing to resume" in err


def _as_before_the_end(own: Path, shown: Path, workspace: Path) -> None:
    state = json.loads(own.read_text())
    own.write_text(json.dumps({**state, "seq": state["seq"] - 1, "status": "in_progress"}))
    told = json.loads(shown.read_text())
    shown.write_text(json.dumps({**told, "completed_tasks": []}))
    workspace.mkdir(parents=True)
    (workspace / "left").write_text("over")


@pytest.mark.parametrize("folder", ["workspaces/a", "throwaway/check-1"])
def test_a_checkout_that_a_power_loss_brought_back_is_removed_by_resume(tmp_path, folder):  # B4
    stage = completed(tmp_path)
    back = stage.repo / ".windlass/plans/plan" / folder
    back.mkdir(parents=True)
    code, err = resume(stage)
    assert code == 0, err
    assert not back.exists()
    code, err = resume(stage)
    assert code == 2
    assert "nothing to resume" in err
