"""The model of each agent, and its usage limit.

A limit holds for a model: while one agent waits for it, no other asks that model.
"""

from datetime import datetime

import msgspec

from windlass.core.events.values import Failure
from windlass.core.state.model import Coaching, RunState, TaskState


def player_model(state: RunState, task_id: str) -> str:
    return state.specs[task_id].model or state.settings.model or ""


def coach_model(state: RunState) -> str:
    return state.settings.coach_model or state.settings.model or ""


def player_model_source(state: RunState, task_id: str) -> str:
    """What names the Player's model; empty: an option of the command, or the default."""
    spec = state.specs[task_id]
    if not spec.model:
        return _source(state, "model", state.settings.model)
    line = f":{spec.line}" if spec.line else ""
    return f"**Model:** of task {task_id}, {spec.path or state.plan.path}{line}"


def coach_model_source(state: RunState) -> str:
    """What names the Coach's model; empty: an option of the command, or the default."""
    own = state.settings.coach_model
    # It has no default.
    return (
        _source(state, "coach_model", own) or "option --coach-model"
        if own
        else _source(state, "model", state.settings.model)
    )


def _source(state: RunState, key: str, value: str | None) -> str:
    """The file or the variable that last gave the setting this value."""
    text = msgspec.json.encode(value).decode()
    said = (each for each in reversed(state.configured or ()) if each.key == key)
    return next((each.source for each in said if each.value == text), "")


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
