"""Which task gets an agent next: critical path first, among the tasks that are ready."""

from collections.abc import Iterator
from datetime import datetime

from windlass.core.events import model as e
from windlass.core.plan import Task
from windlass.core.scheduler import ending, failures, retry, reviews, stages, turns
from windlass.core.state import Phase, RunState, TaskState, quota, selection
from windlass.core.state.transitions import WITH_AGENT

MEETING = 0.5
"""The penalty for sharing a file with another task, in units of the task's own length."""

COMPLEX = 7
"""From this complexity on, a task needs a person's approval to start."""


def starts(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """Start the free agents on ready tasks, the most urgent first."""
    if ending.holds_back(state):
        return ()
    pausing = state.stopping is not None
    if not pausing and (checkpoints := _checkpoints(state, at)):
        return checkpoints
    free = state.settings.agents - sum(task.phase in WITH_AGENT for task in state.live)
    if free <= 0:
        return ()
    ready = _ready(state, free) if not pausing else _to_be_finished(state)
    return tuple(_start(state, task, at) for task in _chosen(state, ready, free))


def _to_be_finished(state: RunState) -> list[TaskState]:
    """While the run is pausing, only reviews of running turns start."""
    return _unlimited(state, [task for task in state.live if _may_be_reviewed(state, task)])


def _ready(state: RunState, free: int) -> list[TaskState]:
    going_on = _unlimited(state, [task for task in state.live if _goes_on(state, task)])
    if sum(turns.is_ready_for_coach(state, task) for task in going_on) >= free:
        return going_on  # reviews come first and take all free agents
    return going_on + _unlimited(state, _startable(state))


def _unlimited(state: RunState, waiting: list[TaskState]) -> list[TaskState]:
    """The tasks whose next agent would not hit a usage limit."""
    limited = quota.limits(state)
    return [t for t in waiting if _model(state, t) not in limited] if limited else waiting


def _chosen(state: RunState, ready: list[TaskState], free: int) -> Iterator[TaskState]:
    """The most urgent tasks, ranked again after each choice because they may share files."""
    unmerged = (*state.index.live, *state.queue)
    touched = {path for id_ in unmerged for path in state.specs[id_].files}
    for _ in range(min(free, len(ready))):
        best = min(ready, key=lambda task: _rank(state, task, touched))
        ready.remove(best)
        touched |= set(state.specs[best.id].files)
        yield best


def _rank(state: RunState, task: TaskState, touched: set[str]) -> tuple[bool, bool, float]:
    """Tasks near their end come first: a review frees dependents, a started task a workspace.

    Of about equally urgent tasks, one that shares no file with a running task comes first, to
    avoid conflicts in the merge queue.
    """
    meets = not task.attempts and not touched.isdisjoint(state.specs[task.id].files)
    cost = MEETING * state.estimates.get(task.id, 1.0) if meets else 0.0
    coach = bool(task.attempts) and turns.is_ready_for_coach(state, task)
    return not coach, not task.attempts, cost - state.urgency[task.id]


def _checkpoints(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """Complex tasks need a person's approval, or `--yes`, before their first turn."""
    by_policy = state.settings.policy.checkpoint == "pass"
    passing = by_policy or state.passes_checkpoints
    waiting = [t for t in state.live if t.phase is Phase.HELP_TO_START]
    if passing and waiting:
        by = "policy" if by_policy else "--yes"
        return tuple(e.CheckpointPassed(at=at, task=t.id, by=by) for t in waiting)
    if passing or state.index.highest_complexity < COMPLEX:
        return ()
    due = [t for t in _startable(state) if _needs_approval(state, t)]
    return tuple(
        e.HelpNeeded(
            at=at,
            task=t.id,
            question=f"complexity {state.specs[t.id].complexity}: may it start?",
        )
        for t in due
    )


def _needs_approval(state: RunState, task: TaskState) -> bool:
    return is_complex(state.specs[task.id]) and not task.released


def is_complex(task: Task) -> bool:
    """Whether a person is asked before the task starts, unless the policy lets it pass."""
    return (task.complexity or 0) >= COMPLEX


def _startable(state: RunState) -> list[TaskState]:
    """Tasks that may start now: no dependency, stage or selection holds them back."""
    closed, asked = stages.closed(state), selection.chosen(state)
    ready = [task for task in state.free if state.specs[task.id].stage not in closed]
    return ready if asked is None else [task for task in ready if task.id in asked]


def _goes_on(state: RunState, task: TaskState) -> bool:
    """Whether a started task is ready for its next agent."""
    match task.phase:
        case Phase.RETURNED:
            return not turns.begins_with_tip(state, task)
        case Phase.FAILED:
            return failures.retry_of(task, task.last).then is retry.Then.AGAIN
        case _:
            return turns.is_ready_for_coach(state, task)


def _may_be_reviewed(state: RunState, task: TaskState) -> bool:
    return task.phase not in {Phase.PENDING, Phase.RETURNED} and turns.is_ready_for_coach(
        state, task
    )


def _model(state: RunState, task: TaskState) -> str:
    """The model of the task's next agent."""
    if turns.is_ready_for_coach(state, task):
        return quota.coach_model(state)
    return quota.player_model(state, task.id)


def _start(state: RunState, task: TaskState, at: datetime) -> e.Event:
    if turns.is_ready_for_coach(state, task):
        return reviews.start(task, at)
    return start_of(state, task, at)


def start_of(state: RunState, task: TaskState, at: datetime) -> e.PlayerStarted:
    """Start a fresh Player on the task's newest work, or on the tip."""
    return e.PlayerStarted(
        at=at,
        task=task.id,
        n=len(task.attempts) + 1,
        turn=task.turn,
        start=task.head or state.tip,
        onto=_onto(state, task),
    )


def _onto(state: RunState, task: TaskState) -> str | None:
    """The tip to merge into the workspace, if the last attempt could not be merged with it.

    An interrupted round needs it only if none of its work was kept: partial work has both parents.
    """
    unmerged = task.candidate is not None
    lost = bool(task.attempts) and task.last.onto is not None
    if unmerged or (lost and task.last.commit in {None, task.last.start}):
        return state.tip
    return None
