"""The plan's E2E scenario: tried on the tip, mended in bounded turns, or put to a person."""  # K11

import json

import pytest
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.events.review import CriterionEvidence, Issue, Review, TestResults
from windlass.core.exchange import Message
from windlass.core.plan import Task, with_scenario
from windlass.core.settings import E2ESettings, Settings
from windlass.core.state import Phase
from windlass.formats import project
from windlass.ports import Report
from windlass.runner import loop
from windlass.testing.memory import MemoryInbox
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
    [text] = project(of.state, {"state/p_state.json": "{}"}).values()
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


def test_what_is_merged_after_a_trial_is_tried_too():
    """A task is asked for again when all is done: what held of the old tip says nothing."""
    run = world(mended_in(0))
    run.go()
    again = e.TaskReopened(at=run.clock.now(), task="1.1", by="a person")
    run.journal.append([again], expected=len(run.events))
    assert run.state.tasks["e2e"].phase is Phase.PENDING
    run.agent.plays = {**run.agent.plays, "1.1": writes("a", "2")}
    run.go()
    assert run.state.ended is e.RunEnd.COMPLETED
    assert tried(run)[1:] == [run.state.tip]


def tried(run: World) -> list[str]:
    return [event.commit for event in run.events if isinstance(event, e.TipTaken)]


class Reopening(MemoryInbox):
    """Somebody who wants the first task again while the scenario is tried."""

    def __init__(self) -> None:
        super().__init__()
        self.run: World | None = None

    def take(self):
        if self.run is not None:
            now = self.run.runner.state.tasks.get("e2e")
            if now is not None and now.phase is Phase.REVIEWING:
                self.run = None
                self.messages.append(Message(command="retry", task="1.1"))
        return super().take()


@pytest.mark.parametrize("turns", [0, 1])
def test_a_trial_counts_for_its_own_tip_only(monkeypatch, turns):
    """A task is asked for again while somebody tries the scenario."""
    monkeypatch.setattr(loop, "INBOX_SECONDS", 0)
    inbox = Reopening()
    plays = {**PLAYS, "1.1": lambda n, _turn, files: files.update(a=str(n)), "e2e": mend}
    run = World(PLAN, plays, coach=mended_in(turns), settings=E2E, inbox=inbox)
    inbox.run = run
    run.go()
    assert run.state.ended is e.RunEnd.COMPLETED
    assert len(tried(run)) > 1
    assert run.state.tasks["e2e"].last.tree == run.state.tip_tree


def test_a_trial_that_ends_when_its_tip_has_moved_is_made_again(monkeypatch):
    """Whoever tries it cannot go on until the task that was asked for again is merged."""
    monkeypatch.setattr(loop, "INBOX_SECONDS", 0)

    def coach(task: str, turn: int, files: dict[str, str]) -> Review | Report | None:
        if task == "e2e" and len(run.runner.state.merged) < 3:
            return Report(failure=e.Failure.TRANSIENT, message="not yet")
        return mended_in(0)(task, turn, files)

    inbox = Reopening()
    plays = {**PLAYS, "1.1": lambda n, _turn, files: files.update(a=str(n)), "e2e": mend}
    run = World(PLAN, plays, coach=coach, settings=E2E, inbox=inbox)
    inbox.run = run
    run.go()
    assert run.state.ended is e.RunEnd.COMPLETED
    assert "has moved since" in (run.state.tasks["e2e"].attempts[0].feedback or "")
    assert tried(run)[1:] == [run.state.tip]


def test_a_tip_that_nobody_has_tried_yet_is_left_when_there_is_more_to_merge():
    run = world(mended_in(0))
    run.go(settings=replace(E2E, max_cost=0.03))
    assert run.state.tasks["e2e"].phase is Phase.SAVED
    more = Task(id="1.3", title="c", depends_on=("1.2",))
    run.agent.plays = {**run.agent.plays, "1.3": writes("c", "1")}
    run.go(revised=replace(PLAN, tasks=(*PLAN.tasks, more)))
    assert run.state.ended is e.RunEnd.COMPLETED
    assert [task for task, _ in run.agent.reviews] == ["1.1", "1.2", "1.3", "e2e"]


def test_what_is_answered_waits_until_there_is_a_tip_to_try():
    asked = replace(says(passed=False), question="which greeting?")
    run = world(lambda task, *_: asked if task == "e2e" else None)
    run.go()
    said = e.Answered(at=run.clock.now(), task="e2e", text="hello", by="a person")
    run.journal.append([said], expected=len(run.events))
    run.agent.coach = mended_in(0)
    run.agent.plays = {**run.agent.plays, "1.3": writes("c", "1")}
    run.go(revised=replace(PLAN, tasks=(*PLAN.tasks, Task(id="1.3", title="c"))))
    assert run.state.ended is e.RunEnd.COMPLETED
    assert [a.turn for a in run.state.tasks["e2e"].attempts] == [0, 0]


def test_a_repair_of_another_trial_is_no_change_of_this_one():
    run = world(mended_in(1))
    run.go()
    assert run.repository.files(run.state.tip)["hello"] == "1"
    again = e.TaskReopened(at=run.clock.now(), task="e2e", by="a person")
    run.journal.append([again], expected=len(run.events))
    run.agent.coach = mended_in(None)
    run.agent.plays = {"e2e": lambda *_: None}
    run.go(settings=replace(E2E, max_turns=1))
    assert run.state.ended is e.RunEnd.NEEDS_HUMAN
    assert "Nothing was changed" in (run.state.tasks["e2e"].feedback or "")


def test_a_scenario_that_is_new_in_the_plan_is_tried():
    run = World(replace(PLAN, e2e=None), {**PLAYS, "e2e": mend}, coach=mended_in(0), settings=E2E)
    run.go(settings=replace(E2E, max_cost=0.001))
    run.go(revised=PLAN)
    assert run.state.done == ("1.1", "1.2", "e2e")


def test_a_scenario_that_was_taken_out_goes_on_counting_when_it_is_back():
    run = world(mended_in(0))
    run.go()
    stopped = e.RunEnded(at=run.clock.now(), status=e.RunEnd.STOPPED)
    run.journal.append([stopped], expected=len(run.events))
    run.go(revised=replace(PLAN, e2e=None), settings=replace(E2E, e2e=E2ESettings()))
    assert list(run.state.withdrawn) == ["e2e"]
    run.journal.append(
        [e.PlanRevised(at=run.clock.now(), plan=PLAN), stopped], expected=len(run.events)
    )
    run.go()
    assert run.state.ended is e.RunEnd.COMPLETED
    assert run.state.withdrawn == {}
    assert len(run.state.tasks["e2e"].attempts) == 1, "it held of this very tip"


def test_it_keeps_its_name_and_takes_nobody_elses():
    old = with_scenario(replace(PLAN, tasks=(Task(id="e2e", title="x"),)))
    assert [task.id for task in with_scenario(PLAN, old.tasks).tasks][-1] == "e2e-2"
    assert [task.id for task in with_scenario(PLAN, (Task(id="e2e", title="x"),)).tasks][
        -1
    ] == "e2e-2"
