"""A task that was merged for an older text of the plan is stale, and a stale task is not done."""

# B7 K11
import pytest
from msgspec.structs import replace

from memory_recovery import recover
from windlass.core.engine import record
from windlass.core.events import model as e
from windlass.core.events.review import PlayerAnswer
from windlass.core.exchange import Message
from windlass.core.plan import Plan, Stage, Task, digest_of
from windlass.core.scheduler.late_edits import facts_of
from windlass.core.scheduler.people import spoken
from windlass.core.settings import E2ESettings, PolicySettings, Settings
from windlass.core.state import Phase, apply
from windlass.ports import Report
from windlass.testing.memory import Files
from windlass.views.closing import closing, continue_here_text, what_it_needs
from windlass.views.notices import notice_of
from windlass.views.outcome import exit_code, is_finished, run_status, task_statuses
from windlass.views.progress import progress
from windlass.views.steps import cure, next_steps, refusal
from windlass.views.story import line_of
from windlass.views.tree import tree
from worlds import World, plan_of, writes

A = Task(id="a", title="First", text="do a")
B = Task(id="b", title="Second", text="do b")
HARD = replace(B, text="do b, which is hard", complexity=9)
"""It does not begin unasked; as an edit makes it easier, it does."""
EDITED = replace(A, text="do a well", acceptance_criteria=("it is done well",), checks=("well",))
PLAYS = {"a": writes("a", "1"), "b": writes("b", "1")}
SETTINGS = Settings(checks=("test",))


def world(*, rule=lambda command, files: command != "well" or "WELL" in files.values()) -> World:
    """A run that waits for a person, with `a` merged and `b` not."""
    made = World(plan_of(A, HARD), PLAYS, settings=SETTINGS, rule=rule)
    made.go()
    assert made.state.done == ("a",)
    assert made.state.ended is e.RunEnd.NEEDS_HUMAN
    return made


def edited(made: World, spec: Task = EDITED, **more) -> World:
    """The same, gone on with after that edit; `b` may begin now."""
    made.go(revised=replace(plan_of(spec, B), **more))
    return made


def say(made: World, command: str, task: str, **more: str) -> bool:
    message = Message(command=command, task=task, **more)
    facts = spoken(message, made.state, made.clock.now())
    if facts:
        made.journal.append(facts, expected=len(made.events))
    return bool(facts)


def test_a_new_criterion_and_a_new_check_of_a_merged_task_are_not_done():
    made = edited(world())
    state = made.state
    assert (state.done, state.stale) == (("b",), ("a",))
    assert state.ended is e.RunEnd.NEEDS_HUMAN
    assert exit_code(state) == 3
    assert not is_finished(state)
    looks = [event for event in made.events if isinstance(event, e.VerificationStarted)]
    assert [(look.commit, look.checks) for look in looks][-1] == (state.tip, ("well",))
    assert "a is stale" in state.reason
    assert "`well` fails with exit code 1" in state.reason


def test_every_view_has_a_word_of_its_own_for_it():
    made = edited(world())
    state = made.state
    assert task_statuses(state)["a"] == "stale"
    told = progress(state, 1)
    assert told.tasks["a"].status == "stale"
    assert told.tasks["a"].stale.checks == {"well": "fail"}
    assert told.metrics.completed == 1
    assert (told.status, run_status(state)) == ("needs_human", "needs_human")
    assert "- a: ⚠ Stale (merged for an older text of the plan)" in tree(state)
    summary = next(line for line in closing(state, plan="p", workspaces="w") if "task" in line.text)
    assert "1 stale, 1 completed" in summary.text
    ended = made.events[-1]
    notice = notice_of(ended, state)
    assert notice is not None
    assert "a is stale" in notice.text
    needed = what_it_needs(state.tasks["a"], state)
    assert "`well` fails on the tip" in needed
    assert "windlass approve p:a" in needed
    commands = [step.command for step in next_steps(state, plan="p", ground=None)]
    assert commands[:2] == ["windlass retry p:a", "windlass approve p:a"]
    revision = next(event for event in made.events if isinstance(event, e.PlanRevised))
    line = line_of(revision, state)
    assert line is not None
    assert line.details == ("a is stale: merged for an older text of the plan",)
    paused = replace(state, ended=e.RunEnd.PAUSED)
    assert "⚠ Stale" in (continue_here_text(paused, 1, str) or "")


def test_it_is_done_once_it_is_done_again():
    made = edited(world())
    assert say(made, "retry", "a")
    made.agent.plays = {"a": writes("a", "WELL")}
    made.go()
    assert made.state.ended is e.RunEnd.COMPLETED
    assert made.state.tasks["a"].merged_as == EDITED
    assert made.state.tasks["a"].accepted is None


def test_a_person_accepts_it_for_one_text():
    made = edited(world(rule=lambda _command, _files: True))
    assert not say(made, "approve", "a", meaning=digest_of(A)), "they saw another text"
    assert "has changed since you looked" in refusal("approve", made.state, "a").message
    assert say(made, "approve", "a", text="ada", meaning=digest_of(EDITED))
    assert made.state.ended is e.RunEnd.STOPPED
    assert not say(made, "approve", "a"), "it is not stale any more"
    made.go()
    state = made.state
    assert state.ended is e.RunEnd.COMPLETED
    accepted = state.tasks["a"].accepted
    assert accepted is not None
    assert (accepted.by, accepted.spec) == ("ada", EDITED)
    shown = progress(state, 1).tasks["a"]
    assert (shown.status, shown.accepted.by) == ("completed", "ada")
    assert shown.accepted.text == digest_of(EDITED)
    details = [
        detail for line in closing(state, plan="p", workspaces="w") for detail in line.details
    ]
    assert any("accepted by ada" in detail for detail in details)


def test_accepted_and_edited_again_is_stale_again():
    made = edited(world(rule=lambda _command, _files: True))
    assert say(made, "approve", "a")
    made.go(revised=plan_of(replace(EDITED, text="do a even better"), B))
    assert made.state.stale == ("a",)
    assert made.state.ended is e.RunEnd.NEEDS_HUMAN
    made.go(revised=plan_of(EDITED, B))
    assert made.state.ended is e.RunEnd.COMPLETED, "for that text it was accepted"


def test_what_is_red_stays_red_though_the_text_is_accepted():
    made = edited(world())
    assert say(made, "approve", "a")
    line = line_of(made.events[-1], made.state)
    assert line is not None
    assert line.word == "ACCEPTED"
    assert line.details == ("`well` fails on the tip",)
    made.go()
    assert made.state.stale == ()
    assert made.state.ended is e.RunEnd.NEEDS_HUMAN
    assert made.state.reason == "the tip does not pass: `well` fails with exit code 1"


def test_a_new_check_that_finds_nothing_to_run_has_not_passed():
    made = edited(world(rule=lambda command, _files: None if command == "well" else True))
    assert progress(made.state, 1).tasks["a"].stale.checks == {"well": "collected_nothing"}
    assert say(made, "approve", "a")
    made.go()
    assert made.state.ended is e.RunEnd.NEEDS_HUMAN
    assert "found no test to run" in made.state.reason
    made.go(settings=replace(SETTINGS, policy=PolicySettings(absent="skip")))
    assert made.state.ended is e.RunEnd.COMPLETED


@pytest.mark.parametrize("passed_before", [True, False])
def test_the_next_merge_must_keep_what_the_tip_passes_and_no_more(passed_before: bool):  # noqa: FBT001
    """A check of an accepted text that was red before is not the next task's to mend."""

    def asks(n: int, _turn: int, files: dict[str, str]) -> Report | None:
        files["b"] = "1"
        asked = PlayerAnswer(summary="", question="which?")
        return Report(answer=asked) if n == 1 else None

    def rule(command: str, files: Files) -> bool:
        return command != "well" or (passed_before and "b" not in files)

    plays = {"a": writes("a", "1"), "b": asks}
    made = World(plan_of(A, B), plays, settings=replace(SETTINGS, agents=2), rule=rule)
    made.go()
    assert made.state.done == ("a",)
    made.go(revised=plan_of(EDITED, B))
    assert made.state.tasks["b"].phase is Phase.ASKED
    assert say(made, "approve", "a")
    assert say(made, "answer", "b", text="this")
    made.go()
    returned = [event.cause for event in made.events if isinstance(event, e.TurnReturned)]
    assert ("merged_checks" in returned) == passed_before
    assert ("b" in made.state.done) != passed_before
    assert made.state.ended is e.RunEnd.NEEDS_HUMAN


@pytest.mark.parametrize("plan", [plan_of(A, B), plan_of(B)], ids=["old text", "taken out"])
def test_an_edit_that_is_taken_back_withdraws_it(plan: Plan):
    made = edited(world())
    made.go(revised=plan)
    assert made.state.ended is e.RunEnd.COMPLETED
    assert made.state.stale == ()
    assert made.state.specs["a"].text == "do a"


def test_resumed_twice_it_is_as_stale_as_before():
    made = edited(world())
    calls = list(made.agent.calls)
    for _ in range(2):
        made.go()
        assert made.state.stale == ("a",)
        assert made.state.ended is e.RunEnd.NEEDS_HUMAN
    assert made.agent.calls == calls, "nothing is paid for"


@pytest.mark.parametrize("anyway", [False, True])
def test_nothing_lands_while_it_stands(anyway: bool):  # noqa: FBT001
    made = edited(world())
    tip = made.repository.branches["main"]
    fact = e.LandRequested(at=made.clock.now(), by="windlass land", anyway=anyway)
    made.journal.append([fact], expected=len(made.events))
    made.go()
    assert made.repository.branches["main"] == tip
    refused = apply(made.state, fact)
    step, *_ = record(refused, (), made.clock.now()).events
    assert isinstance(step, e.LandRefused)
    assert "a is stale" in step.reason
    told = cure(made.state, "p").hint
    assert "windlass retry p:a" in told
    assert "windlass approve p:a" in told
    assert "restore the old text" in told


def test_a_stale_task_holds_no_stage_up_and_keeps_the_run_from_its_end():
    first, second = replace(A, stage="1"), replace(HARD, stage="2")
    plan = replace(plan_of(first, second), stages=(Stage(name="1"), Stage(name="2")))
    made = World(plan, PLAYS, settings=SETTINGS)
    made.go()
    assert made.state.looks["1"].passed_by == "verification"
    new = (replace(EDITED, stage="1"), replace(B, stage="2"))
    made.go(revised=replace(plan, tasks=new))
    assert made.state.done == ("b",)
    assert made.state.ended is e.RunEnd.NEEDS_HUMAN
    assert say(made, "retry", "1"), "the stage as a whole"
    assert made.state.tasks["a"].phase is Phase.PENDING
    assert made.state.tasks["a"].merge_before is None, "what was merged was for another text"


def test_what_was_asked_for_is_merged_but_the_run_has_a_stale_task():
    made = world()
    asked = replace(made.first(made.state, None), only=("b",))
    assert isinstance(asked, e.RunResumed)
    made.first = lambda *_: asked
    edited(made)
    assert made.state.done == ("b",)
    assert exit_code(made.state) == 3


def test_a_scenario_whose_text_changed_is_tried_again():
    settings = replace(SETTINGS, e2e=E2ESettings(run=True))
    plan = replace(plan_of(A), e2e="try it")
    made = World(plan, PLAYS, settings=settings)
    made.go()
    assert made.state.done == ("a", "e2e")
    stopped = e.RunEnded(at=made.clock.now(), status=e.RunEnd.STOPPED)
    made.journal.append([stopped], expected=len(made.events))
    made.go(revised=replace(plan_of(A), e2e="try it twice"))
    assert made.state.ended is e.RunEnd.COMPLETED
    assert made.state.tasks["e2e"].merged_as.text == "try it twice"
    tries = [event for event in made.events if isinstance(event, e.TipTaken)]
    assert len(tries) == 2


def test_an_edit_while_the_run_is_live_keeps_it_from_its_end():
    made = World(plan_of(A, B), PLAYS, settings=SETTINGS)
    made.file = plan_of(EDITED, B, Task(id="c", title="Third"))
    made.go()
    assert made.state.stale == ("a",)
    assert made.state.ended is e.RunEnd.NEEDS_HUMAN
    assert list(made.state.tasks) == ["a", "b"], "what is new waits for a resume"
    assert not any(
        isinstance(event, e.RunEnded) and event.status is e.RunEnd.COMPLETED
        for event in made.events
    )


def test_an_edit_while_only_some_tasks_are_asked_for_is_seen_as_well():
    made = World(plan_of(A, B), PLAYS, settings=SETTINGS)
    began = replace(made.first(None, None), only=("a",))
    made.first = lambda *_: began
    made.file = plan_of(EDITED, B)
    made.go()
    assert made.state.stale == ("a",)
    assert exit_code(made.state) == 3


def test_an_edit_while_the_run_is_live_keeps_it_from_landing():
    made = World(plan_of(A), PLAYS, settings=replace(SETTINGS, land=True))
    main = made.repository.branches["main"]
    made.file = plan_of(EDITED)
    made.go()
    assert made.repository.branches["main"] == main
    assert made.state.landing is None


def test_a_check_of_the_whole_that_came_while_the_run_was_live_must_pass():
    made = World(plan_of(A), PLAYS, settings=SETTINGS, rule=lambda command, _f: command != "new")
    made.file = plan_of(A, checks=("new",))
    made.go()
    assert made.state.ended is e.RunEnd.NEEDS_HUMAN
    assert "`new` fails" in made.state.reason


def test_a_plan_that_cannot_be_read_at_the_end_is_no_completed_one():
    made = World(plan_of(A), PLAYS, settings=SETTINGS)
    made.file = "an edit of p.md that cannot be read: no tasks found"
    made.go()
    assert made.state.ended is e.RunEnd.STOPPED
    assert "cannot be read" in made.state.reason
    made.file = None
    made.go()
    assert made.state.ended is e.RunEnd.COMPLETED


def test_the_plan_as_the_run_knows_it_is_no_edit():
    stages = (Stage(name="1", checks=("smoke",)),)
    plan = replace(plan_of(replace(A, stage="1")), stages=stages, e2e="try it")
    settings = replace(SETTINGS, e2e=E2ESettings(run=True))
    made = World(plan, PLAYS, settings=settings)
    made.file = plan
    made.go()
    assert made.state.ended is e.RunEnd.COMPLETED
    assert facts_of(made.state, plan, made.clock.now()) == ()
    moved = replace(plan, stages=(Stage(name="1", checks=("other",)),))
    [edit] = facts_of(made.state, moved, made.clock.now())
    assert isinstance(edit, e.PlanRevised)
    assert edit.plan.stages == moved.stages


def test_a_completed_run_whose_plan_is_edited_at_rest_is_not_completed():
    made = World(plan_of(A, B), PLAYS, settings=SETTINGS)
    made.go()
    at = made.clock.now()
    assert made.state.ended is e.RunEnd.COMPLETED
    same = apply(made.state, e.PlanRevised(at=at, plan=plan_of(A, B, checks=("new",))))
    assert same.ended is e.RunEnd.STOPPED
    stale = apply(made.state, e.PlanRevised(at=at, plan=plan_of(EDITED, replace(B, text="other"))))
    assert stale.ended is e.RunEnd.NEEDS_HUMAN
    word = e.TaskAccepted(at=at, task="a", by="ada", spec=EDITED)
    assert apply(stale, word).ended is e.RunEnd.NEEDS_HUMAN, "b is stale as well"
    given_up = apply(made.state, e.RunEnded(at=at, status=e.RunEnd.ABORTED))
    aborted = apply(given_up, e.PlanRevised(at=at, plan=plan_of(EDITED, B)))
    assert aborted.ended is e.RunEnd.ABORTED


def test_an_end_that_an_older_version_recorded_is_read_as_what_it_is():
    made = edited(world())
    old = e.RunEnded(at=made.clock.now(), status=e.RunEnd.COMPLETED)
    state = apply(made.state, old)
    assert state.ended is e.RunEnd.NEEDS_HUMAN
    assert "a is stale" in state.reason


def test_one_that_begins_anew_may_be_put_back_as_stale_as_it_was():
    made = edited(world())
    assert say(made, "reset", "a")
    assert made.state.tasks["a"].phase is Phase.PENDING
    assert say(made, "reset", "a", text="undo")
    assert made.state.stale == ("a",)
    assert say(made, "reset", "a")
    at = made.clock.now()
    back = apply(made.state, e.PlanRevised(at=at, plan=plan_of(A, B)))
    undone = apply(back, e.TaskResetUndone(at=at, task="a", by="ada"))
    assert undone.tasks["a"].phase is Phase.MERGED


def test_of_a_lost_journal_it_is_still_known_for_which_text_a_task_was_merged():  # B4
    made = edited(world())
    recover(made)
    assert made.state.stale == ("a",)
    assert say(made, "approve", "a", text="ada")
    made.repository.mirror.copy()
    recover(made)
    assert made.state.stale == ()
    accepted = made.state.tasks["a"].accepted
    assert accepted is not None
    assert (accepted.by, accepted.spec) == ("ada", EDITED)


def test_a_task_done_again_that_needs_no_change_stands_for_the_text_it_was_accepted_for():
    made = edited(world(rule=lambda _command, _files: True))
    assert say(made, "approve", "a")
    assert say(made, "retry", "a")

    def nothing(_n: int, _turn: int, _files: dict[str, str]) -> Report | None:
        return None

    made.agent.plays = {"a": nothing}
    made.go()
    assert made.state.ended is e.RunEnd.COMPLETED
    assert any(isinstance(event, e.MergeStands) for event in made.events)
