"""One budget over tasks, agents and restarts: reserved before a request, settled after it."""  # B6

from contextlib import suppress

import anyio
import pytest

from windlass.adapters.concurrently import first_of
from windlass.core.events import model as e
from windlass.core.events.values import Amount
from windlass.core.plan import Task
from windlass.core.settings import Settings
from windlass.core.state.budget import No
from windlass.errors import JournalUnwritable
from windlass.ports import Ask, Report
from windlass.testing.memory import Crashed
from windlass.views.closing import closing
from windlass.views.cost import run_cost
from worlds import World, plan_of, writes

A, B = Task(id="a", title="a"), Task(id="b", title="b", depends_on=("a",))


class Spending:
    """Every Player makes requests of a dollar, reserved at two; a refused one fails for budget.

    One for which two dollars are not left is bounded to what is, but not below one.
    """

    def __init__(self, world: World, *, requests: int = 1, die_in: int | None = None) -> None:
        self.world = world
        self.requests = requests
        self.die_in = die_in
        self.sent = 0
        self.work = world.agent.work

    async def __call__(self, brief, workspace, watch) -> Report:
        runner = self.world.runner
        for _ in range(self.requests if brief.role == "player" else 0):
            held = runner.reserve(asking(brief.task, brief.role, brief.model))
            if isinstance(held, No):
                return Report(failure=e.Failure.BUDGET, message="the run's budget is used up")
            self.sent += 1
            if self.sent == self.die_in:
                raise Crashed("in a request")
            runner.settle(held.id, e.Usage(cost_usd=1.0, input_tokens=10))
        report = await self.work(brief, workspace, watch)
        return Report(answer=report.answer, summary=report.summary)


def asking(task: str = "a", role: str = "player", model: str = "m") -> Ask:
    most, least = Amount(usd=2.0, tokens=10), Amount(usd=1.0, tokens=10)
    return Ask(task=task, role=role, model=model, most=most, least=least)


def spending(**more) -> tuple[World, Spending]:
    world = World(
        plan_of(A, B),
        {"a": writes("a", "1"), "b": writes("b", "1")},
        settings=Settings(checks=("test",), max_cost=10),
    )
    spender = Spending(world, **more)
    world.agent.work = spender
    return world, spender


def test_what_is_settled_is_what_it_costs():
    world, _ = spending(requests=3)
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert run_cost(world.state).spent_usd == pytest.approx(6.0)
    assert run_cost(world.state).input_tokens == 60


def test_a_request_in_flight_at_a_kill_counts_at_its_reservation_where_no_other_is_known():
    world, _ = spending(die_in=1)
    world.go()
    assert run_cost(world.state).reserved_most_usd == 2.0
    assert run_cost(world.state).cost_usd == 0.0
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    cost = run_cost(world.state)
    assert (cost.estimated_usd, cost.spent_usd) == (2.0, 1.0 + 1.0)
    assert not cost.known


def test_a_request_in_flight_at_a_kill_counts_as_much_as_requests_of_the_run_do():
    world, _ = spending(requests=3, die_in=3)
    world.go()
    assert run_cost(world.state).reserved_usd == 1.0, "what the others came to"
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    cost = run_cost(world.state)
    assert (cost.estimated_usd, cost.spent_usd) == (1.0, 2.0 + 6.0)
    assert "$1.00 of it is an estimate" in str(closing(world.state, plan="p", workspaces="w"))


def test_beyond_the_budget_nothing_is_sent_not_even_after_a_restart():
    world, spender = spending(requests=20)
    world.go()
    assert world.state.ended is e.RunEnd.LIMIT
    assert world.state.reason == "the budget of $10.00 is used up", "and no agent's word for it"
    assert world.state.spent.cost_usd == 10.0
    world.go()
    assert world.state.ended is e.RunEnd.LIMIT
    assert spender.sent == 10, "the total never is above the budget"
    spender.requests = 1
    world.go(settings=Settings(checks=("test",), max_cost=20))
    assert world.state.ended is e.RunEnd.COMPLETED


def test_nothing_is_reserved_or_settled_once_the_run_is_over():
    world, _ = spending()
    world.go()
    assert world.runner.reserve(asking()) is No.REFUSED
    before = len(world.events)
    world.runner.settle("1", e.Usage(cost_usd=1.0))
    world.runner.stream("1", e.Usage(cost_usd=1.0))
    world.runner.refuse(asking())
    assert len(world.events) == before


def test_what_was_killed_is_known_where_everything_is_metered():
    world, _ = spending(die_in=1)
    world.go()
    first = next(event for event in world.events if isinstance(event, e.RunStarted))
    assert first.metered is False
    world.go()
    assert run_cost(world.state).known is False


def test_tokens_have_a_budget_too_where_one_is_set():
    world, spender = spending(requests=3)
    tokens = Settings(checks=("test",), max_tokens=25)
    world.go(settings=tokens)
    assert world.state.ended is e.RunEnd.LIMIT
    assert spender.sent == 2, "ten each: a third could cross the line"
    told = "of the budget of 25 tokens 5 is left, and the next request needs at least 10"
    assert world.state.reason == told
    [*_, line] = closing(world.state, plan="p.md", workspaces="w")
    assert line.text == "windlass resume p.md --max-tokens 50  continue with a higher limit"
    world.go(settings=Settings(checks=("test",)))
    assert world.state.ended is e.RunEnd.COMPLETED


def test_the_end_says_how_to_go_on_beyond_the_budget():
    world, _ = spending(requests=12)
    world.go()
    [*_, line] = closing(world.state, plan="p.md", workspaces="w")
    assert line.text == "windlass resume p.md --max-cost 20  continue with a higher limit"


def test_too_little_for_the_next_request_ends_the_run_and_says_what_is_needed():
    world, spender = spending(requests=3)
    world.go(settings=Settings(checks=("test",), max_cost=2.5))
    assert world.state.ended is e.RunEnd.LIMIT
    assert spender.sent == 2
    told = "of the budget of $2.50 $0.50 is left, and the next request needs at least $1.00"
    assert world.state.reason == told
    assert run_cost(world.state).cost_usd == 2.0
    [*_, line] = closing(world.state, plan="p.md", workspaces="w")
    assert line.text == "windlass resume p.md --max-cost 5  continue with a higher limit"
    world.go(settings=Settings(checks=("test",), max_cost=50))
    assert world.state.ended is e.RunEnd.COMPLETED


@pytest.mark.parametrize(
    ("limit", "told", "step"),
    [
        (
            {"max_cost": 0.006},
            "$0.0060 is too small for any request: the first one needs at least $1.00; give more",
            "--max-cost 1",
        ),
        (
            {"max_tokens": 4},
            "4 tokens is too small for any request: the first one needs at least 10; give more",
            "--max-tokens 10",
        ),
    ],
)
def test_a_limit_that_no_request_fits_into_says_so(limit, told, step):
    world, spender = spending()
    world.go(settings=Settings(checks=("test",), **limit))
    assert world.state.ended is e.RunEnd.LIMIT
    assert spender.sent == 0
    assert world.state.reason.startswith(f"the budget of {told} with {step.split()[0]}")
    [*_, line] = closing(world.state, plan="p.md", workspaces="w")
    assert line.text == f"windlass resume p.md {step}  continue with a higher limit"


def test_two_requests_never_share_what_is_left_for_one():
    world, _ = spending()
    answers = []

    async def both(brief, workspace, watch) -> Report:
        runner = world.runner
        first, second = runner.reserve(asking()), runner.reserve(asking())
        answers.extend((first, second))
        runner.settle(first.id, e.Usage(cost_usd=0.5))
        third = runner.reserve(asking())
        answers.append(third)
        runner.settle(third.id, e.Usage(cost_usd=0.5))
        return Report(failure=e.Failure.AUTH, message="enough was seen")

    world.agent.work = both
    world.go(settings=Settings(checks=("test",), max_cost=2.4))
    first, second, third = answers
    assert (first.granted.usd, second) == (2.0, No.WAIT)
    assert third.granted.usd == pytest.approx(1.9), "all that is left, and nothing is in flight"


def test_an_answer_that_was_cut_for_want_of_money_ends_the_run():
    world, _ = spending()

    async def cut(brief, workspace, watch) -> Report:
        held = world.runner.reserve(asking())
        world.runner.stream(held.id, e.Usage(cost_usd=0.1))
        world.runner.stream("unknown", e.Usage(cost_usd=0.1))
        world.runner.settle(held.id, e.Usage(cost_usd=1.2))
        world.runner.refuse(asking())
        return Report(failure=e.Failure.BUDGET, message="the answer was cut short")

    world.agent.work = cut
    world.go(settings=Settings(checks=("test",), max_cost=1.5))
    assert world.state.ended is e.RunEnd.LIMIT
    assert "$0.30 is left, and the next request needs at least $2.00" in world.state.reason
    assert world.state.tasks["a"].turn == 1, "it uses no turn"


@pytest.mark.parametrize("fact", [e.SpendReserved, e.SpendSettled])
def test_a_journal_that_takes_no_spending_ends_the_run_whoever_was_told(fact):
    """The meter is a server: it answers its client with an error, and would go on for ever."""
    world, spender = spending()
    append = world.journal.append

    def full(events, *, expected):
        if any(isinstance(event, fact) for event in events):
            raise JournalUnwritable("the disk is full")
        return append(events, expected=expected)

    async def served(brief, workspace, watch) -> Report:
        with suppress(JournalUnwritable):
            return await spender(brief, workspace, watch)
        await anyio.sleep_forever()
        return Report()

    world.journal.append = full
    world.agent.work = served
    with pytest.raises(ExceptionGroup) as failed:
        world.go()
    assert isinstance(first_of(failed.value), JournalUnwritable)
