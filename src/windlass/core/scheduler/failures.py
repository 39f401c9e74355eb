"""What follows when an agent fails, Player or Coach: the retry table applied to the task."""

from datetime import datetime

from windlass.core.events import model as e
from windlass.core.scheduler import retry
from windlass.core.state import TaskState
from windlass.core.state.model import Attempt, Coaching


def retry_of(task: TaskState, ended: Attempt | Coaching) -> retry.Retry:
    """What the retry table says of an agent of this task that failed."""
    failure = ended.failure or e.Failure.INTERRUPTED
    return retry.after(
        failure,
        in_a_row=task.failures.get(failure, 1),
        at=ended.finished_at or ended.started_at,
        retry_at=ended.retry_at,
        jitter=ended.jitter,
    )


def step(task: TaskState, ended: Attempt | Coaching, who: str, at: datetime) -> e.Event | None:
    """Wait, or ask a person; None where the agent may start again, or the whole run pauses."""
    decision = retry_of(task, ended)
    failure = ended.failure or e.Failure.INTERRUPTED
    if decision.then is retry.Then.WAIT and decision.until is not None:
        return e.WaitStarted(at=at, task=task.id, until=decision.until, failure=failure)
    if decision.then is retry.Then.ASK:
        times = task.failures.get(failure, 1)
        question = f"the {who} failed {times} times in a row ({failure}): {ended.message}"
        return e.HelpNeeded(at=at, task=task.id, question=question)
    return None


def reason_to_pause(task: TaskState, ended: Attempt | Coaching) -> str | None:
    """Why no agent of any task can work until a person mends it, if so."""
    if retry_of(task, ended).then is retry.Then.PAUSE:
        return f"{ended.failure}: {ended.message}"
    return None
