"""A person is present: the run waits for their answer instead of ending."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.events.review import PlayerAnswer
from windlass.core.exchange import Message
from windlass.core.plan import Plan, Stage, Task
from windlass.core.scheduler.people import spoken
from windlass.core.settings import Settings
from windlass.core.state import Phase, RunState, apply
from windlass.core.state.transitions import HELPLESS
from windlass.errors import IllegalEvent
from windlass.ports import Report
from windlass.runner import loop
from windlass.testing.memory import Files
from windlass.views.outcome import Exit, exit_code
from windlass.views.questions import _HEADS, Prompt, Question, prompt_rows, questions
from windlass.views.story import line_of
from worlds import NOON, World, plan_of, writes

COMPLEX = Task(id="a", title="a", complexity=8)
SIMPLE = Task(id="b", title="b")
PLAYS = {id_: writes(id_, "1") for id_ in "ab"}
Reply = Callable[[RunState], Message | str]


@pytest.fixture(autouse=True)
def _heard_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "INBOX_SECONDS", 0)


def attended(world: World, *replies: Reply) -> list[RunState]:
    """Run it with a person who gives one reply each time that nothing else can continue."""
    left, waited = list(replies), list[RunState]()

    def hear(entry: e.Entry, state: RunState) -> None:
        if isinstance(entry.event, e.HelpAwaited):
            waited.append(state)
            said = left.pop(0)(state)
            message = Message(command=said) if isinstance(said, str) else said
            world.inbox.messages.append(message)

    world.attended = True
    world.observers.append(hear)
    world.go()
    world.observers.remove(hear)
    assert left == []
    return waited


def ends(world: World) -> list[e.RunEnd]:
    return [event.status for event in world.events if isinstance(event, e.RunEnded)]


def test_it_waits_only_when_nothing_else_can_continue():  # G8
    world = World(plan_of(COMPLEX, SIMPLE, dialect="feature"), PLAYS)
    go_on = Message(command="approve", task="a", by="Ada")
    [state] = attended(world, lambda _: go_on)
    assert state.tasks["b"].phase is Phase.MERGED
    assert state.awaiting == "a cannot go on without you"
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.state.awaiting == ""
    assert ends(world) == [e.RunEnd.COMPLETED], "it never ended in between"
    [passed] = [event for event in world.events if isinstance(event, e.CheckpointPassed)]
    assert passed.by == "Ada"


def test_without_a_person_it_ends_as_before_also_when_the_one_before_was_attended():
    world = World(plan_of(COMPLEX), PLAYS)
    world.go()
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert not any(isinstance(event, e.HelpAwaited) for event in world.events)

    killed = World(plan_of(COMPLEX), PLAYS)
    attended(killed, lambda _: "stop")
    killed.attended = False
    killed.go()
    assert killed.state.ended is e.RunEnd.NEEDS_HUMAN
    assert not killed.state.attended


@pytest.mark.parametrize(
    ("command", "end", "code"),
    [
        ("stop", e.RunEnd.NEEDS_HUMAN, Exit.NEEDS_HUMAN),
        ("pause", e.RunEnd.PAUSED, Exit.STOPPED),
        ("pause_now", e.RunEnd.PAUSED, Exit.STOPPED),
        ("abort", e.RunEnd.ABORTED, Exit.FAILED),
    ],
)
def test_a_stop_of_a_run_that_only_waits_leaves_the_question(command: str, end, code):
    world = World(plan_of(COMPLEX), PLAYS)
    attended(world, lambda _: command)
    assert (world.state.ended, exit_code(world.state)) == (end, code)
    if command == "stop":
        assert world.state.reason == "a cannot go on without you"


def test_a_red_base_is_accepted_once_and_stays_accepted():
    def red(_command: str, files: Files) -> bool:
        return "b" in files

    world = World(plan_of(SIMPLE), PLAYS, rule=red, settings=Settings(checks=("test",)))
    asked = Message(command="accept_base", by="Ada")
    assert spoken(asked, apply(None, world.first(None, None)), NOON) == ()
    [state] = attended(world, lambda _: asked)
    [question] = questions(state)
    assert question.command_for("go") == "accept_base"
    assert question.command_for("no") is None
    assert "--red-base go" in question.later
    assert world.state.ended is e.RunEnd.COMPLETED
    assert spoken(asked, world.state, NOON) == (), "it is asked no more"
    accepted = next(event for event in world.events if isinstance(event, e.BaseAccepted))
    line = line_of(accepted, world.state)
    assert line is not None
    assert "accepted by Ada" in line.text
    world.attended = False
    resumed = apply(world.state, world.first(world.state, None))
    assert resumed.red_base
    assert not resumed.base_is_refused, "also in the next process"


def test_a_stage_that_did_not_verify_is_asked_about():
    stages = (Stage(name="1", checks=("after",)), Stage(name="2"))
    tasks = (Task(id="a", title="a", stage="1"), Task(id="b", title="b", stage="2"))
    plan: Plan = replace(plan_of(*tasks, dialect="feature"), stages=stages)
    world = World(plan, PLAYS, rule=lambda command, _files: command != "after")
    seen = list[Question]()

    def approve(state: RunState) -> Message:
        seen.extend(questions(state))
        return Message(command="approve", task="1")

    attended(world, approve, lambda _: "stop")
    assert "did not verify" in seen[0].head
    assert (seen[0].command_for("r"), seen[0].command_for("approve")) == ("retry", "approve")


def test_every_phase_that_waits_for_a_person_has_its_question():
    assert _HEADS.keys() == HELPLESS
    world = World(plan_of(COMPLEX), PLAYS)
    attended(world, lambda _: "stop")
    state = apply(world.state, e.RunResumed(at=NOON, settings=world.settings, sandbox="none"))
    for phase in HELPLESS:
        task = replace(state.tasks["a"], phase=phase, question="why?")
        task = replace(task, attempts=world.state.tasks["a"].attempts) if task.attempts else task
        if phase is Phase.TAKEN:
            continue
        [asked] = questions(replace(state, tasks={"a": task}))
        assert asked.subject == "a"
        assert asked.command_for("approve") is not None
        assert "plan" not in asked.choice


def test_nothing_is_asked_of_a_run_that_works_stops_or_has_ended():
    world = World(plan_of(COMPLEX), PLAYS)
    [state] = attended(world, lambda _: "stop")
    waits = next(event for event in world.events if isinstance(event, e.HelpAwaited))
    line = line_of(waits, state)
    assert line is not None
    assert "nothing else can continue: a cannot go on without you" in line.text
    assert questions(world.state) == ()
    stopping = apply(state, e.StopRequested(at=NOON, by="SIGINT"))
    assert stopping.awaiting, "it still needs the person"
    assert questions(stopping) == ()
    task = replace(state.tasks["a"], phase=Phase.PLAYING)
    assert questions(replace(state, tasks={"a": task})) == ()


def test_a_person_who_took_a_task_can_give_it_back():
    world = World(plan_of(SIMPLE), PLAYS)
    world.inbox.messages.append(Message(command="take", task="b", text="Ada"))
    seen = list[Question]()

    def look(state: RunState) -> str:
        seen.extend(questions(state))
        return "stop"

    attended(world, look)
    assert seen[0].text == "Ada works on it"
    assert seen[0].command_for("give") == "give"


def asked(text: str = "tabs or spaces?") -> Question:
    return Question(subject="a", head="a asks you", text=text, later="l", whole="windlass status a")


def rows(prompt: Prompt, width: int = 60, height: int = 12) -> list[str]:
    shown = [row.text for row in prompt_rows(prompt, width=width, height=height)]
    assert all(len(row) <= width for row in shown)
    return shown


class TestPrompt:
    def test_it_shows_the_question_the_text_and_the_keys(self):
        assert rows(Prompt(question=asked(), typed="spa", more=2)) == [
            " ? a asks you (+2 more)",
            "   tabs or spaces?",
            " > spa_",
            "   type your answer, then Enter · Esc leaves it for later",
        ]

    def test_a_long_question_is_folded_and_the_rest_is_counted(self):
        shown = rows(Prompt(question=asked("word " * 200), alone=True))
        assert len(shown) == 9
        assert "more lines: windlass status a" in shown[-3]
        assert "exit 3" in shown[-1]

    def test_the_end_of_a_long_answer_is_shown(self):
        assert rows(Prompt(question=asked(), typed="x" * 100 + "end"))[-2].endswith("xend_")
        wide = rows(Prompt(question=asked(), typed="字" * 100), width=30)[-2]
        assert wide.endswith("字_")

    def test_a_choice_can_be_skipped_and_an_answer_is_any_text(self):
        choice = replace(asked(), words=(("approve", "approve"),))
        assert choice.is_left("Skip")
        assert not asked().is_left("skip")
        assert asked().is_left("")
        assert "skip or Esc leaves" in rows(Prompt(question=choice))[-1]

    def test_a_note_replaces_the_keys(self):
        assert rows(Prompt(question=asked(), note="type a or b"))[-1] == "   type a or b"

    def test_where_there_is_no_room_nothing_is_shown(self):
        assert rows(Prompt(question=asked()), height=3) == []
        assert rows(Prompt(question=asked()), width=20) == []

    def test_no_text_acts_on_the_terminal(self):
        shown = rows(Prompt(question=asked("a\x1b[2Jb\r\u202ec\n\n\x07d")))
        assert not any(ord(char) < 32 or char == "\u202e" for row in shown for char in row)


def redone() -> World:
    """A merged task, and a person who wants it again."""
    world = World(plan_of(SIMPLE), dict(PLAYS))
    world.go()
    say(world, "retry")
    return world


def say(world: World, command: str, text: str = "", subject: str = "b") -> None:
    message = Message(command=command, task=subject, text=text, by="Ada")
    facts = spoken(message, world.state, world.clock.now())
    assert facts
    world.journal.append(facts, expected=len(world.events))


class TestRedoUndone:
    def test_before_it_has_begun_nothing_is_left_of_it(self):
        world = World(plan_of(SIMPLE), PLAYS)
        world.go()
        before = world.state
        say(world, "retry")
        assert world.state.ended is e.RunEnd.STOPPED
        undo = line_of(world.events[-1], world.state)
        assert undo is not None
        assert undo.details == ("undo it: windlass retry p:b --undo",)
        say(world, "retry", "undo")
        after = world.state.tasks["b"]
        assert (world.state.ended, after.phase) == (e.RunEnd.COMPLETED, Phase.MERGED)
        assert after.merge_commit == before.tasks["b"].merge_commit
        assert after.last == before.tasks["b"].last

    def test_work_on_it_does_not_count_and_its_numbers_are_not_used_again(self):
        world = redone()
        merged = world.state.tasks["b"].redoes
        assert merged is not None
        world.agent.plays = {
            "b": lambda *_: Report(answer=PlayerAnswer(summary="", question="which?"))
        }
        world.go()
        assert world.state.tasks["b"].phase is Phase.ASKED
        say(world, "retry", "undo")
        task = world.state.tasks["b"]
        assert (task.phase, task.merge_commit, task.undone) == (Phase.MERGED, merged.commit, 1)
        assert (task.last.n, len(task.counted), len(task.attempts)) == (1, 1, 2)
        world.go()
        assert world.state.ended is e.RunEnd.COMPLETED, world.state.reason
        say(world, "retry")
        world.agent.plays = {"b": writes("b", "3")}
        world.go()
        assert world.state.ended is e.RunEnd.COMPLETED
        assert [attempt.n for attempt in world.state.tasks["b"].attempts] == [1, 2, 3]
        assert world.repository.files(world.state.tip)["b"] == "3"

    def test_it_cannot_be_undone_once_it_is_merged_or_where_there_is_none(self):
        world = redone()
        world.agent.plays = {"b": writes("b", "2")}
        world.go()
        message = Message(command="retry", task="b", text="undo")
        assert spoken(message, world.state, NOON) == ()
        pending = apply(world.state, e.TaskReset(at=NOON, task="b", by="me"))
        with pytest.raises(IllegalEvent, match="is not being redone"):
            apply(pending, e.RedoUndone(at=NOON, task="b", by="me"))

    def test_all_of_a_stage_or_nothing(self):
        stages = (Stage(name="1"), Stage(name="2"))
        tasks = (Task(id="a", title="a", stage="1"), Task(id="b", title="b", stage="2"))
        plan = replace(plan_of(*tasks, dialect="feature"), stages=stages)
        world = World(plan, PLAYS)
        world.go()
        say(world, "retry", subject="1")
        assert world.state.tasks["a"].phase is Phase.PENDING
        playing = replace(world.state.tasks["a"], phase=Phase.PLAYING)
        busy = replace(world.state, tasks={**world.state.tasks, "a": playing})
        message = Message(command="retry", task="1", text="undo")
        assert spoken(message, busy, NOON) == ()
        say(world, "retry", "undo", subject="1")
        assert world.state.tasks["a"].phase is Phase.MERGED
