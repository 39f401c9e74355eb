"""Killed anywhere, its journal lost: restored from its mirror, a run ends as it would have."""
# B4 X10

from collections import Counter

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crash_worlds import no_red_and_no_markers, outcome, play_of, unbroken, worlds
from memory_recovery import recover
from simulation.forgetful import Forgetful, Historian
from windlass.core.events import model as e
from windlass.core.exchange import Message
from windlass.core.intents import lent_workspace
from windlass.core.plan import Task
from windlass.core.scheduler.people import spoken
from windlass.core.state import Phase
from windlass.runner import lend, loop
from worlds import World, plan_of

CHUNK = 25
LOST = st.integers(0, 150)
"""Records that are missing at the end of a mirror, up to all of them."""


def assert_sound(world: World, merged_before: set[str], calls_before: int) -> None:
    state, repository = world.state, world.repository
    assert state.ended is e.RunEnd.COMPLETED, state.reason
    assert repository.tip == state.tip
    ancestry = set(repository.ancestry(state.tip))
    snapshots = [task.last.commit for task in state.tasks.values()]
    assert ancestry.issuperset(snapshots), "what was approved is in the tip"
    assert merges_in(world) == dict.fromkeys(state.tasks, 1), "each task is merged exactly once"
    assert len(world.agent.calls) == len(set(world.agent.calls)), "no number is used twice"
    redone = {task for task, _ in world.agent.calls[calls_before:]} & merged_before
    assert not redone, "nothing merged is done again"


def assert_numbers_go_on(world: World) -> None:
    """Pins are written once: whatever comes next has a number that none has."""
    for name in (pin.split("/") for pin in world.repository.pins):
        if name[0] == "candidate":
            assert world.state.candidates >= int(name[1])
        elif name[0] == "task":
            assert len(world.state.tasks[name[1]].attempts) >= int(name[2])


def merges_in(world: World) -> Counter[str]:
    """How often the tip has a merge of each task."""
    ancestry = set(world.repository.ancestry(world.repository.tip))
    return Counter(
        commit.message.split()[1]
        for name, commit in world.repository.commits.items()
        if name in ancestry and commit.message.startswith("merge ")
    )


def merged(world: World) -> set[str]:
    return {task.id for task in world.state.tasks.values() if task.phase is Phase.MERGED}


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(make=worlds(), data=st.data())
def test_a_run_is_recovered_from_any_point(make, data: st.DataObject):
    world, points = unbroken(make)
    expected = outcome(world)
    for at in data.draw(st.sets(st.integers(1, points), min_size=1, max_size=8)):
        crashed = make()
        crashed.go(crash_at=at)
        before, calls = merged(crashed) if crashed.events else set(), len(crashed.agent.calls)
        was = list(crashed.journal.storage)
        beyond = recover(crashed)
        now = crashed.journal.storage
        assert was[: len(now)] == now or not crashed.repository.mirror.stored
        assert not beyond, "a pin is written with the mirror of its intent: nothing is beyond it"
        assert merges_in(crashed).keys() >= before
        assert_numbers_go_on(crashed)
        crashed.go()
        assert outcome(crashed)[0] == expected[0]
        assert outcome(crashed)[2] == expected[2], f"crashed at {at}"
        assert_sound(crashed, before, calls)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(make=worlds(), data=st.data())
def test_a_mirror_that_ends_anywhere_is_enough_with_the_pins_that_are_newer(
    make, data: st.DataObject
):
    """As where its ref was put back, or a part of it is lost; or where there never was one."""
    world, points = unbroken(make)
    expected = outcome(world)
    crashed = make()
    crashed.go(crash_at=data.draw(st.integers(1, points)))
    before, calls = merged(crashed) if crashed.events else set(), len(crashed.agent.calls)
    was = list(crashed.repository.mirror.stored)
    beyond = recover(crashed, lost=data.draw(LOST))
    kept = crashed.repository.mirror.stored
    assert crashed.journal.storage[: len(kept)] == kept == was[: len(kept)], "a prefix"
    assert crashed.state.spent.known or beyond, "what is not known any more is said"
    assert_numbers_go_on(crashed)
    crashed.go()
    assert outcome(crashed)[0] == expected[0]
    assert outcome(crashed)[2] == expected[2]
    assert_sound(crashed, before, calls)


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(make=worlds())
def test_a_run_that_came_to_its_end_is_restored_byte_for_byte(make):
    world, _ = unbroken(make)
    was, state = list(world.journal.storage), world.state
    assert recover(world) == 0
    assert world.journal.storage == was
    assert world.state == state, "money included"


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(make=worlds(), data=st.data())
def test_pins_that_are_gone_too_cost_work_but_never_the_run(make, data: st.DataObject):
    _, points = unbroken(make)
    world = make()
    world.go(crash_at=data.draw(st.integers(1, points)))
    before = merged(world) if world.events else set()
    pins = world.repository.pins
    for name in data.draw(st.lists(st.sampled_from(sorted(pins)))) if pins else ():
        pins.pop(name, None)
    recover(world, lost=data.draw(LOST))
    assert merges_in(world).keys() >= before
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED, world.state.reason
    assert world.repository.tip == world.state.tip
    merges = merges_in(world)
    assert merges == dict.fromkeys(world.state.tasks, 1), "each task is merged exactly once"


@pytest.mark.parametrize("gone", ["task/a/1/snapshot", "task/a/2/turn-2", "task/a/2/start"])
def test_a_returned_turn_is_not_played_again_where_a_pin_of_it_is_gone(gone: str):
    """Its red work is there from the start: a Player that repeats the turn would change nothing."""
    names = lone(red_turns=2).go().names
    second_player = names.index("agent:during", names.index("agent:during") + 1) + 1
    world = lone(red_turns=2)
    world.go(crash_at=second_player)
    for lost in range(len(world.repository.mirror.stored) + 1):
        world = lone(red_turns=2)
        world.go(crash_at=second_player)
        del world.repository.pins[gone]
        recover(world, lost=lost)
        world.go()
        assert world.state.ended is e.RunEnd.COMPLETED, f"{lost} lost: {world.state.reason}"


def test_nothing_that_was_reviewed_is_paid_for_again():
    """At every point of a turn, an answer that is pinned is the answer."""
    points = lone().go().reached
    for at in range(1, points + 1):
        world = lone()
        world.go(crash_at=at)
        answered = {name.split("/")[2] for name in world.repository.pins if "verdict" in name}
        recover(world)
        world.go()
        assert world.state.ended is e.RunEnd.COMPLETED, f"crashed at {at}"
        for n in answered:
            assert world.agent.reviews.count(("a", int(n))) == 1, f"crashed at {at}"


def test_what_a_person_made_by_hand_is_theirs_again():  # B8
    world = World(plan_of(Task(id="a", title="a", complexity=9)), {})
    world.go()
    taken = spoken(Message(command="take", task="a", text="Ada"), world.state, world.clock.now())
    world.journal.append(taken, expected=len(world.events))
    anyio.run(lend, world.repository, lent_workspace(world.state.tasks["a"]))
    world.repository.workspaces["a"]["a"] = "by hand"
    given = spoken(Message(command="give", task="a"), world.state, world.clock.now())
    world.journal.append(given, expected=len(world.events))
    world.go()
    tip = world.state.tip
    recover(world)
    assert (merged(world), world.state.tip) == ({"a"}, tip)
    assert world.state.tasks["a"].last.by == "Ada"
    assert world.agent.calls == []


def lone(red_turns: int = 1) -> World:
    plays = {"a": play_of("a", red_turns=red_turns, shared=False, failures=())}
    rule = no_red_and_no_markers
    return World(plan_of(Task(id="a", title="a")), plays, rule=rule)


@pytest.fixture
def always_listening(monkeypatch):
    """In memory a run is over before anybody could look twice."""
    monkeypatch.setattr(loop, "INBOX_SECONDS", 0)


def lost_again_and_again(seeds: range) -> None:
    for seed in seeds:
        forgetful = Forgetful(seed)
        historian = Historian(forgetful)
        try:
            forgetful.go()
            historian.audit()
        except BaseException as fault:
            fault.add_note(f"seed {seed}")
            raise


@pytest.mark.usefixtures("always_listening")
@pytest.mark.parametrize("first", range(0, 400, CHUNK))
def test_nothing_done_is_false_where_journals_are_lost(first: int):  # B7
    lost_again_and_again(range(first, first + CHUNK))


@pytest.mark.sweep
@pytest.mark.usefixtures("always_listening")
@pytest.mark.parametrize("first", range(400, 10_400, CHUNK))
def test_nothing_done_is_false_in_ten_thousand_lost_journals(first: int):
    lost_again_and_again(range(first, first + CHUNK))
