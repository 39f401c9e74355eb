"""The limit holds for any sequence of requests, and estimates follow from the facts alone."""  # B6

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.events import model as e
from windlass.core.events.values import Amount
from windlass.core.plan import Task
from windlass.core.settings import Settings
from windlass.core.state import RunState, apply
from windlass.core.state.budget import No, grant, left, used_up, written_off
from windlass.core.state.requests import FIRST_SHARE, RECENT, Learnt, Request
from windlass.views.cost import amounts, column, cost_of, doubts, run_cost, total
from worlds import NOON, plan_of

PLAN = plan_of(Task(id="a", title="a"))
USD = st.floats(0.001, 2)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "answer", "break", "stream", "kill"]),
        USD,
        st.floats(0, 1),
        st.integers(0, 9),
    ),
    max_size=40,
)


def begun(**limits: float) -> RunState:
    settings = Settings(**limits)  # pyright: ignore[reportArgumentType]
    return apply(
        None,
        e.RunStarted(
            at=NOON,
            run="r1",
            plan=PLAN,
            settings=settings,
            base="b",
            base_branch="main",
            sandbox="checkout",
            version="1",
        ),
    )


def after(state: RunState, *facts: e.Event) -> RunState:
    for fact in facts:
        state = apply(state, fact)
    return state


def reserved(id_: str, usd: float, tokens: int = 0, role: str = "player") -> e.SpendReserved:
    return e.SpendReserved(at=NOON, id=id_, task="a", role=role, model="m", usd=usd, tokens=tokens)


def settled(id_: str, usd: float, *, tokens: int = 0, broke_off: bool = False) -> e.SpendSettled:
    usage = e.Usage(cost_usd=usd, input_tokens=tokens, known=not broke_off)
    return e.SpendSettled(at=NOON, id=id_, task="a", usage=usage, broke_off=broke_off)


def resumed(state: RunState) -> e.RunResumed:
    return e.RunResumed(at=NOON, settings=state.settings, sandbox="checkout")


@given(STEPS)
def test_where_usage_is_known_the_limit_is_never_crossed(
    steps: list[tuple[str, float, float, int]],
):
    """Whatever starts, ends, breaks off and is killed; no request costs more than was granted."""
    state, known, count = begun(max_cost=3.0, max_tokens=30), 0.0, 0
    for what, usd, part, which in steps:
        ids = sorted(state.held)
        id_ = ids[which % len(ids)] if ids else ""
        match what:
            case "ask":
                most, least = Amount(usd=usd, tokens=which), Amount(usd=usd / 2, tokens=which // 2)
                before, granted = left(state), grant(state, most, least)
                if isinstance(granted, Amount):
                    assert granted.usd <= before.usd
                    assert granted.tokens <= before.tokens
                    assert granted == most or not state.held, "no one shares what is left for one"
                    assert granted.usd >= least.usd
                    count += 1
                    state = after(state, reserved(str(count), granted.usd, granted.tokens))
                else:
                    assert (granted is No.WAIT) <= bool(state.held)
            case "answer" if id_:
                most = state.held[id_].most
                known += most.usd * part
                state = after(state, settled(id_, most.usd * part, tokens=int(most.tokens * part)))
            case "break" if id_:
                seen = state.held[id_].most.usd * part
                state = after(state, settled(id_, seen, broke_off=True))
            case "stream" if id_:
                usage = e.Usage(cost_usd=state.held[id_].most.usd * part, known=False)
                state = after(state, e.SpendStreamed(at=NOON, id=id_, task="a", usage=usage))
            case "kill":
                state = after(state, resumed(state))
                assert not state.held
            case _:
                pass
        cost = run_cost(state)
        assert known <= 3.0 + 1e-9
        assert cost.spent_usd == pytest.approx(known, abs=1e-5)
        assert cost.cost_usd + cost.reserved_most_usd <= 3.0 + 1e-5
        assert state.spent.tokens + sum(r.most.tokens for r in state.held.values()) <= 30


def test_the_percentile_is_the_nearest_rank_of_the_newest_answers():
    learnt = Learnt()
    assert learnt.percentile() is None
    for usd in range(1, RECENT + 101):
        learnt = learnt.plus("player", "m", e.Usage(cost_usd=usd, input_tokens=2 * usd))
    free, unsure = e.Usage(), e.Usage(cost_usd=1e6, known=False)
    learnt = learnt.plus("player", "m", free).plus("player", "m", unsure)
    assert len(learnt.recent) == RECENT
    assert learnt.percentile() == Amount(usd=100 + 0.95 * RECENT, tokens=2 * (100 + 190))


@pytest.mark.parametrize(
    ("before", "streamed", "most", "counts"),
    [
        ([], 0.0, 0.6, 0.6),
        ([], 0.2, 0.6, 0.6),
        ([0.01, 0.02], 0.0, 0.6, 0.02),
        ([0.01, 0.02], 0.2, 0.6, 0.2),
        ([0.5], 0.0, 0.1, 0.1),
    ],
    ids=["nothing is known", "only streamed", "percentile", "more streamed", "no more than most"],
)
def test_a_killed_request(before: list[float], streamed: float, most: float, counts: float):
    state = begun(max_cost=20.0)
    for n, usd in enumerate(before):
        state = after(state, reserved(f"{n}", 0.6), settled(f"{n}", usd, tokens=10))
    state = after(state, reserved("k", most, 500))
    if streamed:
        usage = e.Usage(cost_usd=streamed, input_tokens=3, known=False)
        state = after(state, e.SpendStreamed(at=NOON, id="k", task="a", usage=usage))
    assert after(state, resumed(state)).spent == written_off(state).spent
    state = after(state, resumed(state))
    cost = run_cost(state)
    assert cost.estimated_usd == pytest.approx(counts)
    assert cost.spent_usd == pytest.approx(sum(before))
    assert (cost.reserved_usd, cost.known) == (0.0, False)
    assert state.spent.tokens == (10 * len(before) + 10 if before else 500)


@pytest.mark.parametrize("before", [(), (0.01, 0.02)], ids=["no answer", "two answers"])
@pytest.mark.parametrize("streamed", [0.0, 0.015, 0.2])
def test_an_answer_counts_the_same_however_it_was_lost(before: tuple[float, ...], streamed: float):
    """Broken off while the meter read it, at the end of the run, or with the process of the run."""
    state = begun(max_cost=20.0)
    for n, usd in enumerate(before):
        state = after(state, reserved(f"{n}", 0.6), settled(f"{n}", usd, tokens=10))
    state = after(state, reserved("k", 0.6, 500))
    usage = e.Usage(cost_usd=streamed, input_tokens=3, known=False)
    broken = e.SpendSettled(at=NOON, id="k", task="a", usage=usage, broke_off=True)
    streaming = after(state, e.SpendStreamed(at=NOON, id="k", task="a", usage=usage))
    ended = e.RunEnded(at=NOON, status=e.RunEnd.STOPPED)
    each = [
        after(state, broken),
        after(streaming, broken),
        after(streaming, resumed(state)),
        after(streaming, ended),
    ]
    assert len({one.spent for one in each}) == 1
    for one in each:
        assert run_cost(one).estimated_usd == pytest.approx(max(streamed, 0.02 if before else 0.6))
        assert run_cost(one).spent_usd == pytest.approx(sum(before))


def test_what_a_request_is_expected_to_cost_is_learnt():
    request = Request(task="a", role="coach", model="m", most=Amount(usd=1.0))
    learnt = Learnt()
    assert learnt.expected_usd(request) == FIRST_SHARE
    learnt = learnt.plus("player", "other", e.Usage(cost_usd=0.4))
    assert learnt.expected_usd(request) == 0.4, "what any request came to"
    learnt = learnt.plus("coach", "other", e.Usage(cost_usd=0.2))
    assert learnt.expected_usd(request) == 0.2, "what its role's came to"
    learnt = learnt.plus("coach", "m", e.Usage(cost_usd=0.05))
    learnt = learnt.plus("coach", "m", e.Usage(cost_usd=0.15))
    assert learnt.expected_usd(request) == pytest.approx(0.1), "its role's with its model"
    assert (
        learnt.expected_usd(Request(task="a", role="coach", model="m", most=Amount(usd=0.01)))
        == 0.01
    )


def test_a_run_that_is_short_of_money_is_used_up_until_it_is_resumed():
    state = begun(max_cost=1.0)
    assert used_up(state) is None
    refused = e.SpendRefused(at=NOON, task="a", role="player", model="m", usd=1.231)
    state = after(state, refused)
    assert "too small for any request: the first one needs at least $1.24" in (used_up(state) or "")
    assert used_up(after(state, resumed(state))) is None


def test_the_amounts_are_shown_apart():
    flying = after(begun(max_cost=20.0), reserved("1", 0.6), settled("1", 0.01), reserved("2", 6.0))
    assert amounts(run_cost(flying)) == "$0.01 spent · $0.01 reserved"
    assert amounts(run_cost(written_off(flying))) == "$0.01 spent · $0.01 estimated"
    assert column(run_cost(written_off(flying))) == "~$0.02"
    assert doubts(run_cost(flying)) == []
    [told] = doubts(run_cost(written_off(flying)))
    assert told.startswith("$0.01 of it is an estimate: an agent was killed")
    unknown = total([cost_of(e.Usage(cost_usd=0.5)), cost_of(e.Usage(known=False))])
    assert (amounts(unknown), column(unknown)) == ("$0.50+ spent", "$0.50+")
    assert doubts(unknown)[0].startswith("+ part of it is unknown")
