"""What was paid for what, from the facts alone."""  # K13

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from windlass.core.events import model as e
from windlass.core.plan import Task
from windlass.core.settings import Settings
from windlass.core.state import fold, runs
from windlass.core.state.budget import written_off
from windlass.views.bills import NOT_RECORDED, bills, recovered_runs, totals, whole
from windlass.views.cost import run_cost, task_cost
from windlass.views.progress import past
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
    assert cost.cost_usd > 0
    assert whole(first).cost_usd == cost.cost_usd
    assert set(totals(first, "task")) == {"p:a", "p:b"}
    assert list(totals(first, "plan")) == ["p"]
    assert list(totals(first, "run")) == ["r1"]
    assert set(totals(first, "role")) <= {"player", "coach"}


ENDS = st.sampled_from(["answered", "broken off", "streamed", "lost"])


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 9), ENDS), max_size=8))
def test_every_request_is_billed_once_and_the_bills_come_to_what_the_state_says(
    asked: list[tuple[str, float, str]],
):
    started = next(event for event in EVENTS if isinstance(event, e.RunStarted))
    facts: list[e.Event] = [started]
    for n, (task, usd, end) in enumerate(asked):
        facts.append(reserved(str(n), task))
        match end:
            case "answered":
                facts.append(settled(str(n), usd, task))
            case "broken off":
                facts.append(replace(settled(str(n), usd, task), broke_off=True))
            case "streamed":
                usage = e.Usage(cost_usd=usd, known=False)
                facts.append(e.SpendStreamed(at=NOON, id=str(n), task=task, usage=usage))
            case _:
                pass
    state = fold(facts)
    assert state is not None
    for live, seen in ((True, state), (False, written_off(state))):
        found = bills("p", facts, live=live)
        assert len(found) == len(asked)
        told, cost = asdict(whole(found)), asdict(run_cost(seen))
        assert told == pytest.approx(cost, abs=1e-5)
        assert set(totals(found, "model")) <= {"m-2"}
    assert not whole(bills("p", facts)).reserved_most_usd, "nothing is in flight in a dead run"


def test_a_run_that_another_takes_the_place_of_leaves_nothing_in_flight():
    started = next(event for event in EVENTS if isinstance(event, e.RunStarted))
    stray = e.SpendStreamed(at=NOON, id="gone", task="a", usage=e.Usage(cost_usd=1.0))
    first = [started, reserved("1"), settled("1", 0.125), reserved("2"), stray]
    later = replace(started, run="r2")
    found = bills("p", [*first, later, reserved("3")], live=True)
    assert [(bill.run, bill.request, bill.cost.cost_usd) for bill in found] == [
        ("r1", "1", 0.125),
        ("r1", "2", 0.125),
        ("r2", "3", 0.0),
    ]
    assert found[-1].cost.reserved_usd == 0.05, "a tenth of the most, while the run knows no better"
    ended = e.RunEnded(at=NOON, status=e.RunEnd.STOPPED)
    state = fold([*first, ended, reserved("9")])
    assert state is not None
    assert run_cost(state).estimated_usd == 0.25, "after the end no request is in flight"
    assert task_cost(state, state.tasks["a"]).estimated_usd == 0.25


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


def test_the_runs_are_named_whose_cost_is_partly_unknown():
    world = World(plan_of(Task(id="a", title="First")), {"a": writes("a", "1")})
    world.go()
    lost = e.RunRecovered(at=NOON, candidates=1)
    assert recovered_runs(world.events) == set()
    assert recovered_runs([*world.events, lost]) == {world.state.run}
