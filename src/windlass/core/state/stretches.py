"""How long something took: the time in which somebody hauled the run, and no other.

Law: every duration of a run, a task or a turn that anybody is told of is counted here. A stretch
ends with the run's end, or with the last fact that a process recorded before it died; it begins
again when the run is taken over. What lies between is nobody's work, however long it was.
"""

from datetime import datetime, timedelta

from windlass.core.state.model import Pause, RunState, TaskState


def with_pause(state: RunState, until: datetime) -> tuple[Pause, ...]:
    """The pauses of a run that somebody takes over at that moment."""
    return (*state.pauses, Pause(since=rests_since(state), until=until))


def rests_since(state: RunState) -> datetime:
    """When somebody last hauled it; what is told of a run that is over makes it no longer."""
    return state.ended_at if state.ended is not None and state.ended_at is not None else state.at


def worked(state: RunState, begin: datetime, end: datetime) -> float:
    """Seconds between two moments, less those in which nobody hauled the run."""
    spans = (min(end, each.until) - max(begin, each.since) for each in state.pauses)
    lost = sum((max(span, timedelta()) for span in spans), timedelta())
    return max(0.0, (end - begin - lost).total_seconds())


def run_seconds(state: RunState) -> float:
    """How long the run took, or has taken so far."""
    return worked(state, state.started_at, rests_since(state))


def limit_seconds(state: RunState) -> float:
    """How long somebody waited for a provider's usage limit, the same time counted once."""
    waits = sorted(
        (each.since, each.until or rests_since(state))
        for task in state.all_tasks
        for each in task.limit_waits
    )
    total, reached = 0.0, state.started_at
    for since, until in waits:
        total += worked(state, max(since, reached), until)
        reached = max(until, reached)
    return total


def task_seconds(state: RunState, task: TaskState) -> float:
    """How long the task took since its first Player began, until it was settled or now."""
    if not task.attempts:
        return 0.0
    return worked(state, task.attempts[0].started_at, task.settled_at or rests_since(state))


def turn_seconds(state: RunState, task: TaskState) -> float:
    """How long its newest turn took, repetitions of the same turn included."""
    own = [each for each in task.attempts[task.begun_after :] if each.turn == task.last.turn]
    return worked(state, own[0].started_at, rests_since(state))
