"""Usage limits hold for a model: while one agent waits for a limit, no other asks that model."""

from datetime import datetime

from windlass.core.events.values import Failure
from windlass.core.state.model import Coaching, RunState, TaskState


def player_model(state: RunState, task_id: str) -> str:
    return state.specs[task_id].model or state.settings.model or ""


def coach_model(state: RunState) -> str:
    return state.settings.coach_model or state.settings.model or ""


def limits(state: RunState) -> dict[str, datetime | None]:
    """The models whose usage limit a task waits for, each with its end if known."""
    found: dict[str, datetime | None] = {}
    for task in state.live:
        if (model := _waits_for(state, task)) is not None:
            ends = [end for end in (found.get(model), task.wait_until) if end is not None]
            found[model] = max(ends, default=None)
    return found


def _waits_for(state: RunState, task: TaskState) -> str | None:
    if task.failed is None or task.failed.failure is not Failure.USAGE_LIMIT:
        return None
    is_coach = isinstance(task.failed, Coaching)
    return coach_model(state) if is_coach else player_model(state, task.id)
