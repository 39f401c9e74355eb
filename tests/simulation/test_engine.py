"""The engine as any driver sees it: facts in, a batch and intents out, a state to hand on."""

from datetime import timedelta
from typing import get_args

import pytest

from simulation.anything import Anything
from windlass.core import engine, intents
from windlass.core.engine import UNSEEN, note, record, stored
from windlass.core.events import model as e
from windlass.core.plan import Task
from windlass.core.state import RunState, codec
from windlass.errors import JournalError
from windlass.runner import loop
from worlds import NOON, World, plan_of, writes

ANNOUNCED = {
    e.BaselineStarted: intents.CheckBase,
    e.PlayerStarted: intents.Play,
    e.SnapshotStarted: intents.SaveWork,
    e.ChecksStarted: intents.RunChecks,
    e.CoachStarted: intents.Review,
    e.WaitStarted: intents.WaitUntil,
    e.MergeStarted: intents.BuildMerge,
    e.TipMoveStarted: intents.MoveTip,
    e.TaskMerged: intents.ReleaseWorkspace,
    e.MergeStands: intents.ReleaseWorkspace,
    e.TaskTaken: intents.LendWorkspace,
    e.VerificationStarted: intents.VerifyTip,
    e.BaseLookStarted: intents.LookAtBranch,
    e.BaseMergeStarted: intents.BuildBaseMerge,
    e.BranchMoveStarted: intents.MoveBranch,
}


@pytest.fixture(autouse=True)
def always_listening(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loop, "INBOX_SECONDS", 0)


def done() -> World:
    tasks = (Task(id="a", title="A"), Task(id="b", title="B", depends_on=("a",)))
    world = World(plan_of(*tasks), {"a": writes("a", "1"), "b": writes("b", "1")})
    world.go()
    return world


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_a_state_that_is_handed_on_decides_the_same(first: int):
    """Whatever happens in a run: a state that was encoded gives the same batch and intents."""
    for seed in range(first, first + 10):
        anything = Anything(seed)
        anything.go()
        state: RunState | None = None
        for event in anything.world.events:
            state = engine.apply(state, event)
            again = codec.decode(codec.encode(state))
            assert again == state, seed
            now = event.at + timedelta(seconds=1)
            assert record(again, (), now, plan=None) == record(state, (), now, plan=None), seed
            assert intents.intents_of(again, [event]) == intents.intents_of(state, [event]), seed


def test_bytes_that_are_no_state_are_refused():
    with pytest.raises(JournalError, match="a state that cannot be read"):
        codec.decode(b"no")
    newer = codec.encode(done().state).replace(b"\xa6schema\x01", b"\xa6schema\x02")
    with pytest.raises(JournalError, match="a state of version 2; this Windlass reads version 1"):
        codec.decode(newer)


def test_each_fact_that_announces_something_gives_one_intent():
    """Seen over many runs: every intent there is, and no fact gives more or other than its own."""
    seen: set[type] = set()
    for seed in range(40):
        anything = Anything(seed)
        anything.go()
        state: RunState | None = None
        for event in anything.world.events:
            state = engine.apply(state, event)
            found = intents.intents_of(state, [event])
            assert [type(each) for each in found] == (
                [ANNOUNCED[type(event)]] if type(event) in ANNOUNCED else []
            )
            seen |= {type(each) for each in found}
    missing = set(get_args(intents.Intent)) - seen - {intents.LookAtPlan}
    landing = {intents.LookAtBranch, intents.BuildBaseMerge, intents.Squash, intents.MoveBranch}
    assert missing <= landing, "runs that land are in test_landing"
    started = {fact for fact in get_args(e.Event) if fact.__name__.endswith("Started")}
    assert started - set(ANNOUNCED) == {e.RunStarted}


def test_nothing_follows_from_a_state_that_waits():
    state = done().state
    step = record(state, (), NOON)
    assert (step.events, step.states, step.intents) == ((), (), ())
    assert record(None, (), NOON).events == ()


def test_a_run_that_is_about_to_be_complete_looks_at_its_plan_first():
    """The engine reads no file: it asks for the plan, and goes on once it has it."""  # B7
    world = done()
    facts = world.events
    last = next(i for i, fact in enumerate(facts) if isinstance(fact, e.RunEnded))
    state = engine.replay(facts[:last])
    asked = record(state, (), NOON, plan=UNSEEN)
    assert (asked.events, asked.intents) == ((), (intents.LookAtPlan(),))
    ended = record(state, (), NOON, plan=world.plan)
    assert [type(fact) for fact in ended.events] == [e.RunEnded]
    unreadable = record(state, (), NOON, plan="it cannot be read")
    assert [type(fact) for fact in unreadable.events] == [e.StopRequested, e.RunEnded]


def test_what_a_store_took_out_is_not_true():
    """A journal redacts; state and intents are those of what it stored."""
    state = engine.replay(done().events[:1])
    assert state is not None
    step = record(state, (e.StopRequested(at=NOON, by="sk-secret"),), NOON)
    assert stored(state, step, step.events) is step
    clean = [e.StopRequested(at=NOON, by="[redacted]"), *step.events[1:]]
    after = stored(state, step, clean)
    assert after.states[-1].stopping == "[redacted]"
    assert after.events == tuple(clean)


def test_what_is_said_of_a_run_at_rest_begins_nothing():
    state = done().state
    step = note(state, (e.TaskReopened(at=NOON, task="b", by="a person"),))
    assert (len(step.states), step.intents) == (1, ())
    assert step.states[-1].ended is e.RunEnd.STOPPED


def test_the_facts_of_the_last_run_are_those_since_it_began():
    facts = done().events
    assert engine.last_run([*facts, *facts]) == facts
