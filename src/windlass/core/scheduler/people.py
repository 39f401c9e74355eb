"""Messages of people to a run, as facts. Only this module decides whether one applies now."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeAlias

from windlass.core.events import model as e
from windlass.core.exchange import Message
from windlass.core.plan import digest_of
from windlass.core.scheduler import barriers, priority, stages
from windlass.core.state import Phase, RunState, TaskState
from windlass.core.state.transitions import TASK_TRANSITIONS

Words: TypeAlias = tuple[e.Event, ...]
_A_PERSON = "a person"
UNDO = "undo"
"""The text of a `reset` or `retry` that takes the last one back."""


def spoken(message: Message, state: RunState, at: datetime) -> Words:
    """The facts of this message; none if it does not apply.

    A stage may have the same name as a task; the message is for the stage if it does not apply to
    the task. No message applies to a run that has ended for good.
    """
    if state.given_up:
        return ()
    if message.command == "accept_base":
        asks = state.awaiting and state.base_is_refused
        return (e.BaseAccepted(at=at, by=_by(message)),) if asks else ()
    task = state.tasks.get(message.task)
    if task is not None and message.command in _TO_A_TASK:
        fact = _TO_A_TASK[message.command](message, state, task, at)
        if fact is not None and type(fact) in TASK_TRANSITIONS[task.phase]:
            return (fact,)
    if message.task in state.index.stages and message.command in _TO_A_STAGE:
        return _TO_A_STAGE[message.command](message, state, at)
    return ()


def _by(message: Message) -> str:
    return message.by or _A_PERSON


def _approve(message: Message, state: RunState, task: TaskState, at: datetime) -> e.Event | None:
    """Let a complex task start, or accept a stale one for the text that the person saw."""
    if task.phase is Phase.STALE:
        spec = state.specs[task.id]
        if message.meaning not in {"", digest_of(spec)}:
            return None
        return e.TaskAccepted(at=at, task=task.id, by=message.text or _A_PERSON, spec=spec)
    return e.CheckpointPassed(at=at, task=task.id, by=_by(message))


def _answer(message: Message, _: RunState, task: TaskState, at: datetime) -> e.Event:
    return e.Answered(at=at, task=task.id, text=message.text, by=_by(message))


def _retry(message: Message, state: RunState, task: TaskState, at: datetime) -> e.Event | None:
    """Reopen the task, or take that back; its merge may stand if the text has not changed."""
    if message.text == UNDO:
        undone = e.RedoUndone(at=at, task=task.id, by=_by(message))
        return undone if task.redoes is not None else None
    may_stand = not state.is_stale(task.id)
    return e.TaskReopened(at=at, task=task.id, by=_by(message), may_stand=may_stand)


def _reset(message: Message, state: RunState, task: TaskState, at: datetime) -> e.Event | None:
    if message.text != UNDO:
        is_scenario = state.specs[task.id].scenario
        return None if is_scenario else e.TaskReset(at=at, task=task.id, by=_by(message))
    if task.before_reset is None:
        return None
    return e.TaskResetUndone(at=at, task=task.id, by=_by(message))


def _take(message: Message, state: RunState, task: TaskState, at: datetime) -> e.Event | None:
    """A person may take a task that waits for no other, or one that agents have left."""
    waits = task.phase is Phase.PENDING and not task.attempts and task not in state.free
    if state.specs[task.id].scenario or waits:
        return None
    started = priority.start_of(state, task, at)
    return e.TaskTaken(
        at=at,
        task=task.id,
        n=started.n,
        turn=started.turn,
        start=started.start,
        onto=started.onto,
        by=message.text or _A_PERSON,
    )


def _give(message: Message, _: RunState, task: TaskState, at: datetime) -> e.Event | None:
    if not task.attempts:
        return None
    by = task.last.by or _A_PERSON
    return e.TaskGiven(at=at, task=task.id, n=task.last.n, summary=message.text, by=by)


def _pass_stage(message: Message, state: RunState, at: datetime) -> Words:
    waits = stages.unpassed(state) == message.task and barriers.troubles(state)
    return (e.StagePassed(at=at, stage=message.task, by=_by(message)),) if waits else ()


def _retry_stage(message: Message, state: RunState, at: datetime) -> Words:
    if message.text != UNDO:
        return barriers.retry(state, message.task, by=_by(message), at=at)
    tasks = [state.tasks[id_] for id_ in state.index.stages[message.task]]
    redone = [task for task in tasks if task.redoes is not None]
    if any(e.RedoUndone not in TASK_TRANSITIONS[task.phase] for task in redone):
        return ()  # all of them, or none
    return tuple(e.RedoUndone(at=at, task=task.id, by=_by(message)) for task in redone)


_TO_A_TASK: dict[str, Callable[[Message, RunState, TaskState, datetime], e.Event | None]] = {
    "approve": _approve,
    "answer": _answer,
    "retry": _retry,
    "reset": _reset,
    "take": _take,
    "give": _give,
}

_TO_A_STAGE: dict[str, Callable[[Message, RunState, datetime], Words]] = {
    "approve": _pass_stage,
    "retry": _retry_stage,
}
