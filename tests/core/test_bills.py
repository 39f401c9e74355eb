"""What was paid for what, from the facts alone."""  # K13

from hypothesis import given
from hypothesis import strategies as st

from windlass.events import model as e
from windlass.plan import Task
from windlass.settings import Settings
from windlass.state import fold, runs
from windlass.views.bills import NOT_RECORDED, bills, totals, whole
from windlass.views.cost import run_cost
from windlass.views.past import past
from worlds import NOON, World, plan_of, writes

A, B = Task(id="a", title="First"), Task(id="b", title="Second")


def ran() -> World:
    world = World(
        plan_of(A, B), {id_: writes(id_, "x") for id_ in ("a", "b")}, settings=Settings(agents=1)
    )
    world.go()
    return world


def reserved(id_: str, task: str = "a", **more: object) -> e.SpendReserved:
    return e.SpendReserved(
        at=NOON,
        id=id_,
        task=task,
        role="coach",
        model="m-2",
        usd=0.5,
        **more,  # pyright: ignore[reportArgumentType]
    )


def settled(id_: str, usd: float, task: str = "a") -> e.SpendSettled:
    return e.SpendSettled(at=NOON, id=id_, task=task, usage=e.Usage(cost_usd=usd, input_tokens=7))


def test_the_bills_come_to_what_the_run_has_cost():
    world = ran()
    first = bills("p", world.events)
    cost = run_cost(world.state)
    assert cost.usd > 0
    assert whole(first).cost_usd == cost.usd
    assert set(totals(first, "task")) == {"p:a", "p:b"}
    assert list(totals(first, "plan")) == ["p"]
    assert list(totals(first, "run")) == ["r1"]
    assert set(totals(first, "role")) <= {"player", "coach"}


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 9), st.booleans()), max_size=8))
def test_metered_requests_are_counted_once_and_open_ones_at_their_worst(
    asked: list[tuple[str, float, bool]],
):
    started = next(event for event in EVENTS if isinstance(event, e.RunStarted))
    facts: list[e.Event] = [started]
    for n, (task, usd, done) in enumerate(asked):
        facts.append(reserved(str(n), task))
        facts += [settled(str(n), usd, task)] if done else []
    state = fold(facts)
    assert state is not None
    found = bills("p", facts)
    assert len(found) == len(asked)
    assert abs(whole(found).cost_usd - state.spent_usd) < 1e-4
    assert whole(found).known == all(done for _, _, done in asked)
    assert set(totals(found, "model")) <= {"m-2"}


def test_what_failed_or_lost_its_intent_is_paid_for_too():
    failed = e.PlayerFailed(
        at=NOON,
        task="a",
        n=1,
        failure=e.Failure.CRASHED,
        message="",
        usage=e.Usage(cost_usd=0.25),
    )
    free = e.PlayerFinished(at=NOON, task="a", n=2, summary="", usage=e.Usage())
    found = bills("p", [settled("gone", 0.5), failed, free])
    assert [(bill.role, bill.model) for bill in found] == [
        (NOT_RECORDED, NOT_RECORDED),
        ("player", NOT_RECORDED),
    ]
    assert list(totals(found, "role")) == [NOT_RECORDED, "player"]  # the dearest first


def test_a_past_run():
    world = ran()
    (state,) = runs(world.events)
    told = past(state)
    assert (told.plan, told.run, told.status) == ("p", "r1", "completed")
    assert (told.completed, told.tasks, told.turns) == (2, 2, 2)


EVENTS = ran().events
