"""The runs that there were, a line each: when, how they ended, how far, how long, how dear."""

from datetime import datetime

from msgspec import Struct

from windlass.state import RunState
from windlass.views.outcome import run_status
from windlass.views.progress import progress


class Past(Struct, frozen=True, kw_only=True):
    """One run."""

    plan: str
    run: str
    started_at: datetime
    ended_at: datetime | None
    status: str
    reason: str
    tasks: int
    completed: int
    turns: int
    elapsed_seconds: float
    cost_usd: float
    cost_known: bool
    tip: str


def past(state: RunState) -> Past:
    """A run as its journal left it."""
    metrics = progress(state, 0).metrics
    return Past(
        plan=state.plan.id,
        run=state.run,
        started_at=state.started_at,
        ended_at=state.ended_at,
        status=run_status(state),
        reason=state.reason,
        tasks=metrics.tasks,
        completed=metrics.completed,
        turns=metrics.turns,
        elapsed_seconds=metrics.elapsed_seconds,
        cost_usd=metrics.cost_usd,
        cost_known=metrics.cost_known,
        tip=state.tip,
    )
