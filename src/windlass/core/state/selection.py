"""Which tasks can start: those that a person selected, without those that are blocked."""

from collections.abc import Mapping

from windlass.core.state.model import Phase, RunState
from windlass.core.state.stages import barriers


def chosen(state: RunState) -> frozenset[str] | None:
    """The selected tasks and all that they need; None if no selection was made.

    A task needs its dependencies and, where stages wait for each other, all of the earlier stages.
    Selected tasks that are no longer in the plan are ignored.
    """
    if not state.only:
        return None
    order, found = barriers(state), set[str]()
    left = [id_ for id_ in state.only if id_ in state.tasks]
    while left:
        id_ = left.pop()
        if id_ in found:
            continue
        found.add(id_)
        spec = state.specs[id_]
        before = order[: order.index(spec.stage)] if spec.stage in order else ()
        left += (
            *spec.depends_on,
            *(t for name in before for t in state.index.stages.get(name, ())),
        )
    return frozenset(found)


def blocked(state: RunState) -> Mapping[str, str]:
    """The tasks that cannot start, each with the abandoned task it waits for."""
    return state.index.blocked


def is_done(state: RunState) -> bool:
    """Whether a selection was made and all of it is merged."""
    asked = chosen(state)
    return asked is not None and all(state.tasks[id_].phase is Phase.MERGED for id_ in asked)
