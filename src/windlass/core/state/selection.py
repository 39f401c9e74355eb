"""Which tasks may begin, where a person asked for some of the plan only."""

from windlass.core.state.model import Phase, RunState
from windlass.core.state.stages import barriers


def chosen(state: RunState) -> frozenset[str] | None:
    """The tasks that were asked for and all that they need; None where all were.

    A task needs those it depends on, and where stages wait for each other all of those before its
    own. One that the plan has no more is not asked for any more.
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


def is_done(state: RunState) -> bool:
    """Whether only some were asked for, and all of them are merged."""
    asked = chosen(state)
    return asked is not None and all(state.tasks[id_].phase is Phase.MERGED for id_ in asked)
