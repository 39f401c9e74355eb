"""The state of a run: the fold of all its facts. Pure."""

from windlass.core.state.fold import apply, fold, runs
from windlass.core.state.model import Attempt, Phase, RunPhase, RunState, TaskState

__all__ = ["Attempt", "Phase", "RunPhase", "RunState", "TaskState", "apply", "fold", "runs"]
