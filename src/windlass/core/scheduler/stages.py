"""Barriers between the stages of a plan, where it asks for them.

A stage is settled when each of its tasks is merged, given up, or out of reach because what it needs
was given up; what waits for a person is not. The next may begin when it is settled and has passed:
its merges are in the tip, its files are there and can be parsed, and every merged task's checks
hold of the tip once more.
"""

from collections.abc import Iterator

from windlass.core.state import RunState
from windlass.core.state.stages import barriers, look_at, merges_of
from windlass.core.state.transitions import IN_TIP


def checks_before(state: RunState, stage: str | None) -> Iterator[str]:
    """What must hold since the stages before that one are done; before None come all of them."""
    for each in state.plan.stages:
        if each.name == stage:
            return
        yield from each.checks


def checks_after(state: RunState, stage: str | None) -> Iterator[str]:
    """What must hold once that stage is done; after None, once all are."""
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
    """The stage that is settled and keeps the next, or the end, from coming until it has passed."""
    if (stage := _settled_last(state)) is None or not merges_of(state, stage):
        return None
    look = look_at(state, stage)
    return stage if look is None or look.passed_by is None else None


def amiss(state: RunState) -> str | None:
    """The stage that nobody has let pass although it is not as it should be.

    What its checks said is not meant: whoever asks again has them run again.
    """
    stage = unpassed(state)
    look = look_at(state, stage) if stage is not None else None
    return stage if look is not None and look.problems else None


def lost(state: RunState) -> str | None:
    """The stage of which nothing came at all: nothing is built on that."""
    names, stage = barriers(state), _settled_last(state)
    if stage is None or _first_unsettled(state, names) == len(names):
        return None
    ids = state.index.stages[stage]
    return None if any(state.tasks[id_].phase in IN_TIP for id_ in ids) else stage


def _settled_last(state: RunState) -> str | None:
    """The stage right before the first that has something left to do; the last where none has."""
    names = barriers(state)
    first = _first_unsettled(state, names)
    before = [name for name in names[:first] if name in state.index.stages]
    return before[-1] if before else None


def _first_unsettled(state: RunState, names: tuple[str, ...]) -> int:
    left = state.index.unsettled
    return next((i for i, name in enumerate(names) if left.get(name)), len(names))
