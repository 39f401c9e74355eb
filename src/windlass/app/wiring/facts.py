"""Facts that commands record, stamped here because the core keeps no time and rolls no dice."""

import secrets
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

import msgspec

from windlass import __version__
from windlass.adapters.clock import SystemClock
from windlass.adapters.git import inspect
from windlass.app.wiring.project import Project
from windlass.core.engine import replay
from windlass.core.events import model as e
from windlass.core.plan import Plan
from windlass.core.settings import Level, Settings
from windlass.core.state import RunState
from windlass.errors import JournalDamaged, PlanError
from windlass.runner import Session
from windlass.views.edits import edited
from windlass.views.progress import Progress


def refuse_short_journal(project: Project, plan_id: str, session: Session) -> None:
    """A journal behind the state file made from it has lost its end (a cut log opens clean)."""
    last, run = session.seq, session.state.run
    if (told := told_until(project, plan_id, run)) > last:
        raise JournalDamaged(
            f"the journal of {plan_id!r} ends at {last}, but state.json was made from {told}",
            position=last + 1,
            why="it was cut short or restored from an old copy",
        )


def told_until(project: Project, plan_id: str, run: str) -> int:
    """The place in the journal that the run's state file was made from; 0 where it says none."""
    path = project.folders(plan_id).run(run) / "state.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=Progress).seq
    except (OSError, msgspec.MsgspecError):
        return 0  # gone, or somebody's edit; it is a projection and proves nothing


def started(
    run: str,
    plan: Plan,
    settings: Settings,
    base: inspect.Base,
    level: Level,
    *,
    metered: bool = False,
    coach_commands: bool = True,
    only: tuple[str, ...] = (),
    estimates: Mapping[str, float] = MappingProxyType({}),
    configured: tuple[e.Configured, ...] | None = None,
    passes_checkpoints: bool = False,
) -> e.RunStarted:
    """The first fact of a new run."""
    return e.RunStarted(
        at=SystemClock().now(),
        run=run,
        plan=plan,
        settings=settings,
        base=base.commit,
        base_branch=base.branch,
        sandbox=level,
        version=__version__,
        metered=metered,
        coach_commands=coach_commands,
        only=only,
        estimates=tuple(e.Estimate(task=id_, seconds=s) for id_, s in estimates.items()),
        configured=configured,
        passes_checkpoints=passes_checkpoints,
    )


def resumed(
    settings: Settings,
    level: Level,
    moved_to: str | None,
    *,
    metered: bool = False,
    coach_commands: bool = True,
    only: tuple[str, ...] = (),
    configured: tuple[e.Configured, ...] | None = None,
    passes_checkpoints: bool = False,
) -> e.RunResumed:
    """The first fact of a process that takes a run over."""
    return e.RunResumed(
        at=SystemClock().now(),
        settings=settings,
        sandbox=level,
        metered=metered,
        coach_commands=coach_commands,
        base_moved_to=moved_to,
        only=only,
        configured=configured,
        passes_checkpoints=passes_checkpoints,
    )


def taken_over(state: RunState) -> e.RunResumed:
    """The fact that a command takes a run over, with all as it is, to say something to it."""
    return resumed(
        state.settings,
        state.sandbox,
        state.base_moved_to,
        metered=state.metered,
        coach_commands=state.coach_commands,
        configured=state.configured,
    )


def revised(before: RunState | None, plan: Plan) -> tuple[e.PlanRevised, ...]:
    """The fact that the plan was edited since, where it was."""
    if before is None or not edited(before, plan):
        return ()
    for task in plan.tasks:
        if task.id in before.specs and before.specs[task.id].scenario:
            raise PlanError(
                f"task {task.id!r} has the name that this run gave to the plan's scenario",
                path=task.path or plan.path,
                line=task.line,
                hint="give the task another id",
            )
    return (e.PlanRevised(at=SystemClock().now(), plan=plan),)


def ended(status: e.RunEnd, reason: str) -> e.RunEnded:
    """The last fact, recorded by a command rather than by a run."""
    return e.RunEnded(at=SystemClock().now(), status=status, reason=reason)


def now() -> datetime:
    """The present, for facts that a command records."""
    return SystemClock().now()


def new_run_id() -> str:
    """A name for a run: short, and never given twice."""
    return secrets.token_hex(4)


def newest(entries: list[e.Entry]) -> RunState | None:
    """The state of the plan's last run."""
    return replay(entry.event for entry in entries)
