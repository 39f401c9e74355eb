"""A complete run whose plan was edited since: what takes the edit up."""  # B7

from msgspec.structs import replace

from windlass.core.plan import Plan, Task
from windlass.core.state import RunState
from windlass.views.steps import how_to_take_up
from worlds import World, plan_of, writes

A, B = Task(id="a", title="First"), Task(id="b", title="Second")


def complete() -> RunState:
    world = World(plan_of(A), {"a": writes("a", "1")})
    world.go()
    return world.state


def advice(plan: Plan) -> str:
    return how_to_take_up(complete(), plan, "plan.md")


def test_a_plan_that_is_as_it_was_needs_nothing():
    assert advice(plan_of(A)) == ""


def test_a_new_task_is_run_as_part_of_the_run():
    assert advice(plan_of(A, B)) == "`windlass run plan.md` runs b as part of it"


def test_a_merged_task_with_another_text_is_settled_first():
    said = advice(plan_of(replace(A, text="something else"), B))
    new, settle, *_ = said.split("; ")
    assert new == "`windlass run plan.md` runs b as part of it"
    assert settle.startswith("`windlass retry p:a` redoes it")


def test_another_edit_is_applied_by_run():
    said = advice(replace(plan_of(A), title="Another title"))
    assert said == "`windlass run plan.md` applies the edit of the plan"


def test_a_run_that_is_not_complete_is_resumed_with_the_edit():
    world = World(plan_of(A), {"a": writes("a", "1")})
    world.go(crash_at=5)
    assert how_to_take_up(world.state, plan_of(A, B), "plan.md") == ""
