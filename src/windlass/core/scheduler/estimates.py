"""How long tasks will take and what they will cost, learnt from past runs.

For the order of tasks, the estimate is the task's own time in a past run, else the mean of its
complexity, else the mean of all tasks. It never decides whether a task runs. For people, the
estimate of a whole plan is a range, from the middle half of past tasks, and says how many they are.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec import Struct

from windlass.core.plan import Plan, longest
from windlass.core.state import Phase, RunState, TaskState
from windlass.core.state.stretches import worked


def learnt(past: Sequence[RunState], plan: Plan) -> dict[str, float]:
    """Seconds of work for each task of the plan; empty if no task was ever finished."""
    own: dict[str, float] = {}
    alike: dict[int | None, list[float]] = defaultdict(list)
    for state in past:
        for task in state.tasks.values():
            if task.phase is Phase.MERGED and task.attempts:
                own[task.id] = seconds(state, task)
                alike[state.specs[task.id].complexity].append(own[task.id])
    if not own:
        return {}
    usual = statistics.fmean(own.values())
    return {
        task.id: own.get(task.id) or _mean(alike.get(task.complexity, ())) or usual
        for task in plan.tasks
    }


def seconds(state: RunState, task: TaskState) -> float:
    """How long agents worked on a task."""
    spans = ((a.started_at, a.finished_at) for a in task.attempts)
    reviews = ((c.started_at, c.finished_at) for a in task.attempts for c in a.coachings)
    return sum(worked(state, begin, end) for begin, end in (*spans, *reviews) if end is not None)


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return statistics.fmean(found) if found else 0.0


ENOUGH = 3
"""Past tasks that an estimate needs; of fewer, the next one may be anything."""


class Range(Struct, frozen=True):
    """A low and a high estimate; in half of all cases the truth is expected between them."""

    low: float
    high: float


class Forecast(Struct, frozen=True, kw_only=True):
    """What a plan is expected to take; nothing is known before enough tasks were merged here."""

    tasks: int
    """How many merged tasks of past runs it rests on."""
    seconds: Range | None = None
    """From start to end, without waiting for people and usage limits."""
    usd: Range | None = None
    """None also if the cost of too few tasks is known."""


class _Done(Struct, frozen=True):
    """A merged task of a past run."""

    complexity: int | None
    seconds: float
    usd: float | None


def forecast(past: Iterable[RunState], plan: Plan, agents: int) -> Forecast:
    """What a run of the whole plan would take, with so many agents at once."""
    done = [
        _Done(state.specs[task.id].complexity, seconds(state, task), _usd(task))
        for state in past
        for task in state.tasks.values()
        if task.phase is Phase.MERGED and task.attempts
    ]
    if len(done) < ENOUGH:
        return Forecast(tasks=len(done))
    times = {task.id: _range(_alike(done, task.complexity), "seconds") for task in plan.tasks}
    low = {id_: each.low for id_, each in times.items()}
    high = {id_: each.high for id_, each in times.items()}
    at_least, at_most = longest(plan, low), longest(plan, high)
    # Agents are never idle while a task is ready, so no order takes longer than this.
    elapsed = Range(
        max(at_least, sum(low.values()) / agents),
        at_most + (sum(high.values()) - at_most) / agents,
    )
    paid = [each for each in done if each.usd is not None]
    if len(paid) < ENOUGH:
        return Forecast(tasks=len(done), seconds=elapsed)
    costs = [_range(_alike(paid, task.complexity), "usd") for task in plan.tasks]
    usd = Range(sum(each.low for each in costs), sum(each.high for each in costs))
    return Forecast(tasks=len(done), seconds=elapsed, usd=usd)


def _usd(task: TaskState) -> float | None:
    return task.spent.cost_usd if task.spent.known and task.spent.tokens else None


def _alike(done: Sequence[_Done], complexity: int | None) -> Sequence[_Done]:
    """The past tasks of the same complexity, if they are enough."""
    same = [each for each in done if each.complexity == complexity]
    return same if len(same) >= ENOUGH else done


def _range(done: Sequence[_Done], field: str) -> Range:
    low, _, high = statistics.quantiles((getattr(each, field) for each in done), method="inclusive")
    return Range(low, high)
