"""What a run has cost, for every screen, file and program: spent, reserved and estimated.

`spent` is the cost of answered requests, `reserved` the expected cost of those in flight, and
`estimated` the cost of those whose answer was never seen whole. All are derived from the facts.
"""

from collections.abc import Iterable

from msgspec import Struct

from windlass.core.events.values import Usage
from windlass.core.state import RunState, TaskState
from windlass.core.state.budget import written_off
from windlass.core.state.requests import Learnt, Request
from windlass.views.words import money

ESTIMATED = "an agent was killed, or an answer broke off or had no clear price"
"""Why an amount can be an estimate."""
UNKNOWN = "+ part of it is unknown: an agent was killed before it reported its usage"
"""Why an amount can be missing: the agent had no meter."""
RECOVERED = "+ what was spent before the run was recovered from git is unknown"
"""Why an amount is missing where `windlass recover` found no mirror of the journal."""


class Cost(Struct, frozen=True, kw_only=True):
    """Money and tokens."""

    cost_usd: float = 0.0
    """What is used up: spent and estimated."""
    spent_usd: float = 0.0
    """The cost of answered requests."""
    estimated_usd: float = 0.0
    """The estimated cost of requests whose answer was never seen whole."""
    reserved_usd: float = 0.0
    """The expected cost of requests in flight."""
    reserved_most_usd: float = 0.0
    """The highest cost that they can have: it decides what may still start."""
    known: bool = True
    """False where some of it is an estimate, or not known at all."""
    recovered: bool = False
    """Whether the cost before a recovery from git is unknown."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens + self.cached_tokens


def total(costs: Iterable[Cost]) -> Cost:
    """The sum, rounded to millionths of a dollar."""
    each = list(costs)
    return Cost(
        cost_usd=round(sum(one.cost_usd for one in each), 6),
        spent_usd=round(sum(one.spent_usd for one in each), 6),
        estimated_usd=round(sum(one.estimated_usd for one in each), 6),
        reserved_usd=round(sum(one.reserved_usd for one in each), 6),
        reserved_most_usd=round(sum(one.reserved_most_usd for one in each), 6),
        known=all(one.known for one in each),
        recovered=any(one.recovered for one in each),
        input_tokens=sum(one.input_tokens for one in each),
        output_tokens=sum(one.output_tokens for one in each),
        cached_tokens=sum(one.cached_tokens for one in each),
    )


def run_cost(state: RunState) -> Cost:
    """The cost of the run; nothing is in flight after its end."""
    state = written_off(state) if state.ended is not None else state
    used = [_used(task) for task in state.all_tasks]
    recovered = Cost(known=state.spent.known, recovered=state.recovered)
    return total([*used, recovered, reserved(state.learnt, state.held.values())])


def task_cost(state: RunState, task: TaskState) -> Cost:
    """What one task has used up."""
    if state.ended is not None and state.held:
        state = written_off(state)
        task = state.tasks.get(task.id, task)
    mine = (request for request in state.held.values() if request.task == task.id)
    return total([_used(task), reserved(state.learnt, mine)])


def _used(task: TaskState) -> Cost:
    return cost_of(task.spent, estimated_usd=task.estimated_usd)


def cost_of(usage: Usage, *, estimated_usd: float | None = None) -> Cost:
    """A usage as a cost; a single one is wholly an estimate, or not at all."""
    if estimated_usd is None:
        estimated_usd = 0.0 if usage.known else usage.cost_usd
    return Cost(
        cost_usd=usage.cost_usd,
        spent_usd=usage.cost_usd - estimated_usd,
        estimated_usd=estimated_usd,
        input_tokens=usage.input_tokens + usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cache_read_tokens,
        known=usage.known,
    )


def reserved(learnt: Learnt, requests: Iterable[Request]) -> Cost:
    """Requests in flight as a cost."""
    flying = list(requests)
    return Cost(
        reserved_usd=sum(learnt.expected_usd(each) for each in flying),
        reserved_most_usd=sum(each.most.usd for each in flying),
    )


def amounts(cost: Cost) -> str:
    """`$0.01 spent · $0.02 estimated · $0.60 reserved`, without the parts that are zero.

    A `+` says that more was spent, and that Windlass does not know how much.
    """
    unknown = cost.recovered or (not cost.known and not cost.estimated_usd)
    parts = [f"{money(cost.spent_usd, known=not unknown)} spent"]
    if cost.estimated_usd:
        parts.append(f"{money(cost.estimated_usd)} estimated")
    if cost.reserved_usd:
        parts.append(f"{money(cost.reserved_usd)} reserved")
    return " · ".join(parts)


def of_limit(cost: Cost, limit: float) -> tuple[str, ...]:
    """The cost and its limit, from the full form to the shortest; each marks an estimate.

    `$4.99 spent · $0.01 estimated · $0.60 reserved of $20.00`, `~$5.00 · $0.60 reserved of $20.00`,
    `~$5.00 of $20.00`, `~$5.00`.
    """
    short, most = column(cost), money(limit)
    flying = f" · {money(cost.reserved_usd)} reserved" if cost.reserved_usd else ""
    forms = [f"{each} of {most}" for each in (amounts(cost), f"{short}{flying}", short)]
    return tuple(dict.fromkeys([*forms, short]))


def doubts(cost: Cost) -> list[str]:
    """A note on amounts that are estimated or unknown."""
    lost = [RECOVERED] if cost.recovered else []
    if cost.estimated_usd:
        return [f"{money(cost.estimated_usd)} of it is an estimate: {ESTIMATED}", *lost]
    return lost if cost.known or lost else [UNKNOWN]


def column(cost: Cost) -> str:
    """The cost for a narrow column: `~$0.61` with an estimate, `$0.61+` if a part is unknown."""
    if cost.estimated_usd:
        return f"~{money(cost.cost_usd)}"
    return money(cost.cost_usd, known=cost.known)
