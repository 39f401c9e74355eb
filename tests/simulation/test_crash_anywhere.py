"""Killed at any point and started again, a run ends as if nothing had happened."""  # B4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crash_worlds import no_red_and_no_markers, outcome, play_of, unbroken, worlds
from windlass.core.events import model as e
from windlass.core.plan import Task
from windlass.core.settings import Settings
from windlass.core.state import RunState
from worlds import World, plan_of


def assert_sound(world: World) -> None:
    state = world.state
    merged = [event.task for event in world.events if isinstance(event, e.TaskMerged)]
    assert sorted(merged) == sorted(state.tasks), "each task is merged exactly once"
    assert world.repository.tip == state.tip
    ancestry = set(world.repository.ancestry(state.tip))
    for task in state.tasks.values():
        assert task.last.commit in ancestry, "what was approved is in the tip"
    finished = [(ev.task, ev.n) for ev in world.events if isinstance(ev, e.PlayerFinished)]
    assert len(finished) == len(set(finished))
    assert len(world.agent.calls) == len(set(world.agent.calls)), "no start is paid twice"


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(make=worlds(), data=st.data())
def test_a_crash_at_any_point_changes_nothing_but_time(make, data: st.DataObject):
    """Restart folds to the state of an unbroken run, whatever the point."""
    world, points = unbroken(make)
    assert world.state.ended is e.RunEnd.COMPLETED, world.state.reason
    assert_sound(world)
    expected = outcome(world)
    for at in data.draw(st.sets(st.integers(1, points), min_size=1, max_size=12)):
        crashed = make()
        crashed.go(crash_at=at)
        crashed.go()
        assert outcome(crashed) == expected, f"crashed at {at}"
        assert_sound(crashed)


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(make=worlds(), crashes=st.lists(st.integers(1, 60), min_size=2, max_size=6))
def test_crashing_again_and_again_changes_nothing_either(make, crashes: list[int]):
    expected = outcome(unbroken(make)[0])
    world = make()
    for at in crashes:
        world.go(crash_at=at)
        if world.events and world.state.ended is not None:
            break
    if not world.events or world.state.ended is None:
        world.go()
    assert outcome(world) == expected
    assert_sound(world)


def test_every_crash_point_of_a_diamond():
    """Every point, not a sample: a diamond of four with two agents."""
    tasks = (
        Task(id="a", title="a"),
        Task(id="b", title="b", depends_on=("a",)),
        Task(id="c", title="c", depends_on=("a",)),
        Task(id="d", title="d", depends_on=("b", "c")),
    )

    def make() -> World:
        plays = {
            t.id: play_of(t.id, red_turns=t.id == "b", shared=True, failures=()) for t in tasks
        }
        return World(
            plan_of(*tasks),
            plays,
            rule=no_red_and_no_markers,
            settings=Settings(checks=("test",), agents=2),
        )

    world, points = unbroken(make)
    expected = outcome(world)
    assert points > 60
    for at in range(1, points + 1):
        crashed = make()
        crashed.go(crash_at=at)
        paid = len(crashed.agent.calls)
        finished = sum(isinstance(ev, e.PlayerFinished) for ev in crashed.events)
        crashed.go()
        assert outcome(crashed) == expected, f"crashed at point {at}"
        assert_sound(crashed)
        # What was recorded as finished is never paid again: only starts under way are repeated.
        assert len(crashed.agent.calls) - len(world.agent.calls) <= paid - finished


def test_resuming_a_completed_run_does_nothing_more():
    world = World(
        plan_of(Task(id="a", title="a")),
        {"a": play_of("a", red_turns=0, shared=False, failures=())},
    )
    world.go()
    before = world.state
    world.go()
    assert world.agent.calls == [("a", 1)]
    assert world.state.tip == before.tip


def ended(state: RunState) -> e.RunEnd | None:
    return state.ended
