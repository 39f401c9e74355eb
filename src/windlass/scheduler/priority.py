"""Who gets an agent next: critical path first, among the tasks that are ready for one."""

from datetime import datetime

from windlass.events import model as e
from windlass.scheduler import ending, failures, quota, retry, reviews, stages, turns
from windlass.state import Phase, RunState, TaskState
from windlass.state.transitions import WITH_AGENT

COMPLEX = 7
"""From this complexity on a person says whether a task may start."""


def starts(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """An agent for each that is free and each task that is ready, the most urgent first."""
    if ending.holds_back(state):
        return ()
    if checkpoints := _checkpoints(state, at):
        return checkpoints
    free = state.settings.agents - sum(t.phase in WITH_AGENT for t in state.tasks.values())
    limited = quota.limited_models(state)
    ready = [
        task
        for task in state.tasks.values()
        if _is_ready(state, task) and _model(state, task) not in limited
    ]
    if free <= 0 or not ready:
        return ()
    # What is nearest its end comes first: a review frees a dependent, a begun task a workspace.
    ready.sort(
        key=lambda task: (
            not turns.is_ready_for_coach(state, task),
            not task.attempts,
            -state.urgency[task.id],
        )
    )
    return tuple(_start(state, task, at) for task in ready[:free])


def _checkpoints(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """Complex tasks wait for a person's word before their first turn, or for `--yes`."""
    passing = state.settings.policy.checkpoint == "pass"
    waiting = [t for t in state.tasks.values() if t.phase is Phase.HELP_TO_START]
    if passing and waiting:
        return tuple(e.CheckpointPassed(at=at, task=t.id, by="policy") for t in waiting)
    due = [t for t in state.tasks.values() if not passing and _needs_a_word(state, t)]
    return tuple(
        e.HelpNeeded(
            at=at,
            task=t.id,
            question=f"complexity {state.specs[t.id].complexity}: may it start?",
        )
        for t in due
    )


def _needs_a_word(state: RunState, task: TaskState) -> bool:
    complexity = state.specs[task.id].complexity or 0
    return complexity >= COMPLEX and not task.released and _is_pending_and_free(state, task)


def _is_pending_and_free(state: RunState, task: TaskState) -> bool:
    if task.phase is not Phase.PENDING:
        return False
    needed = state.specs[task.id].depends_on
    return all(state.tasks[dep].phase is Phase.MERGED for dep in needed) and stages.is_open(
        state, task
    )


def _is_ready(state: RunState, task: TaskState) -> bool:
    match task.phase:
        case Phase.RETURNED:
            return not turns.begins_with_tip(state, task)
        case Phase.FAILED:
            return failures.retry_of(task, task.last).then is retry.Then.AGAIN
        case Phase.PENDING:
            return _is_pending_and_free(state, task)
        case _:
            return turns.is_ready_for_coach(state, task)


def _model(state: RunState, task: TaskState) -> str:
    """Whom the next agent of the task would ask."""
    if turns.is_ready_for_coach(state, task):
        return quota.coach_model(state)
    return quota.player_model(state, task.id)


def _start(state: RunState, task: TaskState, at: datetime) -> e.Event:
    if turns.is_ready_for_coach(state, task):
        return reviews.start(task, at)
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
