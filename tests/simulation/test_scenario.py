"""The plan's E2E scenario: tried on the tip, mended in bounded turns, or put to a person."""  # K11

import json

import pytest
from msgspec.structs import replace

from windlass.dialects import project
from windlass.events import model as e
from windlass.events.review import CriterionEvidence, Issue, Review, TestResults
from windlass.plan import Task, with_scenario
from windlass.settings import E2ESettings, Settings
from windlass.state import Phase
from worlds import World, plan_of, writes

PLAN = replace(
    plan_of(Task(id="1.1", title="a"), Task(id="1.2", title="b", depends_on=("1.1",))),
    e2e="Start it, and see that it says hello.",
)
E2E = Settings(checks=("test",), e2e=E2ESettings(run=True), max_turns=3)
PLAYS = {"1.1": writes("a", "1"), "1.2": writes("b", "1")}


def says(*, passed: bool) -> Review:
    return Review(
        decision="approve" if passed else "feedback",
        summary="tried it",
        test_results=TestResults(passed=passed),
        evidence=(CriterionEvidence(criterion=1, met=passed, evidence="ran it"),),
        issues=()
        if passed
        else (Issue(severity="must_fix", category="e2e", description="it says nothing"),),
    )


def mended_in(turns: int | None):
    """Someone who tries the scenario: it holds once a Player has mended it that often."""

    def coach(task: str, _turn: int, files: dict[str, str]) -> Review | None:
        if task != "e2e":
            return None
        return says(passed=turns is not None and files.get("hello", "0") >= str(turns))

    return coach


def mend(_n: int, turn: int, files: dict[str, str]) -> None:
    files["hello"] = str(turn)


def world(coach, **more) -> World:
    return World(PLAN, {**PLAYS, "e2e": mend}, coach=coach, settings=E2E, **more)


def milestone(of: World) -> dict:
    [text] = project(of.state, 7).values()
    return json.loads(text)


def test_a_scenario_that_holds_changes_nothing():
    run = world(mended_in(0))
    run.go()
    state = run.state
    assert state.ended is e.RunEnd.COMPLETED
    assert [event.task for event in run.events if isinstance(event, e.PlayerStarted)] == [
        "1.1",
        "1.2",
    ]
    assert state.tip == state.tasks["1.2"].merge_commit == state.tasks["e2e"].merge_commit
    [tried] = [event for event in run.events if isinstance(event, e.TipTaken)]
    assert tried.commit == state.tip
    told = milestone(run)
    assert told["e2e_status"] == "passed"
    assert told["e2e_attempt_count"] == 1
    assert told["completed_tasks"] == ["1.1", "1.2"]
    assert "e2e" not in told["task_results"]


def test_what_fails_is_mended_by_a_player_and_merged_like_any_work():
    run = world(mended_in(2))
    run.go()
    state = run.state
    assert state.ended is e.RunEnd.COMPLETED
    assert run.repository.files(state.tip)["hello"] == "2"
    assert state.tasks["e2e"].turn == 2
    assert [a.turn for a in state.tasks["e2e"].attempts] == [0, 1, 2]
    assert "it says nothing" in (state.tasks["e2e"].attempts[0].feedback or "")
    told = milestone(run)
    assert told["e2e_status"] == "passed"
    assert told["e2e_attempt_count"] == 3
    assert len(told["e2e_errors"]) == 2


def test_what_cannot_be_mended_is_put_to_a_person_and_begins_anew_when_they_resume():
    run = world(mended_in(None))
    run.go()
    assert run.state.ended is e.RunEnd.NEEDS_HUMAN
    assert run.state.tasks["e2e"].phase is Phase.HELP_TO_PLAY
    assert "after 3 repairs" in (run.state.tasks["e2e"].question or "")
    assert milestone(run)["e2e_status"] == "needs_human"
    assert milestone(run)["completed_tasks"] == ["1.1", "1.2"]
    run.agent.coach = mended_in(5)
    run.go()
    assert run.state.ended is e.RunEnd.COMPLETED
    assert run.state.tasks["e2e"].turn == 5


def test_what_a_person_answers_is_told_to_whoever_tries_it_next():  # K5
    asked = replace(says(passed=False), question="which greeting?")
    run = world(lambda task, *_: asked if task == "e2e" else None)
    run.go()
    assert run.state.tasks["e2e"].phase is Phase.ASKED
    said = e.Answered(at=run.clock.now(), task="e2e", text="hello", by="a person")
    run.journal.append([said], expected=len(run.events))
    run.agent.coach = mended_in(1)
    run.go()
    assert run.state.ended is e.RunEnd.COMPLETED
    assert [a.turn for a in run.state.tasks["e2e"].attempts] == [0, 0, 1]
    assert "hello" in run.state.tasks["e2e"].answers[0]


def test_only_tests_that_ran_show_anything():
    unrun = replace(says(passed=True), test_results=TestResults(passed=None))
    run = world(lambda task, *_: unrun if task == "e2e" else None)
    run.go()
    assert run.state.ended is e.RunEnd.NEEDS_HUMAN


@pytest.mark.parametrize("turns", [0, 2])
def test_killed_anywhere_it_ends_the_same(turns):  # B4
    whole = world(mended_in(turns))
    points = whole.go()
    for point in range(points.reached):
        run = world(mended_in(turns))
        run.go(crash_at=point)
        run.go()
        assert run.state.ended is e.RunEnd.COMPLETED
        assert run.repository.files(run.state.tip) == whole.repository.files(whole.state.tip)
        assert run.state.merged == whole.state.merged


def test_asked_for_only_at_the_resume_it_is_tried_all_the_same():
    stopping = World(PLAN, {"1.1": lambda *_: None, "1.2": mend, "e2e": mend})
    stopping.go(settings=replace(E2E, e2e=E2ESettings(), max_cost=0.001))
    assert stopping.state.ended is e.RunEnd.LIMIT
    stopping.agent.plays = {**PLAYS, "e2e": mend}
    stopping.go(settings=E2E)
    assert stopping.state.ended is e.RunEnd.COMPLETED
    assert stopping.state.merged == ("1.1", "1.2", "e2e")


def test_unless_asked_for_it_is_not_tried():
    run = World(PLAN, PLAYS)
    run.go()
    assert list(run.state.tasks) == ["1.1", "1.2"]
    assert milestone(run)["e2e_status"] is None


def test_a_plan_without_a_scenario_stays_as_it_is():
    bare = replace(PLAN, e2e=None)
    assert with_scenario(bare) is bare
    once = with_scenario(PLAN)
    assert with_scenario(once) is once


def test_its_name_is_one_that_no_task_has():
    taken = replace(PLAN, tasks=(Task(id="E2E", title="x"), Task(id="e2e-2", title="y")))
    assert [task.id for task in with_scenario(taken).tasks] == ["E2E", "e2e-2", "e2e-3"]
