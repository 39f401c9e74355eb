"""A plan edited between two runs, and a task asked for again, through the commands."""  # B7

import json
from pathlib import Path

import pytest

import plans
from desk import Desk
from quick import quick_run
from windlass.core.settings import E2ESettings, Settings
from windlass.core.state import RunState
from windlass.errors import PlanError
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
    assert "~ 1.1 Write 1.1.txt: stale: merged for an older text" in out
    assert desk.call("retry", "1.2:1.1")[0] == 2
    code, out, _ = desk.call("retry", "plan:1.1")
    assert (code, out) == (0, "Recorded. To continue: windlass resume plan\n")
    state = quick_run(desk.repo, parts(**{"1.1": "ONE\n"}))
    assert state.done == ("1.2", "1.1")
    assert desk.git("show", "windlass/plan/integration:1.1.txt") == "ONE\n"
    told = json.loads(desk.call("status", "plan", "--json")[1])
    assert told["tasks"]["1.1"]["turns"] == 2
    assert told["status"] == "completed"


def test_status_says_what_is_stale_and_the_command_for_it(desk, done):  # B7
    assert "stale" not in desk.call("status", "plan").out
    plan = desk.repo / "plan.md"
    plan.write_text(plan.read_text().replace("1.1.txt is there", "1.1.txt says ONE"))
    # What is over is not taken up again: another task is to be done once more.
    assert desk.call("retry", "plan:1.2", "--yes")[0] == 0
    quick_run(desk.repo, parts(**{"1.2": "TWO\n"}))
    told = desk.call("status", "plan").out
    assert "needs_human" in told
    assert [line.split()[:2] for line in told.splitlines() if "stale  " in line] == [
        ["stale", "1.1"]
    ]
    assert "windlass retry plan:1.1" in told
    assert "windlass approve plan:1.1" in told


def test_without_an_edit_there_is_nothing_to_show(desk, done):
    code, out, _ = desk.call("plan", "plan.md", "--diff")
    assert (code, out) == (0, "The plan has not changed since the last run.\n")


def test_a_plan_that_was_never_run_has_nothing_to_compare_with(desk):
    code, _, err = desk.call("plan", "plan.md", "--diff")
    assert code == 2
    assert "was never run here" in err


def test_a_plan_goes_on_without_a_task_that_was_begun_as_often_as_one_likes(desk):
    """What was withdrawn keeps its pins, and they are no sign of a journal that forgot."""
    once = Settings(max_turns=1)
    quick_run(desk.repo, parts(**{"1.1": "one\n"}), settings=once)
    (desk.repo / "plan.md").write_text(plans.plan_text({"1.1": (), "1.3": ("1.1",)}))
    assert quick_run(desk.repo, parts(), settings=once).reason == "1.3 abandoned"
    assert desk.call("retry", "plan:1.3").code == 0
    state = quick_run(desk.repo, parts(**{"1.3": "three\n"}), settings=once)
    assert state.done == ("1.1", "1.3")
    assert list(state.withdrawn) == ["1.2"]


def test_a_plan_that_cannot_be_read_any_more_is_said_and_not_passed_over(desk):
    quick_run(desk.repo, parts(), settings=Settings(max_turns=1))
    code, _, err = desk.call("retry", "plan:1.2")
    assert (code, "it is blocked" in err) == (2, True)
    (desk.repo / "plan.md").write_text("- [ ] T001 Another format\n")
    for args in (("resume", "plan"), ("resume",), ("resume", "plan.md")):
        code, _, err = desk.call(*args)
        assert code == 2
        assert "plan.md: no tasks found" in err


def test_a_task_cannot_take_the_name_of_the_scenario(desk):
    plan = desk.repo / "plan.md"
    plan.write_text(plan.read_text() + "\n## E2E Scenario\n\nTry it.\n")
    e2e = Settings(max_turns=1, e2e=E2ESettings(run=True))
    assert "e2e" in quick_run(desk.repo, parts(), settings=e2e).tasks
    plan.write_text(plan.read_text().replace("Task 1.2", "Task e2e"))
    with pytest.raises(PlanError, match="'e2e' has the id that this run gave"):
        quick_run(desk.repo, parts(), settings=e2e)
