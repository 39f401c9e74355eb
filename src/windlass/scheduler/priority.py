"""Who plays next: critical path first, among the tasks whose dependencies are merged."""

from datetime import datetime

from windlass.events import model as e
from windlass.plan import critical_lengths
from windlass.scheduler import ending, retry, turns
from windlass.state import Phase, RunState, TaskState


def starts(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """A Player for each free agent and task that is ready, the most urgent first."""
    if ending.holds_back(state):
        return ()
    free = state.settings.agents - sum(t.phase is Phase.PLAYING for t in state.tasks.values())
    ready = [task for task in state.tasks.values() if _is_ready(state, task)]
    if free <= 0 or not ready:
        return ()
    urgency = critical_lengths(state.plan, {})
    # What was begun is finished first: its context is freshest and its workspace is there.
    ready.sort(key=lambda task: (not task.attempts, -urgency[task.id]))
    return tuple(_start(state, task, at) for task in ready[:free])


def _is_ready(state: RunState, task: TaskState) -> bool:
    match task.phase:
        case Phase.RETURNED:
            return True
        case Phase.FAILED:
            return turns.retry_of(task).then is retry.Then.AGAIN
        case Phase.PENDING:
            needed = state.specs[task.id].depends_on
            return all(state.tasks[dep].phase is Phase.MERGED for dep in needed)
        case _:
            return False


def _start(state: RunState, task: TaskState, at: datetime) -> e.PlayerStarted:
    return e.PlayerStarted(
        at=at,
        task=task.id,
        n=len(task.attempts) + 1,
        turn=task.turn,
        start=task.head or state.tip,
        onto=_onto(state, task),
    )


def _onto(state: RunState, task: TaskState) -> str | None:
    """The tip to merge into the workspace, where the last attempt could not be merged with it.

    A round that was interrupted needs it only if nothing of it was kept: its partial work has
    both parents.
    """
    unmerged = task.candidate is not None
    lost = bool(task.attempts) and task.last.onto is not None
    if unmerged or (lost and task.last.commit in {None, task.last.start}):
        return state.tip
    return None
