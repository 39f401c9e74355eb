"""A run rests and goes on: pause, stop, abort; a task begins anew, or a person takes it."""

import anyio
import pytest
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.events.review import PlayerAnswer
from windlass.core.exchange import Message
from windlass.core.intents import lent_workspace
from windlass.core.plan import Task
from windlass.core.scheduler.people import spoken
from windlass.core.settings import Settings
from windlass.core.state import Phase, RunState, apply, fold
from windlass.errors import IllegalEvent
from windlass.ports import Report
from windlass.runner import lend, loop
from windlass.testing.memory import MemoryInbox
from windlass.views.steps import refusal
from windlass.views.story import line_of
from worlds import NOON, World, plan_of, writes

A = Task(id="a", title="a")
B = Task(id="b", title="b", depends_on=("a",))
C = Task(id="c", title="c")
PLAYS = {id_: writes(id_, "1") for id_ in "abc"}


class Later(MemoryInbox):
    """Somebody who speaks at the n-th look into the inbox."""

    def __init__(self, n: int, *messages: Message) -> None:
        super().__init__()
        self.n = n
        self.later = list(messages)

    def take(self):
        self.n -= 1
        if self.n <= 0:
            self.messages += self.later
            self.later = []
        return super().take()


def say(world: World, command: str, task: str, text: str = "") -> None:
    message = Message(command=command, task=task, text=text)
    facts = spoken(message, world.state, world.clock.now())
    assert facts, (command, world.state.tasks[task].phase)
    world.journal.append(facts, expected=len(world.events))


def can_say(world: World, command: str, task: str, text: str = "") -> bool:
    message = Message(command=command, task=task, text=text)
    return bool(spoken(message, world.state, world.clock.now()))


def test_a_pause_lets_turns_come_to_their_end(monkeypatch):  # S9
    monkeypatch.setattr(loop, "INBOX_SECONDS", 0)
    seen: set[str] = set()
    for n in range(1, 40):
        world = World(plan_of(A, B, C), PLAYS, inbox=Later(n, Message(command="pause")))
        world.go()
        state = world.state
        if state.ended is e.RunEnd.COMPLETED:
            continue
        assert state.ended is e.RunEnd.PAUSED
        assert state.reason == "paused by windlass pause"
        phases = {task.phase for task in state.tasks.values()}
        assert phases <= {Phase.PENDING, Phase.MERGED, Phase.RETURNED, Phase.FAILED}
        seen |= {phase.value for phase in phases}
        calls = list(world.agent.calls)
        world.inbox.messages.clear()
        world.go()
        assert world.state.ended is e.RunEnd.COMPLETED
        assert world.agent.calls[: len(calls)] == calls
        assert len(world.agent.calls) == 3, "nothing was played twice"
    assert {"pending", "merged"} <= seen


def test_a_run_that_may_start_nobody_does_not_wait_for_a_provider():  # B6
    def limited(n: int, _turn: int, files: dict[str, str]) -> Report | None:
        files["a"] = str(n)
        later = world.clock.time.replace(hour=23)
        failed = Report(failure=e.Failure.USAGE_LIMIT, message="later", retry_at=later)
        return failed if n == 1 else None

    def refused(n: int, _turn: int, files: dict[str, str]) -> Report | None:
        files["c"] = str(n)
        return Report(failure=e.Failure.AUTH, message="no") if n == 1 else None

    plan = plan_of(A, replace(C, model="another"))
    world = World(plan, {"a": limited, "c": refused})
    world.go()
    assert world.state.ended is e.RunEnd.LIMIT
    assert world.state.reason == "auth: no"
    assert world.state.tasks["a"].phase is Phase.WAITING
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED


def test_a_pause_does_not_wait_for_a_provider(monkeypatch):
    monkeypatch.setattr(loop, "INBOX_SECONDS", 0)

    def limited(n: int, _turn: int, files: dict[str, str]) -> Report | None:
        files["a"] = str(n)
        later = world.clock.time.replace(year=2027) if n == 1 else None
        failure = e.Failure.USAGE_LIMIT if n == 1 else None
        return Report(failure=failure, message="limit", retry_at=later) if n == 1 else None

    world = World(plan_of(A), {"a": limited}, inbox=MemoryInbox())

    async def never(_moment) -> None:
        world.inbox.messages.append(Message(command="pause"))
        await loop.anyio.sleep_forever()

    world.clock.sleep_until = never
    world.go()
    assert world.state.ended is e.RunEnd.PAUSED
    assert world.state.tasks["a"].phase is Phase.WAITING


def test_who_is_in_a_hurry_may_stop_what_is_pausing(monkeypatch):
    monkeypatch.setattr(loop, "INBOX_SECONDS", 0)
    for first, then, end in (
        ("pause", "pause_now", e.RunEnd.PAUSED),
        ("pause", "stop", e.RunEnd.STOPPED),
        ("pause", "abort", e.RunEnd.ABORTED),
        ("stop", "pause", e.RunEnd.STOPPED),
        ("pause", "pause", e.RunEnd.PAUSED),
    ):
        words = (Message(command=first), Message(command=then))
        world = World(plan_of(A, B, C), PLAYS, inbox=Later(2, *words))
        world.go()
        assert world.state.ended is end, (first, then)


def test_an_aborted_run_is_over():
    world = World(plan_of(A, B), PLAYS, inbox=MemoryInbox("abort"))
    world.go()
    assert world.state.ended is e.RunEnd.ABORTED
    assert world.state.reason == "aborted by windlass abort"


def abandoned(max_turns: int = 2) -> World:
    """A run whose task was given up."""
    world = World(
        plan_of(A),
        {"a": writes("a", "RED")},
        rule=lambda _c, files: files.get("a") != "RED",
        settings=Settings(checks=("test",), max_turns=max_turns),
    )
    world.go()
    assert world.state.tasks["a"].phase is Phase.ABANDONED
    return world


def test_a_task_that_is_reset_begins_anew_from_the_tip_and_nothing_is_lost():  # X8
    world = abandoned()
    before = world.state.tasks["a"]
    commits = {attempt.commit for attempt in before.attempts}
    say(world, "reset", "a")
    task = world.state.tasks["a"]
    assert task.phase is Phase.PENDING
    assert task.attempts == before.attempts, "numbers go on: pins are written once"
    world.agent.plays = {"a": writes("a", "GREEN")}
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    last = world.state.tasks["a"].last
    assert (last.n, last.start) == (len(before.attempts) + 1, world.state.base)
    assert [task for task, _ in world.repository.kept_aside] == ["a"]
    assert commits <= set(world.repository.pins.values())
    told = [line_of(event, world.state) for event in world.events]
    assert "RESET" in [line.word for line in told if line is not None]


def test_who_begins_anew_works_on_the_tip_wherever_the_first_try_died():  # X8 B4
    def plays(n: int, _turn: int, files: dict[str, str]) -> None:
        files["a"] = files.get("a", "") + str(n)

    for crash in range(1, 100):
        world = World(
            plan_of(A, C, dialect="feature"),
            {"a": plays, "c": writes("c", "1")},
            rule=lambda _command, files: files.get("a") != "1",
            settings=Settings(checks=("test",), max_turns=1),
        )
        world.go()
        assert [task.phase for task in world.state.tasks.values()] == [
            Phase.ABANDONED,
            Phase.MERGED,
        ]
        say(world, "reset", "a")
        if world.go(crash_at=crash).reached < crash:
            break
        world.go()
        files = world.repository.files(world.state.tip)
        assert files["c"] == "1", (crash, "nobody else's work is undone")
        assert not files["a"].startswith("1"), (crash, "nor is what was reset")
        assert len(world.repository.kept_aside) == 1
    assert crash > 20


def test_a_reset_can_be_undone_until_somebody_has_begun():  # X8
    world = abandoned()
    before = world.state.tasks["a"]
    assert not can_say(world, "reset", "a", "undo"), "there is nothing to undo"
    say(world, "reset", "a")
    say(world, "reset", "a", "undo")
    assert world.state.tasks["a"] == before
    undone = line_of(world.events[-1], world.state)
    assert undone is not None
    assert "undone" in undone.text
    again = apply(world.state, e.TaskReset(at=NOON, task="a", by="me"))
    begun = replace(again, tasks={"a": replace(again.tasks["a"], before_reset=None)})
    with pytest.raises(IllegalEvent, match="was not reset"):
        apply(begun, e.TaskResetUndone(at=NOON, task="a", by="me"))
    say(world, "reset", "a")
    world.agent.plays = {"a": writes("a", "GREEN")}
    world.go()
    assert not can_say(world, "reset", "a", "undo")


def test_a_run_goes_back_to_its_end_once_every_reset_of_it_is_undone():  # X8
    def play(n: int, _turn: int, files: dict[str, str]) -> None:
        files["a"] = str(n)

    world = World(plan_of(A, B, C), {**PLAYS, "a": play})
    world.go()
    whole = world.state
    assert whole.ended is e.RunEnd.COMPLETED
    say(world, "reset", "a")
    say(world, "reset", "c")
    assert world.state.reason == "c is to be redone"
    say(world, "reset", "c", "undo")
    assert (world.state.ended, world.state.reason) == (
        e.RunEnd.STOPPED,
        "a is to be redone",
    )
    say(world, "reset", "a", "undo")
    assert replace(world.state, at=whole.at) == whole
    say(world, "reset", "a")
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.state.reopening is None
    say(world, "reset", "c")
    say(world, "retry", "a")
    say(world, "reset", "c", "undo")
    assert world.state.ended is e.RunEnd.STOPPED, "the other is still to be done"


def test_a_reset_that_is_undone_while_the_run_lands_leaves_no_trace():  # X8 G7
    world = World(plan_of(A, C), PLAYS)
    world.go()
    state = apply(world.state, e.LandRequested(at=NOON, by="me"))
    before = state.landing
    assert before is not None
    state = apply(state, e.TaskReset(at=NOON, task="a", by="me"))
    assert state.landing is not None
    assert state.landing.then is e.RunEnd.STOPPED
    state = apply(state, e.TaskResetUndone(at=NOON, task="a", by="me"))
    assert state.landing == before


def test_an_approved_task_that_is_reset_leaves_the_queue_and_comes_back():
    names = World(plan_of(A), PLAYS).go().names
    world = World(plan_of(A), PLAYS)
    world.go(crash_at=names.index("merge:before") + 1)
    resumed = e.RunResumed(at=world.clock.now(), settings=world.settings, sandbox="none")
    world.journal.append([resumed], expected=len(world.events))
    assert world.state.queue == ("a",)
    say(world, "reset", "a")
    assert world.state.queue == ()
    say(world, "reset", "a", "undo")
    assert world.state.queue == ("a",)
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert len(world.agent.calls) == 1


def test_what_was_approved_for_another_meaning_is_judged_again_once_the_reset_is_undone():  # B7
    names = World(plan_of(A), PLAYS).go().names
    world = World(plan_of(A), PLAYS)
    world.go(crash_at=names.index("merge:before") + 1)
    resumed = e.RunResumed(at=world.clock.now(), settings=world.settings, sandbox="none")
    world.journal.append([resumed], expected=len(world.events))
    say(world, "reset", "a")
    other = plan_of(replace(A, text="something else"))
    edited = e.PlanRevised(at=world.clock.now(), plan=other)
    world.journal.append([edited], expected=len(world.events))
    say(world, "reset", "a", "undo")
    assert world.state.queue == ()
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert len(world.agent.calls) == 1, "the work is there"
    assert len(world.agent.reviews) == 2, "and is reviewed as what it is for now"


def test_a_merged_task_may_be_reset_too():
    world = World(plan_of(A), PLAYS)
    world.go()
    say(world, "reset", "a")
    assert world.state.ended is e.RunEnd.STOPPED
    world.agent.plays = {"a": writes("a", "2")}
    world.go()
    assert world.repository.files(world.state.tip)["a"] == "2"


def test_a_person_may_take_what_waits_for_their_word_to_start():  # B8 G8
    world = World(plan_of(replace(A, complexity=9)), PLAYS)
    world.go()
    assert world.state.tasks["a"].phase is Phase.HELP_TO_START
    say(world, "take", "a", "Ada")
    task = world.state.tasks["a"]
    anyio.run(lend, world.repository, lent_workspace(task))
    world.repository.workspaces["a"]["a"] = "by hand"
    say(world, "give", "a")
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.agent.calls == []


def test_a_person_takes_a_task_and_hands_it_back():  # B8
    world = abandoned()
    say(world, "take", "a", "Ada")
    task = world.state.tasks["a"]
    assert (task.phase, task.last.by, task.status) == (Phase.TAKEN, "Ada", "needs_human")
    world.go()
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN, "nobody else works on it meanwhile"
    assert not can_say(world, "take", "a")
    world.repository.workspaces["a"]["a"] = "by hand"
    world.repository.prepared["a"] = (task.last.n, task.last.start, None)
    say(world, "give", "a", "mended it")
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.repository.files(world.state.tip)["a"] == "by hand"
    assert world.agent.reviews, "a person's work is reviewed like any"
    told = [line_of(event, world.state) for event in world.events]
    assert {"TAKEN", "GIVEN"} <= {line.word for line in told if line is not None}


def test_a_live_run_lends_a_workspace_to_the_person(monkeypatch):
    monkeypatch.setattr(loop, "INBOX_SECONDS", 0)
    first = Message(command="take", task="b", text="Ada")
    world = World(plan_of(A, replace(B, depends_on=()), C), PLAYS, inbox=MemoryInbox(first))
    world.settings = Settings(checks=("test",), agents=1)
    world.go()
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert set(world.state.done) == {"a", "c"}
    assert "b" in world.repository.workspaces
    assert [task for task, _ in world.agent.calls] == ["a", "c"]


def test_what_waits_for_others_cannot_be_taken_and_nor_can_what_is_done():
    world = World(plan_of(A, B), PLAYS, inbox=MemoryInbox("stop"))
    world.go()
    assert not can_say(world, "take", "b")
    assert not can_say(world, "give", "b")
    assert not can_say(world, "give", "a")
    world.inbox.messages.clear()
    world.go()
    assert not can_say(world, "take", "a")


def test_the_scenario_belongs_to_nobody():
    plan = replace(plan_of(A), e2e="try it")
    settings = Settings(checks=("test",), e2e=Settings().e2e.__class__(run=True))
    world = World(plan, PLAYS, settings=settings)
    world.go()
    assert not can_say(world, "reset", "e2e")
    assert not can_say(world, "take", "e2e")


def test_whatever_cannot_be_said_is_refused_with_its_reason():  # B8 X8
    scenario = Task(id="e2e", title="try it", scenario=True)
    world = World(plan_of(A, B, scenario), {**PLAYS, "e2e": PLAYS["a"]})
    world.go()
    events = world.events

    def until(kind: type[e.Event]) -> RunState:
        """As it was when that had first happened to the first task."""
        at = next(i for i, ev in enumerate(events, 1) if isinstance(ev, kind) and ev.task == "a")
        state = fold(events[:at])
        assert state is not None
        return state

    playing, nothing = until(e.PlayerStarted), "only merged or abandoned tasks can be retried"
    for state, command, task, why in (
        (playing, "take", "a", "work on it is under way"),
        (playing, "take", "b", "it needs a, not merged yet"),
        (playing, "take", "e2e", "it is the plan's E2E scenario, which runs on the merged work"),
        (until(e.PlayerFinished), "take", "a", "its turn is not over, it is in_progress"),
        (world.state, "take", "a", "it is merged"),
        (playing, "reset", "a", "work on it is under way"),
        (playing, "reset", "b", "no work was done on it yet, it is pending"),
        (world.state, "reset undo", "a", "it was not reset, or has started since"),
        (playing, "retry", "b", f"{nothing}, it is pending"),
        (until(e.SnapshotTaken), "retry", "a", f"{nothing}, it is verifying"),
        (playing, "give", "a", "it is not taken, it is in_progress"),
        (playing, "give", "b", "it is not taken, it is pending"),
        (playing, "give", "e2e", "it is not taken, it is pending"),
        (fold(events[:1]), "give", "a", "it is not taken, it is pending"),
        (world.state, "give", "a", "it is not taken, it is completed"),
        (playing, "approve", "a", "it needs no approval, it is in_progress"),
        (playing, "answer", "a", "it asks no question, it is in_progress"),
    ):
        name, _, text = command.partition(" ")
        assert state is not None
        assert not spoken(Message(command=name, task=task, text=text), state, NOON)
        said, cure = refusal(name, state, task, undo=text == "undo")
        assert said.startswith(f"task {task!r} cannot be ")
        assert said.endswith(f": {why}")
        assert cure
        _, _, other = cure.partition("windlass ")
        if other.endswith(f":{task}"):  # a cure that is a command is not refused in its turn
            assert spoken(Message(command=other.split()[0], task=task), state, NOON)


def test_nothing_that_is_said_wakes_a_run_that_was_given_up():  # S3
    world = World(plan_of(A, B, C), PLAYS)
    world.go()
    assert can_say(world, "reset", "a")
    for end in (e.RunEnd.ABORTED, e.RunEnd.ABANDONED):
        state = apply(world.state, e.RunEnded(at=NOON, status=end))
        for command in ("reset", "retry", "take", "give", "approve", "answer"):
            assert not spoken(Message(command=command, task="a", text="x"), state, NOON)


@pytest.mark.parametrize("command", ["stop", "pause", "pause_now", "abort"])
def test_a_word_to_rest_is_for_the_process_that_lived_when_it_was_said(command: str):  # S9
    world = World(plan_of(A, B), PLAYS)
    world.inbox.messages.append(Message(command=command, run="another", at=NOON))
    world.go(crash_at=7)
    assert world.state.ended is None
    world.inbox.messages.append(Message(command=command, run="r1", at=world.clock.now()))
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.inbox.messages == []


def test_what_is_said_to_another_run_is_not_heard_by_this_one():  # K5
    world = World(plan_of(A, B), PLAYS, inbox=MemoryInbox(Message(command="stop", run="another")))
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.inbox.messages == []


def test_what_is_said_as_a_run_ends_waits_for_whoever_takes_it_up(monkeypatch):  # K5
    monkeypatch.setattr(loop, "INBOX_SECONDS", 0.0)

    def play(n: int, _turn: int, files: dict[str, str]) -> Report:
        files["a"] = str(n)
        question = "Which port?" if n == 1 else None
        return Report(answer=PlayerAnswer(summary="s", question=question))

    world = World(plan_of(A, B), {**PLAYS, "a": play})
    answer = Message(command="answer", task="a", text="8080", run="r1")

    def at_the_end(entry: e.Entry, _state: RunState) -> None:
        if isinstance(entry.event, e.RunEnded):
            world.inbox.messages.append(answer)

    world.observers.append(at_the_end)
    world.go()
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert world.inbox.messages == [answer], "nobody heard it, and nobody took it away"
    world.observers.clear()
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
