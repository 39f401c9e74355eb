"""A plan edited between runs, and tasks asked for again: by id, nothing forgotten."""  # B7

import pytest
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.exchange import Message
from windlass.core.plan import Plan, Stage, Task, compare
from windlass.core.scheduler.people import spoken
from windlass.core.settings import E2ESettings, Settings
from windlass.core.state import Phase, RunPhase
from windlass.core.state.transitions import REVISED, UNDER_WAY
from windlass.ports import Report
from windlass.runner import loop
from windlass.testing.memory import MemoryInbox
from windlass.views.closing import closing
from windlass.views.cost import run_cost
from windlass.views.edits import edit_lines
from windlass.views.lines import Line
from windlass.views.story import line_of
from worlds import World, plan_of, writes

A = Task(id="a", title="First", text="do a", line=1)
B = Task(id="b", title="Second", text="do b", depends_on=("a",), line=5)
C = Task(id="c", title="Third", text="do c", depends_on=("b",), line=9)
C2 = replace(C, depends_on=())
ASKS = Task(id="asks", title="Hard", complexity=9)
"""Nobody begins it unasked."""
PLAN = plan_of(A, B, C)
CHEAP = Settings(checks=("test",), max_cost=0.015)
"""Enough for one task, with its review; the next does not start."""
PLAYS = {"a": writes("a", "1"), "b": writes("b", "1"), "c": writes("c", "1")}


def world(**plays) -> World:
    """A run in which `a` is merged and the rest has yet to begin."""
    made = World(PLAN, {**PLAYS, **plays}, settings=CHEAP)
    made.go()
    assert made.state.done == ("a",)
    assert made.state.ended is e.RunEnd.LIMIT
    return made


def go_on(made: World, plan: Plan) -> None:
    made.go(settings=Settings(checks=("test",)), revised=plan)


def test_what_is_added_removed_and_reordered_is_understood_by_id():
    made = world(d=writes("d", "1"))
    d = Task(id="d", title="Fourth", depends_on=("a",))
    edited = plan_of(d, replace(A, line=40), replace(C, depends_on=("d",)))
    assert edit_lines(made.state, edited) == [
        "+ d Fourth: new",
        "- b Second: withdrawn",
        "· c Third: asks for the same, arranged differently",
    ]
    go_on(made, edited)
    assert made.state.ended is e.RunEnd.COMPLETED
    assert list(made.state.tasks) == ["d", "a", "c"]
    assert made.state.done == ("a", "d", "c")
    assert [task for task, _ in made.agent.calls] == ["a", "d", "c"], "a is not done again"


def test_another_order_alone_is_said():
    made = world()
    swapped = plan_of(B, A, C)
    assert edit_lines(made.state, swapped) == ["· the order of the tasks changed"]
    renamed = replace(PLAN, title="Q", checks=("more",))
    assert edit_lines(made.state, renamed) == [
        "· the plan's title changed",
        "· the plan's checks changed",
    ]
    assert edit_lines(made.state, PLAN) == []
    assert not compare(PLAN, PLAN)


def test_a_merged_task_that_changed_is_stale_until_a_person_asks_for_it_again():
    made = world()
    edited = plan_of(replace(A, text="do a better"), B, C)
    [line] = edit_lines(made.state, edited)
    assert line.startswith("~ a First: stale")
    go_on(made, edited)
    assert made.state.ended is e.RunEnd.NEEDS_HUMAN
    assert made.state.stale == ("a",)
    assert made.state.done == ("b", "c"), "what builds on it goes on: its work is in the tip"
    assert [task for task, _ in made.agent.calls] == ["a", "b", "c"]
    stale = closing(made.state, plan="p.md", workspaces="w")[0]
    assert stale.word == "STALE"
    assert {"windlass retry p:a", "windlass approve p:a"} <= {*stale.details}

    [again] = spoken(Message(command="retry", task="a"), made.state, made.clock.now())
    assert line_of(again, made.state) == Line("AGAIN", "a First · requested by a person")
    assert isinstance(again, e.TaskReopened)
    assert not again.may_stand, "what was merged was merged for another meaning"
    made.journal.append([again], expected=len(made.events))
    assert made.state.ended is e.RunEnd.STOPPED
    assert made.state.done == ("b", "c")
    made.agent.plays = {"a": writes("a", "2")}
    tip = made.state.tip
    go_on(made, edited)
    state = made.state
    assert state.ended is e.RunEnd.COMPLETED
    assert not state.is_stale("a")
    assert state.done == ("b", "c", "a")
    assert made.repository.files(state.tip) == {"README": "hello", "a": "2", "b": "1", "c": "1"}
    assert state.tasks["a"].last.start == tip, "it began from the tip, not from its old work"
    assert state.tasks["a"].last.turn == 2, "turns go on counting"


def test_a_text_put_back_is_not_stale():
    made = world()
    go_on(made, plan_of(replace(A, text="other"), B, C))
    assert made.state.is_stale("a")
    made.journal.append([e.PlanRevised(at=made.clock.now(), plan=PLAN)], expected=len(made.events))
    assert not made.state.is_stale("a")
    assert made.state.ended is e.RunEnd.STOPPED, "the tip has yet to be looked at"
    go_on(made, PLAN)
    assert made.state.ended is e.RunEnd.COMPLETED


def test_what_is_removed_and_merged_stays_for_its_work_is_in_the_tip():
    made = world()
    edited = plan_of(replace(B, depends_on=()), C)
    assert edit_lines(made.state, edited) == ["· b Second: asks for the same, arranged differently"]
    go_on(made, edited)
    assert made.state.done == ("a", "b", "c")
    assert edit_lines(made.state, edited) == []
    revision = next(ev for ev in made.events if isinstance(ev, e.PlanRevised))
    told = line_of(revision, made.state)
    assert told is not None
    assert told.word == "PLAN"


def test_what_is_withdrawn_keeps_its_cost_and_comes_back_where_it_was():
    fails = Report(failure=e.Failure.AUTH, message="no", usage=e.Usage(cost_usd=0.1))

    def half(_n: int, _turn: int, files: dict[str, str]) -> Report:
        files["b"] = "half"
        return fails

    made = world(b=half)
    made.go(settings=Settings(checks=("test",)))
    assert made.state.ended is e.RunEnd.LIMIT
    spent = made.state.spent.cost_usd
    without = plan_of(A, replace(C, depends_on=("a",)))
    assert "- b Second: withdrawn; its work stays pinned" in edit_lines(made.state, without)
    go_on(made, without)
    assert made.state.ended is e.RunEnd.COMPLETED
    assert made.state.spent.cost_usd > spent
    assert run_cost(made.state).cost_usd == pytest.approx(made.state.spent.cost_usd)
    assert list(made.state.withdrawn) == ["b"]
    assert edit_lines(made.state, PLAN)[0] == (
        "+ b Second: back; it continues where it was withdrawn"
    )
    reopened = e.TaskReopened(at=made.clock.now(), task="c", by="me")
    made.journal.append([reopened], expected=len(made.events))
    seen: dict[str, str] = {}

    def whole(_n: int, _turn: int, files: dict[str, str]) -> None:
        seen.update(files)
        files["b"] = "whole"

    made.agent.plays = {"b": whole, "c": writes("c", "2")}
    go_on(made, PLAN)
    assert made.state.ended is e.RunEnd.COMPLETED
    assert seen["b"] == "half"
    assert made.state.withdrawn == {}


def test_what_was_judged_for_another_meaning_is_judged_again():
    """Killed when approved; meanwhile the plan says something else."""
    whole = World(plan_of(A), PLAYS)
    names = whole.go().names
    made = World(plan_of(A), PLAYS)
    made.go(crash_at=names.index("merge:before") + 1)
    assert made.state.tasks["a"].phase in {Phase.MERGING, Phase.APPROVED}
    edited = plan_of(replace(A, text="do a with care", checks=("careful",)))
    assert edit_lines(made.state, edited) == ["~ a First: changed; agents get the new text"]
    made.go(revised=edited)
    assert made.state.ended is e.RunEnd.COMPLETED
    assert len(made.agent.calls) == 1, "its work is kept"
    assert len(made.agent.reviews) == 2, "and looked at again"
    assert ("a-1", "careful") in made.checks.runs


def test_a_verdict_on_another_meaning_that_nobody_recorded_is_not_adopted():
    whole = World(plan_of(A), PLAYS)
    names = whole.go().names
    made = World(plan_of(A), PLAYS)
    made.go(crash_at=len(names) - 1 - names[::-1].index("keep:after") + 1)
    assert made.state.tasks["a"].phase is Phase.REVIEWING
    made.go(revised=plan_of(replace(A, text="do a with care")))
    assert made.state.ended is e.RunEnd.COMPLETED
    assert len(made.agent.reviews) == 2


def test_a_task_made_simple_needs_no_word_any_more():
    hard = replace(A, complexity=9)
    made = World(plan_of(hard), PLAYS)
    made.go()
    assert made.state.tasks["a"].phase is Phase.HELP_TO_START
    made.go(revised=plan_of(replace(hard, complexity=3, text="simple")))
    assert made.state.ended is e.RunEnd.COMPLETED


def test_an_abandoned_task_goes_on_from_its_work_when_asked_for_again():  # X6
    made = World(plan_of(A), {"a": writes("a", "RED")}, rule=lambda _c, f: f.get("a") != "RED")
    made.go(settings=Settings(checks=("test",), max_turns=2))
    assert made.state.ended is e.RunEnd.FAILED
    edited = plan_of(replace(A, text="easier"))
    assert edit_lines(made.state, edited)[0].endswith("`windlass retry a` tries it again")
    made.go(settings=Settings(checks=("test",), max_turns=2), revised=edited)
    assert made.state.ended is e.RunEnd.FAILED, "nobody asked"
    [again] = spoken(Message(command="retry", task="a"), made.state, made.clock.now())
    made.journal.append([again], expected=len(made.events))
    made.agent.plays = {"a": writes("a", "GREEN")}
    made.go(settings=Settings(checks=("test",), max_turns=2))
    assert made.state.ended is e.RunEnd.COMPLETED
    assert made.state.tasks["a"].last.turn == 3
    assert not spoken(Message(command="retry", task="b"), made.state, made.clock.now())


def test_a_scenario_that_held_is_tried_again_on_what_is_new():  # K11
    plan = replace(plan_of(A), e2e="try it")
    settings = Settings(checks=("test",), e2e=E2ESettings(run=True))
    red = {"now": False}
    made = World(plan, PLAYS, settings=settings, rule=lambda _c, _f: not red["now"])
    made.go()
    assert made.state.done == ("a", "e2e")
    made.journal.append(
        [e.RunEnded(at=made.clock.now(), status=e.RunEnd.STOPPED)], expected=len(made.events)
    )
    made.go(revised=replace(plan_of(A, B), e2e="try it"))
    assert made.state.ended is e.RunEnd.COMPLETED
    assert made.state.done == ("a", "b", "e2e")
    tries = [ev.commit for ev in made.events if isinstance(ev, e.TipTaken)]
    assert len(tries) == 2
    assert tries[1] == made.state.tip


def test_a_scenario_that_failed_keeps_its_repair_when_the_plan_is_edited():
    plan = replace(plan_of(A), e2e="try it")
    settings = Settings(checks=("test",), e2e=E2ESettings(run=True))
    made = World(plan, {**PLAYS, "e2e": writes("e", "1")}, settings=settings)
    made.go()
    made.journal.append(
        [e.RunEnded(at=made.clock.now(), status=e.RunEnd.STOPPED)], expected=len(made.events)
    )
    made.go(revised=replace(plan_of(replace(A, line=7)), e2e="try it"))
    assert made.state.ended is e.RunEnd.COMPLETED
    assert len([ev for ev in made.events if isinstance(ev, e.TipTaken)]) == 1


def test_a_task_goes_back_only_to_where_nothing_is_under_way():
    assert not set(REVISED) & UNDER_WAY, "a plan is revised when nothing is, after a resume"
    assert not set(REVISED.values()) & UNDER_WAY
    judged = {Phase.CHECKED, Phase.REVIEWED, Phase.APPROVED, Phase.BUILT, Phase.CONFLICTED}
    assert judged <= set(REVISED), "whatever was judged is judged again"


def test_killed_anywhere_after_an_edit_it_ends_the_same():  # B4
    edited = plan_of(replace(A, text="other"), Task(id="d", title="D"), replace(C, depends_on=()))
    plays = {**PLAYS, "d": writes("d", "1")}

    def run(crash_at: int | None) -> World:
        made = World(PLAN, plays, settings=CHEAP)
        made.go()
        made.go(settings=Settings(checks=("test",)), revised=edited, crash_at=crash_at)
        if crash_at is not None:
            made.go(settings=Settings(checks=("test",)), revised=edited)
        return made

    whole = World(PLAN, plays, settings=CHEAP)
    whole.go()
    points = whole.go(settings=Settings(checks=("test",)), revised=edited)
    for point in range(points.reached):
        made = run(point)
        assert made.state.ended is e.RunEnd.NEEDS_HUMAN
        assert made.state.reason == whole.state.reason
        assert made.repository.files(made.state.tip) == whole.repository.files(whole.state.tip)
        assert set(made.state.done) == {"d", "c"}
        assert made.state.stale == ("a",)


def say(made: World, command: str, task: str) -> None:
    """As a person says it to a run that is stopped."""
    facts = spoken(Message(command=command, task=task), made.state, made.clock.now())
    assert facts
    made.journal.append(facts, expected=len(made.events))


def killed_at(plan: Plan, name: str, *, last: bool = False, **more) -> World:
    """A run that died at the first, or the last, place of that name."""
    names = World(plan, PLAYS, **more).go().names
    at = len(names) - names[::-1].index(name) if last else names.index(name) + 1
    made = World(plan, PLAYS, **more)
    made.go(crash_at=at)
    return made


def test_who_begins_anew_settles_no_conflict_and_has_to_change_something():
    made = World(plan_of(A), PLAYS)
    made.go()
    say(made, "reset", "a")
    made.agent.plays = {"a": lambda *_: None}
    made.go(settings=Settings(checks=("test",), max_turns=1))
    assert made.state.tasks["a"].last.onto is None
    assert made.state.ended is e.RunEnd.FAILED
    assert "Nothing was changed" in (made.state.tasks["a"].question or "")


def test_who_begins_anew_has_nothing_of_the_old_workspace():
    """The process that merged it died before it let the workspace go."""
    made = World(plan_of(A, replace(B, depends_on=("a",))), PLAYS)
    made.go()
    made.repository.workspaces["a"] = {"README": "hello", "a": "1"}
    say(made, "retry", "a")
    made.agent.plays = {"a": writes("a", "2")}
    made.go()
    assert made.repository.files(made.state.tip) == {"README": "hello", "a": "2", "b": "1"}


def test_what_comes_back_is_merged_onto_the_tip_of_today():
    """It was withdrawn with its merge built; another was merged meanwhile."""
    made = killed_at(plan_of(A), "merge:after")
    task = made.state.tasks["a"]
    built = made.repository.pins["candidate/1"]
    tree = made.repository.commits[built].tree
    fact = e.MergeBuilt(
        at=made.clock.now(), task="a", candidate=task.candidate or 0, commit=built, tree=tree
    )
    made.journal.append([fact], expected=len(made.events))
    made.go(revised=plan_of(C2, ASKS))  # what is over is not taken up again, and this is not
    assert made.state.done == ("c",)
    made.go(revised=plan_of(A, C2))
    assert made.state.ended is e.RunEnd.COMPLETED
    assert made.repository.files(made.state.tip) == {"README": "hello", "a": "1", "c": "1"}


def test_what_is_withdrawn_when_approved_goes_on_when_it_is_back():
    made = killed_at(plan_of(A), "merge:after")
    assert made.state.tasks["a"].phase is Phase.MERGING
    made.go(revised=plan_of(C2, ASKS))  # what is over is not taken up again, and this is not
    assert made.state.done == ("c",)
    assert made.state.withdrawn["a"].phase is Phase.APPROVED
    made.go(revised=plan_of(A, C2))
    assert made.state.ended is e.RunEnd.COMPLETED
    assert made.repository.files(made.state.tip) == {"README": "hello", "a": "1", "c": "1"}


def test_a_merge_that_git_may_have_made_is_finished_as_what_it_was_judged_for():
    for edited in (plan_of(replace(A, text="other"), C2), plan_of(C2)):
        made = killed_at(plan_of(A), "move_tip:after")
        assert made.repository.tip != made.state.tip
        made.go(revised=edited, settings=Settings(checks=("test", "more")))
        stale = "a" in {task.id for task in edited.tasks}
        ends = e.RunEnd.NEEDS_HUMAN if stale else e.RunEnd.COMPLETED
        assert made.state.ended is ends
        assert made.state.in_tip == (("a", "c") if stale else ("c", "a"))
        assert made.repository.tip == made.state.tip
        assert made.state.is_stale("a") == stale
        assert len(made.agent.reviews) == 2


def test_a_task_asked_for_again_may_be_taken_out_of_the_plan():
    made = world()
    say(made, "retry", "a")
    go_on(made, plan_of(replace(B, depends_on=())))
    assert made.state.ended is e.RunEnd.COMPLETED
    assert made.state.done == ("b",)
    assert list(made.state.withdrawn) == ["a"]


def test_what_stays_though_it_is_gone_waits_for_nothing_that_is_gone_too():
    made = world()
    hard = Task(id="x", title="x", complexity=9)
    made.go(revised=plan_of(hard, replace(A, depends_on=("x",)), replace(B, depends_on=())))
    go_on(made, plan_of(replace(B, depends_on=())))
    assert made.state.ended is e.RunEnd.COMPLETED
    assert made.state.plan.task("a").depends_on == ()


def test_what_a_stale_task_would_have_to_show_holds_nobody_up():
    made = World(plan_of(A, replace(B, depends_on=())), PLAYS, rule=lambda c, _f: c != "unmet")
    made.go(crash_at=killing_after_first_merge())
    assert made.state.done
    merged = made.state.done[0]
    spec = made.state.specs[merged]
    others = [task for task in made.state.plan.tasks if task.id != merged]
    made.go(revised=plan_of(replace(spec, checks=("unmet",)), *others))
    assert [task.id for task in others] == list(made.state.done), "all others are merged"
    assert made.state.ended is e.RunEnd.NEEDS_HUMAN
    assert made.state.is_stale(merged)
    assert "`unmet` fails with exit code 1" in made.state.reason, "but it ran on the tip"


def killing_after_first_merge() -> int:
    whole = World(plan_of(A, replace(B, depends_on=())), PLAYS)
    names = whole.go().names
    return names.index("move_tip:after") + 3


def test_what_is_asked_for_again_while_the_tip_is_looked_at_is_looked_at_too(monkeypatch):
    monkeypatch.setattr(loop, "INBOX_SECONDS", 0)

    class Late(MemoryInbox):
        def take(self):
            if made.runner.state.phase is RunPhase.VERIFYING and not made.state.resumes:
                self.messages = [Message(command="retry", task="a")] * (len(told) < 1)
                told.extend(self.messages)
            return super().take()

    told: list[Message] = []
    stage = Stage(name="1", checks=("smoke",))
    plan = replace(plan_of(replace(A, stage="1")), stages=(stage,))

    def play(n: int, _turn: int, files: dict[str, str]) -> None:
        files["a"] = str(n)

    made = World(plan, {"a": play}, inbox=Late())
    made.go()
    assert told
    assert made.state.ended is e.RunEnd.COMPLETED, made.state.reason
    assert made.repository.files(made.state.tip)["a"] == "2"
    assert len([ev for ev in made.events if isinstance(ev, e.VerificationStarted)]) == 2
