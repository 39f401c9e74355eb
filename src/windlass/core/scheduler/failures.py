"""What follows when a Player or Coach fails: the retry table applied to the task."""

from datetime import datetime

from windlass.core.events import model as e
from windlass.core.excerpts import indented
from windlass.core.scheduler import retry
from windlass.core.state import TaskState
from windlass.core.state.model import Attempt, Coaching


def retry_of(task: TaskState, ended: Attempt | Coaching) -> retry.Retry:
    """The retry table's decision on a failed agent of this task."""
    failure = ended.failure or e.Failure.INTERRUPTED
    if ended.lasting and failure is e.Failure.ENVIRONMENT:
        return retry.Retry(then=retry.Then.ASK)
    return retry.after(
        failure,
        in_a_row=task.failures.get(failure, 1),
        at=ended.finished_at or ended.started_at,
        retry_at=ended.retry_at,
        jitter=ended.jitter,
    )


def step(task: TaskState, ended: Attempt | Coaching, who: str, at: datetime) -> e.Event | None:
    """Wait, or ask a person; None if the agent may start again or the whole run pauses."""
    decision = retry_of(task, ended)
    failure = ended.failure or e.Failure.INTERRUPTED
    if decision.then is retry.Then.WAIT and decision.until is not None:
        return e.WaitStarted(at=at, task=task.id, until=decision.until, failure=failure)
    if decision.then is retry.Then.ASK:
        times = task.failures.get(failure, 1)
        often = f"the {who} failed {times} times in a row ({failure}): {_cause(ended)}"
        question = ended.message if ended.lasting else often
        return e.HelpNeeded(at=at, task=task.id, question=question)
    return None


def _cause(ended: Attempt | Coaching) -> str:
    """Why it failed; what the setup printed is below that."""
    if ended.setup is None:
        return ended.message
    return "\n".join(filter(None, (ended.message, indented(ended.setup.output))))


def reason_to_pause(task: TaskState, ended: Attempt | Coaching) -> str | None:
    """Why no agent of any task can work until a person fixes it; None if they can."""
    if retry_of(task, ended).then is retry.Then.PAUSE:
        return f"{ended.failure}: {ended.message}"
    return None
