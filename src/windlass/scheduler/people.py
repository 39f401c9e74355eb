"""What people say to a task, as facts. Whether it can be said now is decided here alone."""

from datetime import datetime

from windlass.events import model as e
from windlass.ports import Message
from windlass.state import RunState
from windlass.state.transitions import TASK_TRANSITIONS


def spoken(message: Message, state: RunState, at: datetime) -> e.Event | None:
    """The fact that this message is; None where the task has no use for it."""
    task = state.tasks.get(message.task)
    if task is None:
        return None
    fact: e.CheckpointPassed | e.Answered | e.TaskReopened
    if message.command == "retry":
        fact = e.TaskReopened(at=at, task=task.id, by="a person")
    elif message.command == "approve":
        fact = e.CheckpointPassed(at=at, task=task.id, by="a person")
    elif message.command == "answer":
        fact = e.Answered(at=at, task=task.id, text=message.text, by="a person")
    else:
        return None
    return fact if type(fact) in TASK_TRANSITIONS[task.phase] else None
