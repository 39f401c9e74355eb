"""Which tasks can never start as things stand, and because of which."""

from collections.abc import Mapping

from windlass.plan import transitive_dependents
from windlass.state.model import RunState
from windlass.state.transitions import Phase


def blocked(state: RunState) -> Mapping[str, str]:
    """Each task that has yet to begin and cannot, with the abandoned one it waits for."""
    return {
        dependent: task.id
        for task in state.tasks.values()
        if task.phase is Phase.ABANDONED
        for dependent in transitive_dependents(state.plan, task.id)
        if state.tasks[dependent].phase is Phase.PENDING
    }
