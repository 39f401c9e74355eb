"""A provider's usage limit holds for a model, whoever asks: while one agent waits, none asks."""

from windlass.events.model import Failure
from windlass.state import RunState, TaskState
from windlass.state.model import Coaching


def player_model(state: RunState, task_id: str) -> str:
    """The model that plays a task."""
    return state.specs[task_id].model or state.settings.model


def coach_model(state: RunState) -> str:
    """The model that reviews."""
    return state.settings.coach_model or state.settings.model


def limited_models(state: RunState) -> frozenset[str]:
    """The models whose usage limit some task waits for."""
    waits = (_waits_for(state, task) for task in state.live)
    return frozenset(model for model in waits if model is not None)


def _waits_for(state: RunState, task: TaskState) -> str | None:
    if task.failed is None or task.failed.failure is not Failure.USAGE_LIMIT:
        return None
    is_coach = isinstance(task.failed, Coaching)
    return coach_model(state) if is_coach else player_model(state, task.id)
