"""How long tasks will take, learnt from past runs.

The estimate is the task's own time in a past run, else the mean of its complexity, else the mean
of all tasks. It decides only the order of tasks, never whether they run.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

from windlass.core.plan import Plan
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
