"""The Coach's part of a turn, and what people say to a task: whole runs in memory."""

import pytest
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.events.review import CriterionEvidence, Issue, PlayerAnswer, Review, TestResults
from windlass.core.exchange import Message
from windlass.core.plan import Task
from windlass.core.scheduler import reviews
from windlass.core.settings import Settings
from windlass.core.state import Phase
from windlass.ports import Report
from windlass.testing.memory import MemoryInbox
from worlds import World, plan_of, with_policy, writes

A = Task(id="a", title="a", acceptance_criteria=("it works", "it is tested"))
SEEN = tuple(CriterionEvidence(criterion=n, met=True, evidence="seen") for n in (1, 2))
CHECKED = Settings(checks=("test",))


def review(**more) -> Review:
    given = {
        "decision": "approve",
        "summary": "fine",
        "test_results": TestResults(passed=True),
        "evidence": SEEN,
        **more,
    }
    return Review(**given)


def counting(_n: int, turn: int, files: dict[str, str]) -> None:
    """A Player that changes something in every turn."""
    files["a"] = f"turn {turn}"


def events_of(world: World, kind: type) -> list:
    return [event for event in world.events if isinstance(event, kind)]


def test_approved_in_the_first_turn():  # G2 G6
    world = World(plan_of(A), {"a": counting}, coach=lambda *_: review())
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    [approved] = events_of(world, e.TaskApproved)
    [answered] = events_of(world, e.CoachAnswered)
    assert approved.commit == answered.commit == world.state.tasks["a"].last.commit
    assert "task/a/1/verdict-1" in world.repository.pins


def test_feedback_then_approval():  # G6 G10
    issue = Issue(severity="must_fix", category="tests", description="no test")

    def coach(_task: str, turn: int, _files: dict[str, str]) -> Review:
        return review() if turn == 2 else review(decision="feedback", issues=(issue,))

    world = World(plan_of(A), {"a": counting}, coach=coach)
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.state.tasks["a"].turn == 2
    [returned] = events_of(world, e.TurnReturned)
    assert returned.cause == "review"
    assert "no test" in returned.feedback


def test_five_turns_without_approval():  # G6 X5
    world = World(
        plan_of(A),
        {"a": counting},
        coach=lambda _t, turn, _f: review(decision="feedback", feedback=str(turn)),
    )
    world.go()
    assert world.state.tasks["a"].phase is Phase.ABANDONED
    assert len(world.agent.calls) == len(world.agent.reviews) == 5


def test_an_approval_without_evidence_for_one_criterion_sends_the_coach_back():  # B2 B16
    world = World(plan_of(A), {"a": counting}, coach=lambda *_: review(evidence=SEEN[:1]))
    world.go()
    assert world.state.tasks["a"].phase is Phase.HELP_TO_REVIEW
    assert "no evidence that criterion 2 is met" in (world.state.tasks["a"].question or "")
    assert events_of(world, e.TaskApproved) == []
    assert events_of(world, e.TurnReturned) == []
    assert world.agent.calls == [("a", 1)], "the Player is not blamed for it"
    assert len(world.agent.reviews) == 4


def test_a_coach_that_is_asked_again_may_bring_the_evidence():  # B16
    left = [review(evidence=())]
    world = World(plan_of(A), {"a": counting}, coach=lambda *_: left.pop() if left else review())
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.agent.calls == [("a", 1)]
    answered, failed = events_of(world, e.CoachAnswered), events_of(world, e.CoachFailed)
    assert [each.k for each in answered] == [1, 2]
    assert [(each.k, each.failure) for each in failed] == [(1, e.Failure.INCONCLUSIVE)]
    first = world.state.tasks["a"].last.coachings[0]
    assert first.usage == answered[0].usage, "what it used is still known"


def test_a_review_of_another_commit_is_no_answer():
    world = World(plan_of(A), {"a": counting}, coach=lambda *_: review())
    world.go()
    task = world.state.tasks["a"]
    other = replace(task.last.coachings[-1], commit="another")
    last = replace(task.last, coachings=(other,))
    asked = replace(task, phase=Phase.REVIEWED, attempts=(*task.attempts[:-1], last))
    fact = reviews.step(world.state, asked, world.state.at)
    assert isinstance(fact, e.CoachFailed)
    assert fact.message == "it says nothing about this commit"


def test_a_task_without_criteria_has_its_description_for_one():
    bare = Task(id="a", title="a", max_turns=1)
    silent = World(plan_of(bare), {"a": counting}, coach=lambda *_: review(evidence=()))
    silent.go()
    assert silent.state.tasks["a"].phase is Phase.HELP_TO_REVIEW


@pytest.mark.parametrize("times", [1, 3])
def test_no_structured_answer_is_asked_for_again_and_costs_no_turn(times: int):  # G5
    left = [Report(summary="I approve!")] * times

    def coach(*_: object) -> Report | Review:
        return left.pop() if left else review()

    world = World(plan_of(A), {"a": counting}, coach=coach)
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.state.tasks["a"].turn == 1
    assert world.agent.calls == [("a", 1)]
    failures = [event.failure for event in events_of(world, e.CoachFailed)]
    assert failures == [e.Failure.INCONCLUSIVE] * times


def test_prose_for_ever_is_put_to_a_person():
    world = World(plan_of(A), {"a": counting}, coach=lambda *_: Report(summary="approved"))
    world.go()
    assert world.state.tasks["a"].phase is Phase.HELP_TO_REVIEW
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert events_of(world, e.TaskApproved) == []
    world.agent.coach = lambda *_: review()
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.agent.calls == [("a", 1)], "the Player's work was kept"


@pytest.mark.parametrize("failure", [e.Failure.TRANSIENT, e.Failure.STALLED, e.Failure.CRASHED])
def test_a_coach_that_fails_is_no_approval_and_no_turn(failure):  # G13
    left = [Report(failure=failure, message="gone")]
    world = World(plan_of(A), {"a": counting}, coach=lambda *_: left.pop() if left else review())
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert len(world.agent.reviews) == 2
    assert world.agent.calls == [("a", 1)]


def test_a_coach_that_is_refused_pauses_everything():
    left = [Report(failure=e.Failure.AUTH, message="401")]
    world = World(plan_of(A), {"a": counting}, coach=lambda *_: left.pop() if left else review())
    world.go()
    assert world.state.ended is e.RunEnd.LIMIT
    assert "401" in world.state.reason
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.agent.calls == [("a", 1)]


def test_killed_while_it_waits_for_a_coach():
    def world() -> World:
        left = [Report(failure=e.Failure.TRANSIENT, message="529")]
        return World(plan_of(A), {"a": counting}, coach=lambda *_: left.pop() if left else review())

    names = world().go().names
    for at in range(names.index("keep:after"), len(names) + 1):
        killed = world()
        killed.go(crash_at=at)
        killed.go()
        assert killed.state.ended is e.RunEnd.COMPLETED
        assert killed.agent.calls == [("a", 1)]


def test_an_answer_that_was_pinned_and_not_recorded_is_not_paid_again():  # G10
    names = World(plan_of(A), {"a": counting}, coach=lambda *_: review()).go().names
    world = World(plan_of(A), {"a": counting}, coach=lambda *_: review())
    world.go(crash_at=names.index("keep:after") + 1)
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.agent.reviews == [("a", 1)]


def test_what_a_coach_changes_is_noted_and_goes_nowhere():  # G4
    def coach(_task: str, _turn: int, files: dict[str, str]) -> Review:
        files["README"] = "approved by the Coach"
        return review()

    world = World(plan_of(A), {"a": counting}, coach=coach)
    world.go()
    [answered] = events_of(world, e.CoachAnswered)
    assert answered.touched == ("README",)
    assert world.repository.files(world.state.tip)["README"] == "hello"


def test_a_coachs_question_waits_for_an_answer_and_resuming_is_none():  # K5
    left = [review(question="Redis or memory?")]
    world = World(plan_of(A), {"a": counting}, coach=lambda *_: left.pop() if left else review())
    world.go()
    assert world.state.tasks["a"].phase is Phase.ASKED
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    world.go()
    assert world.state.tasks["a"].phase is Phase.ASKED
    world.inbox.messages.append(Message(command="answer", task="a", text="memory"))
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED, "what was said while nobody heard it counts"
    assert world.inbox.messages == []
    assert world.state.tasks["a"].answers == ("Redis or memory?\n\nAnswer: memory",)


def record(world: World, event: e.Event) -> None:
    world.journal.append([event], expected=len(world.events))


def test_a_players_question_is_put_before_anybody_judges_its_work():  # K5
    def play(n: int, _turn: int, files: dict[str, str]) -> Report:
        files["a"] = str(n)
        question = "which port?" if n == 1 else None
        return Report(answer=PlayerAnswer(summary="s", question=question))

    world = World(plan_of(A), {"a": play})
    world.go()
    assert world.state.tasks["a"].phase is Phase.ASKED
    assert world.agent.reviews == []
    record(world, e.Answered(at=world.clock.now(), task="a", text="8080", by="me"))
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.state.tasks["a"].turn == 1, "a question uses no turn"


def test_a_live_run_hears_an_answer_while_others_work():  # K5
    import anyio

    other = Task(id="b", title="b")

    def play(n: int, _turn: int, files: dict[str, str]) -> Report:
        files["a"] = str(n)
        question = "which port?" if n == 1 else None
        return Report(answer=PlayerAnswer(summary="s", question=question))

    world = World(plan_of(A, other), {"a": play, "b": writes("b", "1")})
    work = world.agent.work

    async def slow(brief, workspace, watch):
        if brief.task == "b" and brief.role == "player":
            while not events_of(world, e.HelpNeeded):  # noqa: ASYNC110  its sibling makes it true
                await anyio.sleep(0.01)
            world.inbox.messages.append(Message(command="approve", task="a"))
            world.inbox.messages.append(Message(command="dance", task="a"))
            world.inbox.messages.append(Message(command="answer", task="nobody", text="x"))
            world.inbox.messages.append(Message(command="answer", task="a", text="8080"))
            while not events_of(world, e.Answered):  # noqa: ASYNC110  the inbox makes it true
                await anyio.sleep(0.01)
        return await work(brief, workspace, watch)

    world.agent.work = slow
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.inbox.messages == []


COMPLEX = Task(id="c", title="c", complexity=7)


def test_a_complex_task_waits_for_a_persons_word():  # G8
    world = World(plan_of(COMPLEX), {"c": writes("c", "1")})
    world.go()
    assert world.state.tasks["c"].phase is Phase.HELP_TO_START
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert world.agent.calls == []
    world.go()
    assert world.agent.calls == [], "resuming is no word"
    record(world, e.CheckpointPassed(at=world.clock.now(), task="c", by="me"))
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED


def test_policy_may_pass_checkpoints():  # G8
    world = World(plan_of(COMPLEX), {"c": writes("c", "1")})
    world.go()
    world.go(settings=with_policy(CHECKED, checkpoint="pass"))
    assert world.state.ended is e.RunEnd.COMPLETED
    fresh = World(
        plan_of(COMPLEX), {"c": writes("c", "1")}, settings=with_policy(CHECKED, checkpoint="pass")
    )
    fresh.go()
    assert fresh.state.ended is e.RunEnd.COMPLETED


def test_a_stop_drops_the_coach_and_resume_asks_another():
    import anyio

    world = World(plan_of(A), {"a": counting}, coach=lambda *_: review(), inbox=MemoryInbox())
    work = world.agent.work

    async def hang(brief, workspace, watch):
        if brief.role == "coach":
            world.inbox.messages.append(Message(command="stop"))
            await anyio.sleep_forever()
        return await work(brief, workspace, watch)

    world.agent.work = hang
    world.go()
    assert world.state.ended is e.RunEnd.STOPPED
    world.agent.work = work
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.agent.calls == [("a", 1)]
    assert world.state.tasks["a"].last.coachings[0].failure is e.Failure.INTERRUPTED
