"""Who gets an agent next: critical path first, among the tasks that are ready for one."""

from collections.abc import Iterator
from datetime import datetime

from windlass.core.events import model as e
from windlass.core.scheduler import ending, failures, retry, reviews, stages, turns
from windlass.core.state import Phase, RunState, TaskState, quota, selection
from windlass.core.state.transitions import WITH_AGENT

MEETING = 0.5
"""What it costs to meet another task over a file, in terms of the task's own length."""

COMPLEX = 7
"""From this complexity on a person says whether a task may start."""


def starts(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """An agent for each that is free and each task that is ready, the most urgent first."""
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
    """While a pause comes, turns that have begun come to their end."""
    return _unlimited(state, [task for task in state.live if _may_be_reviewed(state, task)])


def _ready(state: RunState, free: int) -> list[TaskState]:
    going_on = _unlimited(state, [task for task in state.live if _goes_on(state, task)])
    if sum(turns.is_ready_for_coach(state, task) for task in going_on) >= free:
        return going_on  # reviews come first: there is no need to look at all that could begin
    return going_on + _unlimited(state, _startable(state))


def _unlimited(state: RunState, waiting: list[TaskState]) -> list[TaskState]:
    """The tasks whose next agent would not run into a usage limit."""
    limited = quota.limits(state)
    return [t for t in waiting if _model(state, t) not in limited] if limited else waiting


def _chosen(state: RunState, ready: list[TaskState], free: int) -> Iterator[TaskState]:
    """The most urgent, one after another, for each one chosen may make another less welcome."""
    unmerged = (*state.index.live, *state.queue)
    touched = {path for id_ in unmerged for path in state.specs[id_].files}
    for _ in range(min(free, len(ready))):
        best = min(ready, key=lambda task: _rank(state, task, touched))
        ready.remove(best)
        touched |= set(state.specs[best.id].files)
        yield best


def _rank(state: RunState, task: TaskState, touched: set[str]) -> tuple[bool, bool, float]:
    """What is nearest its end comes first: a review frees a dependent, a begun task a workspace.

    Two tasks that are about the same files had better not meet in the merge queue: of tasks about
    equally urgent the one goes first that meets nobody.
    """
    meets = not task.attempts and not touched.isdisjoint(state.specs[task.id].files)
    cost = MEETING * state.estimates.get(task.id, 1.0) if meets else 0.0
    coach = bool(task.attempts) and turns.is_ready_for_coach(state, task)
    return not coach, not task.attempts, cost - state.urgency[task.id]


def _checkpoints(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """Complex tasks wait for a person's word before their first turn, or for `--yes`."""
    by_policy = state.settings.policy.checkpoint == "pass"
    passing = by_policy or state.passes_checkpoints
    waiting = [t for t in state.live if t.phase is Phase.HELP_TO_START]
    if passing and waiting:
        by = "policy" if by_policy else "--yes"
        return tuple(e.CheckpointPassed(at=at, task=t.id, by=by) for t in waiting)
    if passing or state.index.highest_complexity < COMPLEX:
        return ()
    due = [t for t in _startable(state) if _needs_a_word(state, t)]
    return tuple(
        e.HelpNeeded(
            at=at,
            task=t.id,
            question=f"complexity {state.specs[t.id].complexity}: may it start?",
        )
        for t in due
    )


def _needs_a_word(state: RunState, task: TaskState) -> bool:
    return (state.specs[task.id].complexity or 0) >= COMPLEX and not task.released


def _startable(state: RunState) -> list[TaskState]:
    """Tasks that wait for nothing: no other task, no barrier, and no other stretch of the run."""
    closed, asked = stages.closed(state), selection.chosen(state)
    ready = [task for task in state.free if state.specs[task.id].stage not in closed]
    return ready if asked is None else [task for task in ready if task.id in asked]


def _goes_on(state: RunState, task: TaskState) -> bool:
    """Whether a begun task is ready for its next agent."""
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
    """Whom the next agent of the task would ask."""
    if turns.is_ready_for_coach(state, task):
        return quota.coach_model(state)
    return quota.player_model(state, task.id)


def _start(state: RunState, task: TaskState, at: datetime) -> e.Event:
    if turns.is_ready_for_coach(state, task):
        return reviews.start(task, at)
    return start_of(state, task, at)


def start_of(state: RunState, task: TaskState, at: datetime) -> e.PlayerStarted:
    """A fresh Player for the task, from the newest of its work, or from the tip."""
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
