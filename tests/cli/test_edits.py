"""A plan edited between two runs, and a task asked for again, through the commands."""  # B7

import json
from pathlib import Path

import pytest

import plans
from desk import Desk
from quick import quick_run
from windlass.state import RunState
from windlass.testing.agents import ScriptedAgent

TASKS = {"1.1": (), "1.2": ("1.1",)}


def parts(**files: str) -> ScriptedAgent:
    return ScriptedAgent({task: {f"{task}.txt": text} for task, text in files.items()}, default={})


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A repository with a plan of two tasks."""
    made = Desk(tmp_path)
    made.build({"plan.md": plans.plan_text(TASKS)})
    return made


@pytest.fixture
def done(desk: Desk) -> RunState:
    """A finished run of it."""
    state = quick_run(desk.repo, parts(**{"1.1": "one\n", "1.2": "two\n"}))
    assert state.done == ("1.1", "1.2")
    return state


def test_what_is_stale_is_said_and_done_again_only_on_request(desk, done):
    plan = desk.repo / "plan.md"
    plan.write_text(plan.read_text().replace("1.1.txt is there", "1.1.txt says ONE"))
    code, out, err = desk.call("plan", "plan.md", "--diff")
    assert (code, err) == (0, "")
    assert "~ 1.1 Write 1.1.txt: stale: merged for what it said before" in out
    assert desk.call("retry", "1.2:1.1")[0] == 2
    code, out, _ = desk.call("retry", "plan:1.1")
    assert (code, out) == (0, "Recorded. Go on with: windlass resume plan\n")
    state = quick_run(desk.repo, parts(**{"1.1": "ONE\n"}))
    assert state.done == ("1.2", "1.1")
    assert desk.git("show", "windlass/plan/integration:1.1.txt") == "ONE\n"
    told = json.loads(desk.call("status", "plan", "--json")[1])
    assert told["tasks"]["1.1"]["turns"] == 2
    assert told["status"] == "completed"


def test_without_an_edit_there_is_nothing_to_show(desk, done):
    code, out, _ = desk.call("plan", "plan.md", "--diff")
    assert (code, out) == (0, "The plan is as the last run knows it.\n")


def test_a_plan_that_was_never_run_has_nothing_to_compare_with(desk):
    code, _, err = desk.call("plan", "plan.md", "--diff")
    assert code == 2
    assert "was never run here" in err
