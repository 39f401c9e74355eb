"""What is kept for speed says just what the tasks say, after every event of any run."""

from collections import Counter

import pytest
from hypothesis import given, settings

from simulation.test_crash_anywhere import worlds
from windlass.core.events import model as e
from windlass.core.plan import Task, transitive_dependents
from windlass.core.settings import E2ESettings, Settings
from windlass.core.state import Phase, RunState, apply
from windlass.core.state.index import index_of
from windlass.core.state.model import Phases
from worlds import World, plan_of, writes


def out_of_reach(state: RunState) -> dict[str, str]:
    return {
        dependent: abandoned
        for abandoned in state.index.abandoned
        for dependent in transitive_dependents(state.plan, abandoned)
        if state.tasks[dependent].phase is Phase.PENDING
    }


def is_left(state: RunState, id_: str) -> bool:
    settled = state.tasks[id_].phase in {Phase.MERGED, Phase.ABANDONED}
    return not settled and id_ not in out_of_reach(state)


def agrees(world: World) -> None:
    state: RunState | None = None
    for event in world.events:
        state = apply(state, event)
        assert state.index == index_of(state.plan, Phases(state.tasks)), event
        assert state.index.blocked == out_of_reach(state), event
        left = (task for task in state.plan.tasks if is_left(state, task.id))
        counts = Counter(task.stage for task in left)
        assert {stage: n for stage, n in state.index.unsettled.items() if n} == counts, event
        assert state.spent.cost_usd == pytest.approx(
            sum(task.spent.cost_usd for task in state.all_tasks)
        )
        estimates = sum(task.estimated_usd for task in state.all_tasks)
        assert state.estimated_usd == pytest.approx(estimates)


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


def test_when_several_are_given_up_that_the_same_tasks_wait_for():
    bad = ("b", "a")
    tasks = (
        Task(id="a", title="a", stage="one"),
        Task(id="b", title="b", stage="one"),
        Task(id="c", title="c", stage="one", depends_on=("b",)),
        Task(id="d", title="d", stage="two", depends_on=("a", "c")),
        Task(id="e", title="e", stage="two"),
        Task(id="f", title="f", stage="one"),
    )
    plays = {task.id: writes(task.id, "1") for task in tasks}
    plays |= dict.fromkeys(bad, lambda *_: None)
    world = World(
        plan_of(*tasks, dialect="feature"),
        plays,
        settings=Settings(checks=("test",), max_turns=1, barrier=True),
    )
    world.go()
    agrees(world)
    assert world.state.index.blocked == {"c": "b", "d": "b"}
    assert world.state.index.unsettled == {"one": 0, "two": 0}
    assert world.state.tasks["e"].phase is Phase.MERGED


def test_a_task_that_waits_for_others_may_be_adopted():
    plan = plan_of(Task(id="a", title="a"), Task(id="b", title="b", depends_on=("a",)))
    world = World(plan, {"a": writes("a", "1")})
    first = world.first(None, None)
    adopted = e.TaskAdopted(at=first.at, task="b", source="x", commit=None)
    world.journal.append([first, adopted], expected=0)
    agrees(world)
    assert (world.state.index.free, world.state.index.merged) == (("a",), 1)
