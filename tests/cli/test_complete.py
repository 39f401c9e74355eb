"""A complete run: what `run` and `resume` say of it, and of a plan that asks for more since."""

from pathlib import Path

import pytest

import plans
from desk import Desk
from quick import quick_run
from windlass.core.events.model import RunEnd
from windlass.testing.agents import ScriptedAgent

NAMELESS, NAMED, BY_OPTION = ("resume",), ("resume", "plan.md"), ("run", "plan.md", "--resume")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A repository with a complete run that is not landed."""
    made = Desk(tmp_path)
    made.build({"plan.md": plans.plan_text({"1.1": ()})})
    state = quick_run(made.repo, ScriptedAgent({"1.1": {"1.1.txt": "one\n"}}))
    assert state.ended is RunEnd.COMPLETED
    return made


def test_every_way_to_run_a_complete_run_says_so_and_ends_well(desk: Desk):
    plain = desk.call("run", "plan.md")
    assert (plain.code, plain.out) == (0, ""), plain.err
    assert "is complete: 1 task merged, not landed yet" in plain.err
    assert "Ignored" not in plain.err
    assert desk.call(*BY_OPTION) == plain
    assert desk.call("run", "plan.md", "--yes", "--no-land", "--no-notify") == plain


def test_an_option_that_a_complete_run_ignores_is_named_with_the_command_to_use(desk: Desk):
    before = desk.everything()
    code, _, err = desk.call("run", "plan.md", "--land")
    assert code == 0
    assert "Ignored  --land: the run is complete; `windlass land plan.md` lands it" in err
    code, _, err = desk.call(*BY_OPTION, "--e2e", "--max-cost", "2.5")
    assert code == 0
    options = "--max-cost 2.5 --e2e"
    again = f"`windlass run plan.md --restart {options}` runs it all again"
    assert f"Ignored  {options}: the run is complete; {again}" in err
    assert desk.everything() == before
    assert desk.call("land", "plan.md").code == 0
    assert "Ignored" not in desk.call("run", "plan.md", "--land").err, "it has landed"


def test_resume_names_the_command_that_runs_a_task_added_since(desk: Desk):
    desk.write("plan.md", plans.plan_text({"1.1": (), "1.2": ("1.1",), "1.3": ()}))
    cure = "`windlass run plan.md` runs 1.2, 1.3 as part of it"
    for args in (NAMELESS, NAMED, BY_OPTION):
        code, _, err = desk.call(*args)
        assert (code, cure in err) == (2, True), err
    assert "plan 'plan' is completed, and 1.2, 1.3 were added since" in err
    desk.directory = desk.repo / "docs"
    desk.directory.mkdir()
    assert "`windlass run plan` runs" in desk.call("resume").err, "plan.md is not in this folder"


def test_resume_names_the_command_for_every_other_edit_too(desk: Desk):
    text = plans.plan_text({"1.1": ()})
    desk.write("plan.md", text.replace("1.1.txt is there", "1.1.txt is here"))
    for args in (NAMELESS, NAMED):
        code, _, err = desk.call(*args)
        assert (code, "`windlass retry plan:1.1` redoes it" in err) == (2, True), err
    desk.write("plan.md", text.replace("# Milestone: Files", "# Milestone: Papers"))
    for args in (NAMELESS, NAMED):
        code, _, err = desk.call(*args)
        cure = "`windlass run plan.md` applies the edit of the plan"
        assert (code, cure in err) == (2, True), err
