"""How long something took: only time in which a process worked on the run counts.

Law: every duration of a run, task or turn that is shown is computed here. A stretch ends with the
run's end, or with the last fact that a process recorded before it died. The next one begins when
a process takes over the run. The time between them does not count.
"""

from datetime import datetime, timedelta

from windlass.core.state.model import Pause, RunState, TaskState


def with_pause(state: RunState, until: datetime) -> tuple[Pause, ...]:
    """The pauses of a run that a process takes over at that time."""
    return (*state.pauses, Pause(since=rests_since(state), until=until))


def rests_since(state: RunState) -> datetime:
    """When a process last worked on the run; facts after its end do not extend it."""
    return state.ended_at if state.ended is not None and state.ended_at is not None else state.at


def worked(state: RunState, begin: datetime, end: datetime) -> float:
    """Seconds between two times, without the run's pauses."""
    spans = (min(end, each.until) - max(begin, each.since) for each in state.pauses)
    lost = sum((max(span, timedelta()) for span in spans), timedelta())
    return max(0.0, (end - begin - lost).total_seconds())


def run_seconds(state: RunState) -> float:
    """How long the run took so far."""
    return worked(state, state.started_at, rests_since(state))


def limit_seconds(state: RunState) -> float:
    """How long tasks waited for a usage limit; overlapping waits count once."""
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
    """How long the task took, from its first Player until it was settled, or until now."""
    if not task.attempts:
        return 0.0
    return worked(state, task.attempts[0].started_at, task.settled_at or rests_since(state))


def turn_seconds(state: RunState, task: TaskState) -> float:
    """How long its newest turn took, including repeated starts."""
    own = [each for each in task.counted[task.begun_after :] if each.turn == task.last.turn]
    return worked(state, own[0].started_at, rests_since(state))
