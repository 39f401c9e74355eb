"""One budget over tasks, agents and restarts: reserved before a request, settled after it."""  # B6

from contextlib import suppress

import anyio
import pytest

from windlass.adapters.concurrently import first_of
from windlass.errors import JournalUnwritable
from windlass.events import model as e
from windlass.plan import Task
from windlass.ports import Report
from windlass.settings import Settings
from windlass.testing.memory import Crashed
from windlass.views.closing import closing
from windlass.views.cost import run_cost
from worlds import World, plan_of, writes

A, B = Task(id="a", title="a"), Task(id="b", title="b", depends_on=("a",))


class Spending:
    """Every Player makes requests of a dollar, reserved at two; a refused one fails for budget."""

    def __init__(self, world: World, *, requests: int = 1, die_in: int | None = None) -> None:
        self.world = world
        self.requests = requests
        self.die_in = die_in
        self.sent = 0
        self.work = world.agent.work

    async def __call__(self, brief, workspace, watch) -> Report:
        runner = self.world.runner
        for _ in range(self.requests if brief.role == "player" else 0):
            held = runner.reserve(brief.task, brief.role, brief.model, 2.0)
            if held is None:
                return Report(failure=e.Failure.BUDGET, message="the run's budget is used up")
            self.sent += 1
            if self.sent == self.die_in:
                raise Crashed("in a request")
            runner.settle(held, e.Usage(cost_usd=1.0, input_tokens=10))
        report = await self.work(brief, workspace, watch)
        return Report(answer=report.answer, summary=report.summary)


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
    assert world.state.spent_usd == pytest.approx(6.0)
    assert run_cost(world.state).input_tokens == 60


def test_a_request_in_flight_at_a_kill_counts_at_its_reservation():
    world, _ = spending(die_in=1)
    world.go()
    assert world.state.spent_usd == 2.0
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.state.spent_usd == 2.0 + 1.0 + 1.0


def test_beyond_the_budget_nothing_is_sent_not_even_after_a_restart():
    world, spender = spending(requests=20)
    world.go()
    assert world.state.ended is e.RunEnd.LIMIT
    assert world.state.reason == "the budget of $10.00 is used up", "and no agent's word for it"
    assert world.state.spent_usd == 10.0
    world.go()
    assert world.state.ended is e.RunEnd.LIMIT
    assert spender.sent == 10, "the total stays under the budget plus one request"
    spender.requests = 1
    world.go(settings=Settings(checks=("test",), max_cost=20))
    assert world.state.ended is e.RunEnd.COMPLETED


def test_nothing_is_reserved_or_settled_once_the_run_is_over():
    world, _ = spending()
    world.go()
    assert world.runner.reserve("a", "player", "m", 1.0) is None
    before = len(world.events)
    world.runner.settle("1", e.Usage(cost_usd=1.0))
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
    assert spender.sent == 3, "ten each: the one that crosses the line is the last"
    assert "25 tokens" in world.state.reason
    [*_, line] = closing(world.state, plan="p.md", workspaces="w")
    assert line.text == "windlass resume p.md --max-tokens 50  go on with more"
    world.go(settings=Settings(checks=("test",)))
    assert world.state.ended is e.RunEnd.COMPLETED


def test_the_end_says_how_to_go_on_beyond_the_budget():
    world, _ = spending(requests=12)
    world.go()
    [*_, line] = closing(world.state, plan="p.md", workspaces="w")
    assert line.text == "windlass resume p.md --max-cost 20  go on with more"


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
