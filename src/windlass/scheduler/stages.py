"""Barriers between the stages of a plan, where it asks for them.

A stage may begin when everything in the stages before it is settled: merged, given up, or out of
reach because what it needs was given up. What waits for a person is not settled.
"""

from collections.abc import Iterator

from windlass.state import Phase, RunState
from windlass.state.reach import blocked

_SETTLED = frozenset({Phase.MERGED, Phase.ABANDONED})


def checks_before(state: RunState, stage: str | None) -> Iterator[str]:
    """What must hold since the stages before that one are done; before None come all of them."""
    for each in state.plan.stages:
        if each.name == stage:
            return
        yield from each.checks


def closed(state: RunState) -> frozenset[str]:
    """The stages that may not begin yet."""
    names = [stage.name for stage in state.plan.stages]
    if not names and state.settings.barrier:
        names = list(dict.fromkeys(task.stage for task in state.plan.tasks if task.stage))
    if not names:
        return frozenset()
    lost = blocked(state)
    unsettled = {
        state.specs[task.id].stage
        for task in state.tasks.values()
        if task.phase not in _SETTLED and task.id not in lost
    }
    first = next((i for i, name in enumerate(names) if name in unsettled), len(names))
    return frozenset(names[first + 1 :])
