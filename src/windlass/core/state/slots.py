"""How many checks run at once: those of tasks and of the one merge share the same slots.

The merge comes first. What waits for it are tasks that are done, and those that begin with them.
"""

from windlass.core.state.model import RunState
from windlass.core.state.transitions import Phase

_CHECKING = frozenset({Phase.CHECKING, Phase.CHECKING_MERGE})


def free_slots(state: RunState) -> int:
    """How many more may begin."""
    return state.settings.test_slots - sum(task.phase in _CHECKING for task in state.live)
