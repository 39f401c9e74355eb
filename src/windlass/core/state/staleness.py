"""When a merged task is done, and when it is stale.

Law: a merged task is done for the text that it was merged for, and for a text for which a person
accepted it. If the plan has any other text now, the task is stale, and not done.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from windlass.core.plan import Task, same_meaning
from windlass.core.plan.names import some
from windlass.core.state.model import TaskState
from windlass.core.state.transitions import EDITED, IN_TIP, Phase

_NAMED = 10


def is_done_for(task: TaskState, spec: Task) -> bool:
    """Whether the task was merged, or accepted, for that text."""
    accepted = task.accepted.spec if task.accepted is not None else None
    texts = (text for text in (task.merged_as, accepted) if text is not None)
    return any(same_meaning(text, spec) for text in texts)


def settled(task: TaskState, spec: Task) -> TaskState:
    """The task as merged or stale for this text; an unmerged task is returned unchanged."""
    if task.before_reset is not None:
        task = replace(task, before_reset=settled(task.before_reset, spec))
    if task.phase not in IN_TIP:
        return task
    done = is_done_for(task, spec)
    return task if done is (task.phase is Phase.MERGED) else replace(task, phase=EDITED[task.phase])


def why(stale: Sequence[str]) -> str:
    """Why a run with these stale tasks is not complete."""
    are = "is" if len(stale) == 1 else "are"
    return f"{some(stale, _NAMED)} {are} stale: merged for a text that the plan has changed since"
