"""What a person reads before they agree to something that cannot be undone or is public."""

import pytest
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.plan import Plan, Stage, Task
from windlass.core.settings import Settings
from windlass.core.state import Phase, RunState, apply
from windlass.views.consequences import (
    aborting,
    landing_over,
    merged_in,
    publishing,
    redoing,
    replacing_journal,
    restarting,
)
from windlass.views.steps import refusal
from windlass.views.story import line_of
from worlds import NOON, World, plan_of, writes

TASKS = tuple(
    Task(id=id_, title=id_, stage=stage, depends_on=needs)
    for id_, stage, needs in (("a", "1", ()), ("b", "1", ("a",)), ("c", "2", ()))
)
PLAN: Plan = replace(plan_of(*TASKS, dialect="feature"), stages=(Stage(name="1"), Stage(name="2")))
PLAYS = {id_: writes(id_, "1") for id_ in "abc"}


@pytest.fixture(scope="module")
def done() -> RunState:
    world = World(PLAN, PLAYS)
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    return world.state


def test_an_abort_names_the_run_its_progress_and_what_is_kept(done: RunState):
    act = aborting(replace(done, ended=None), live=True)
    assert "Run r1 of p (P, p.md) is in_progress: 3 of 3 tasks merged, $" in act.text
    assert "Its agents are stopped now" in act.text
    assert "stays on windlass/p/integration" in act.text
    assert act.command == "windlass abort p --yes"
    fresh = aborting(replace(done, ended=None, merges=0), live=False)
    assert "integration" not in fresh.text
    assert "It ends for good" in fresh.text


def test_a_redo_names_the_merge_and_what_builds_on_it(done: RunState):
    act = redoing(done, "a", (done.tasks["a"],))
    assert f"a a is merged as {(done.tasks['a'].merge_commit or '')[:10]} (1 turn, $" in act.text
    assert "b, which build on it, stay as merged." in act.text
    assert act.question == "Redo 1 merged task?"
    adopted = replace(done.tasks["c"], attempts=(), merge_commit=None)
    assert "c c is merged (no turn, $" in redoing(done, "c", (adopted,)).text
    many = redoing(done, "1", (done.tasks["a"],) * 7)
    assert "; and 2 more." in many.what


def test_only_merged_work_whose_text_is_the_same_is_asked_about(done: RunState):
    assert [task.id for task in merged_in(done, "a", ())] == ["a"]
    assert merged_in(done, "a", ("a",)) == ()
    assert [task.id for task in merged_in(done, "1", ())] == ["a", "b"]
    assert merged_in(done, "nope", ()) == ()


def test_a_stage_may_have_the_name_of_a_task():
    tasks = (Task(id="1", title="1", stage="1"), Task(id="b", title="b", stage="1"))
    plan = replace(plan_of(*tasks, dialect="feature"), stages=(Stage(name="1"),))
    world = World(plan, {"1": writes("x", "1"), "b": writes("b", "1")})
    world.go()
    assert [task.id for task in merged_in(world.state, "1", ())] == ["1"]
    pending = replace(world.state.tasks["1"], phase=Phase.PENDING)
    state = replace(world.state, tasks={**world.state.tasks, "1": pending})
    assert [task.id for task in merged_in(state, "1", ())] == ["b"]


def test_a_stage_that_failed_is_redone_unasked():
    world = World(PLAN, {**PLAYS, "b": lambda *_: None}, settings=Settings(max_turns=1))
    world.go()
    assert world.state.tasks["b"].phase is Phase.ABANDONED
    assert merged_in(world.state, "1", ()) == ()


def test_the_others_say_what_changes_and_their_command(done: RunState):
    assert "does every task again" in restarting(done, "p.md").text
    assert restarting(done, "p.md").command == "windlass run p.md --restart --yes"
    assert landing_over(done, ["x\ny"]).what == (
        "main is checked out, and x y has uncommitted changes."
    )
    assert "x, y have uncommitted changes" in landing_over(done, ["x", "y"]).what
    assert publishing(done, "main").question == "Push it and open a pull request into main?"
    assert publishing(done, None).question == "Push it and open a pull request?"
    assert "keeps the old one" in replacing_journal("p").text
    assert replace(replacing_journal("p"), shown=True).text == ""


def test_why_a_retry_cannot_be_undone(done: RunState):
    assert "no retry of merged work is open" in refusal("retry", done, "a", undo=True).message
    redone = apply(done, e.TaskReopened(at=NOON, task="a", by="me"))
    for phase, why in ((Phase.BUILT, "is being merged"), (Phase.PLAYING, "is under way")):
        busy = replace(redone.tasks["a"], phase=phase)
        state = replace(redone, tasks={**redone.tasks, "a": busy})
        assert why in refusal("retry", state, "a", undo=True).message
    event = e.RedoUndone(at=NOON, task="a", by="me")
    line = line_of(event, apply(redone, event))
    assert line is not None
    assert "the earlier merge counts again" in line.text
