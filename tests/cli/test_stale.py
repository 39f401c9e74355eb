"""Stale tasks through the commands: approve, land, pr, resume, status, MCP."""  # B7

import json
from pathlib import Path

import pytest

import plans
from desk import Desk
from quick import quick_run
from windlass.app.wiring import Project
from windlass.core.settings import Settings
from windlass.errors import BadInput
from windlass.mcp.acting import Acting
from windlass.testing.agents import ScriptedAgent

TASKS = {"1.1": (), "1.2": ("1.1",)}
CHECK = "grep -q ONE 1.1.txt"
AGENT = ScriptedAgent({"1.1": {"1.1.txt": "one\n"}, "1.2": {"1.2.txt": "two\n"}})
CURES = ("windlass retry plan:1.1", "windlass approve plan:1.1", "restore the old text")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A repository with a completed run of two tasks, one of which was edited since."""
    made = Desk(tmp_path)
    made.build({"plan.md": plans.plan_text(TASKS)})
    assert quick_run(made.repo, AGENT).done == ("1.1", "1.2")
    edit(made, f"1.1.txt is there\n\n**Checks:** `{CHECK}`")
    return made


def edit(desk: Desk, text: str, old: str = "1.1.txt is there") -> None:
    plan = desk.repo / "plan.md"
    plan.write_text(plan.read_text().replace(old, text))


def status(desk: Desk) -> dict:
    return json.loads(desk.call("status", "plan", "--json").out)


@pytest.mark.parametrize("command", [("land", "plan"), ("land", "plan", "--yes"), ("pr", "plan")])
def test_what_was_edited_after_the_run_was_over_does_not_land(desk: Desk, command):
    main = desk.git("rev-parse", "main")
    code, _, said = desk.call(*command)
    assert code == 3
    assert "1.1 is stale: merged for an older text of plan.md" in said
    assert all(cure in said for cure in CURES)
    assert desk.git("rev-parse", "main") == main
    desk.git("checkout", "--quiet", "--", "plan.md")
    assert desk.call("land", "plan").code == 0, "the edit was withdrawn"


def test_there_is_nothing_to_resume_but_something_to_settle(desk: Desk):
    code, _, said = desk.call("resume", "plan")
    assert code == 2
    assert "the text of 1.1 has changed since" in said
    assert all(cure in said for cure in CURES)


def test_a_plan_that_cannot_be_read_does_not_land(desk: Desk):
    (desk.repo / "plan.md").write_text("nothing\n")
    code, _, said = desk.call("land", "plan")
    assert code == 2
    assert "plan.md: no tasks found" in said


def test_approve_records_who_accepted_which_text_and_says_what_is_red(desk: Desk):
    code, out, said = desk.call("approve", "1.1")
    assert (code, said) == (0, "")
    assert "Accepted 1.1 as merged, for its current text in plan.md." in out
    assert f"`{CHECK}` has not run on the tip; the run is not complete before" in out
    shown = status(desk)
    assert shown["status"] == "stopped"
    assert shown["tasks"]["1.1"]["status"] == "completed"
    assert shown["tasks"]["1.1"]["accepted"]["by"]
    state = quick_run(desk.repo, AGENT)
    assert state.reason == f"the tip does not pass: `{CHECK}` fails with exit code 1"
    code, _, said = desk.call("land", "plan")
    assert code == 3, said
    assert "accepted by" in desk.call("status", "plan").out

    edit(desk, "1.1.txt is where it was", "1.1.txt is there")
    assert quick_run(desk.repo, AGENT).stale == ("1.1",), "for another text it is stale again"
    code, out, _ = desk.call("approve", "1.1")
    assert (code, f"`{CHECK}` fails on the tip" in out) == (0, True)
    code, _, said = desk.call("approve", "1.1")
    assert code == 2, "it is not stale any more"
    assert "it is completed" in said


def test_it_is_complete_once_it_is_done_again(desk: Desk):
    assert desk.call("retry", "1.1").code == 0
    state = quick_run(desk.repo, ScriptedAgent({"1.1": {"1.1.txt": "ONE\n"}}))
    assert state.done == ("1.2", "1.1")
    assert status(desk)["status"] == "completed"
    assert desk.call("land", "plan").code == 0


def test_accepted_with_a_check_that_passes_it_is_complete(desk: Desk):
    edit(desk, "grep -q one 1.1.txt", CHECK)
    assert desk.call("approve", "plan:1.1").code == 0
    assert quick_run(desk.repo, AGENT).done == ("1.1", "1.2")
    assert status(desk)["status"] == "completed"
    assert desk.call("land", "plan").code == 0


def test_an_edit_that_a_run_at_rest_has_not_seen_is_taken_up_with_the_word(tmp_path: Path):
    made = Desk(tmp_path)
    made.build({"plan.md": plans.plan_text(TASKS)})
    lazy = ScriptedAgent({"1.1": {"1.1.txt": "one\n"}}, default={})
    quick_run(made.repo, lazy, settings=Settings(max_turns=1))
    edit(made, "1.1.txt is where it belongs")
    assert made.call("approve", "1.1").code == 0
    assert status(made)["tasks"]["1.1"]["accepted"]
    assert made.call("retry", "1.2").code == 0
    assert quick_run(made.repo, AGENT).done == ("1.1", "1.2")
    assert status(made)["status"] == "completed"


def test_a_draft_of_a_pull_request_says_what_is_stale(desk: Desk):
    assert desk.call("retry", "1.2", "--yes").code == 0
    assert quick_run(desk.repo, AGENT).stale == ("1.1",)
    code, out, said = desk.call("pr", "plan", "--draft", "--dry-run")
    assert code == 0, said
    assert "stale, merged for an older text" in out


def test_only_a_person_accepts(desk: Desk):
    project = Project(desk.repo, desk.environment)
    with pytest.raises(BadInput, match="only a person may accept"):
        Acting(project).approve("1.1")


def test_a_stale_task_is_neither_taken_nor_answered(desk: Desk):
    assert desk.call("retry", "1.2", "--yes").code == 0
    quick_run(desk.repo, AGENT)
    for command in (("take", "1.1"), ("answer", "1.1", "so"), ("give", "1.1")):
        code, _, said = desk.call(*command)
        assert code == 2
        assert "1.1" in said
