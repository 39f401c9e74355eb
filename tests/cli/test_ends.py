"""The end of a run: what is let go, and what is told of it even if its process is killed."""

from pathlib import Path

import plans
from quick import quick_run
from windlass.testing.agents import ScriptedAgent
from windlass.testing.stage import Stage


def completed(root: Path) -> Stage:
    stage = Stage(root, "http://127.0.0.1:9")
    stage.build({"plan.md": plans.plan_text({"a": ()})})
    assert quick_run(stage.repo, ScriptedAgent({"a": {"a": "1"}})).ended == "completed"
    return stage


def test_the_workspace_of_the_last_task_goes_as_those_before_it(tmp_path):
    stage = completed(tmp_path)
    assert list((stage.repo / ".windlass/plans/plan/workspaces").iterdir()) == []
