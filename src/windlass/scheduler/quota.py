"""A provider's usage limit holds for a model, whoever asks: while one agent waits, none asks."""

from windlass.events.model import Failure
from windlass.state import Phase, RunState, TaskState

_PLAYER_GONE = frozenset({Phase.LEFT, Phase.PINNING, Phase.FAILED, Phase.WAITING})
_COACH_GONE = frozenset({Phase.UNREVIEWED, Phase.WAITING_FOR_COACH})
"""From the moment an agent failed until the next may start."""


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
    limit = Failure.USAGE_LIMIT
    if task.phase in _PLAYER_GONE and task.last.failure is limit:
        return player_model(state, task.id)
    if task.phase in _COACH_GONE and task.last.coachings[-1].failure is limit:
        return coach_model(state)
    return None
