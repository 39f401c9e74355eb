"""What is kept for speed says just what the tasks say, after every event of any run."""

import pytest
from hypothesis import given, settings

from simulation.test_crash_anywhere import worlds
from windlass.plan import Task
from windlass.settings import E2ESettings, Settings
from windlass.state import RunState, apply
from windlass.state.index import index_of
from windlass.state.model import Phases
from worlds import World, plan_of, writes


def agrees(world: World) -> None:
    state: RunState | None = None
    for event in world.events:
        state = apply(state, event)
        assert state.index == index_of(state.plan, Phases(state.tasks)), event
        assert state.spent.cost_usd == pytest.approx(
            sum(task.spent.cost_usd for task in state.all_tasks)
        )
        assert sorted(state.held) == sorted(id_ for t in state.all_tasks for id_ in t.reserved)


@settings(max_examples=25)
@given(worlds())
def test_in_any_run(make):
    world = make()
    world.go(crash_at=11)
    world.go()
    agrees(world)


def test_when_tasks_are_given_up_asked_for_again_and_tried():
    hard = Task(id="c", title="c", complexity=9, depends_on=("a",))
    plan = plan_of(Task(id="a", title="a"), Task(id="b", title="b"), hard, dialect="feature")
    world = World(
        plan,
        {"a": writes("a", "1"), "b": lambda *_: None, "c": writes("c", "1")},
        settings=Settings(checks=("test",), max_turns=1, e2e=E2ESettings(run=True)),
    )
    world.go()
    agrees(world)
    assert world.state.index.abandoned == ("b",)
    phases = Phases(world.state.tasks)
    assert dict(phases) == {id_: task.phase for id_, task in world.state.tasks.items()}
    assert len(phases) == 3
