"""Which workspaces of a plan may be deleted: not those of unfinished work or of a person."""

from msgspec import Struct

from windlass.core.state import Phase, RunState, TaskState
from windlass.core.state.transitions import IN_TIP
from windlass.views.outcome import is_finished, run_status


class Item(Struct, frozen=True, kw_only=True):
    """A folder or a set of pins, and whether it is deleted."""

    name: str
    goes: bool
    why: str


def why_it_stays(state: RunState, task: TaskState) -> str | None:
    """Why the workspace of a task is kept; None if it may be deleted."""
    where = f"{state.plan.id}:{task.id}"
    if task.phase is Phase.TAKEN:
        return f"a person works in it; `windlass give {where}` hands it back"
    if task.phase in IN_TIP:
        return None
    if not is_finished(state):
        return f"{task.id} is {task.status}, and the run is {run_status(state)}"
    if any(attempt.by is not None for attempt in task.attempts):
        # Their commits are in its own git directory, which no snapshot reads.
        return "a person worked in it, and may have commits there; remove it by hand"
    return None


def last_commit(state: RunState, task: TaskState) -> str:
    """The newest commit with the task's work, as a snapshot's parent."""
    for attempt in reversed(task.attempts):
        return attempt.commit or attempt.start
    return state.base
