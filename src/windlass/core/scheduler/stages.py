"""Barriers between the stages of a plan, if it has them.

A stage is settled when each of its tasks is merged, abandoned, or blocked by an abandoned task. A
task that waits for a person is not settled. The next stage may begin when this one is settled and
has passed: its merges are in the tip, its files exist and can be parsed, and the tip passes every
merged task's checks.
"""

from collections.abc import Iterator

from windlass.core.state import RunState
from windlass.core.state.stages import barriers, look_at, merges_of
from windlass.core.state.transitions import IN_TIP


def checks_before(state: RunState, stage: str | None) -> Iterator[str]:
    """The checks of all stages before that one; of all stages for None."""
    for each in state.plan.stages:
        if each.name == stage:
            return
        yield from each.checks


def checks_after(state: RunState, stage: str | None) -> Iterator[str]:
    """The checks of all stages up to that one; of all stages for None."""
    for each in state.plan.stages:
        yield from each.checks
        if each.name == stage:
            return


def closed(state: RunState) -> frozenset[str]:
    """The stages that may not begin yet."""
    names = barriers(state)
    if not names:
        return frozenset()
    begun = _first_unsettled(state, names) + 1
    return frozenset(names[begun - (unpassed(state) is not None) :])


def unpassed(state: RunState) -> str | None:
    """The settled stage that must pass before the next stage, or the end."""
    if (stage := _settled_last(state)) is None or not merges_of(state, stage):
        return None
    look = look_at(state, stage)
    return stage if look is None or look.passed_by is None else None


def amiss(state: RunState) -> str | None:
    """The stage that has problems and has not been passed.

    Red checks do not count here: they run again.
    """
    stage = unpassed(state)
    look = look_at(state, stage) if stage is not None else None
    return stage if look is not None and look.problems else None


def lost(state: RunState) -> str | None:
    """The last settled stage if none of its tasks was merged; no later stage may begin."""
    names, stage = barriers(state), _settled_last(state)
    if stage is None or _first_unsettled(state, names) == len(names):
        return None
    ids = state.index.stages[stage]
    return None if any(state.tasks[id_].phase in IN_TIP for id_ in ids) else stage


def _settled_last(state: RunState) -> str | None:
    """The stage right before the first unsettled one; the last stage if all are settled."""
    names = barriers(state)
    first = _first_unsettled(state, names)
    before = [name for name in names[:first] if name in state.index.stages]
    return before[-1] if before else None


def _first_unsettled(state: RunState, names: tuple[str, ...]) -> int:
    left = state.index.unsettled
    return next((i for i, name in enumerate(names) if left.get(name)), len(names))
