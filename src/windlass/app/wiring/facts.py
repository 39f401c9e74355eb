"""Facts that commands record; the time and the run id come from here, because the core is pure."""

import secrets
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

import msgspec

from windlass import __version__
from windlass.adapters.clock import LocalTime, SystemClock
from windlass.adapters.git import inspect
from windlass.app.wiring.project import Project
from windlass.core.engine import replay
from windlass.core.events import model as e
from windlass.core.plan import Plan
from windlass.core.scheduler import recovery
from windlass.core.settings import Level, Settings
from windlass.core.state import RunState
from windlass.errors import JournalDamaged, PlanError
from windlass.runner import Session
from windlass.views.edits import edited
from windlass.views.progress import Progress


def refuse_short_journal(project: Project, plan_id: str, session: Session) -> None:
    """Raise if the state file is ahead of the journal: a journal that lost its end opens clean."""
    last, run = session.seq, session.state.run
    if (written := state_file_position(project, plan_id, run)) > last:
        raise JournalDamaged(
            f"the journal of {plan_id!r} ends at {last}, but state.json was made from {written}",
            position=last + 1,
            about=plan_id,
            why="it was cut short or restored from an old copy",
        )


def state_file_position(project: Project, plan_id: str, run: str) -> int:
    """The journal position that the run's state file was made from; 0 if unknown."""
    path = project.folders(plan_id).run(run) / "state.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=Progress).seq
    except (OSError, msgspec.MsgspecError):
        return 0  # missing or edited; it is a projection and proves nothing


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
    attended: bool = False,
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
        attended=attended,
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
    attended: bool = False,
) -> e.RunResumed:
    """The first fact of a process that resumes a run."""
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
        attended=attended,
    )


def resumed_unchanged(state: RunState) -> e.RunResumed:
    """The fact that a command resumes a run with the same settings, to record something in it."""
    return recovery.resumed_unchanged(state, now())


def revised(before: RunState | None, plan: Plan) -> tuple[e.PlanRevised, ...]:
    """The fact that the plan was edited since; empty if it was not."""
    if before is None or not edited(before, plan):
        return ()
    for task in plan.tasks:
        if task.id in before.specs and before.specs[task.id].scenario:
            raise PlanError(
                f"task {task.id!r} has the id that this run gave to the plan's scenario",
                path=task.path or plan.path,
                line=task.line,
                hint="give the task another id",
            )
    return (e.PlanRevised(at=SystemClock().now(), plan=plan),)


def ended(status: e.RunEnd, reason: str) -> e.RunEnded:
    """The last fact of a run that a command ends."""
    return e.RunEnded(at=SystemClock().now(), status=status, reason=reason)


LOCAL_TIME = LocalTime()
"""The time zone of this machine, for what people read."""


def now() -> datetime:
    """The time for facts that a command records."""
    return SystemClock().now()


def new_run_id() -> str:
    """A short, random id for a new run."""
    return secrets.token_hex(4)


def last_run_state(entries: list[e.Entry]) -> RunState | None:
    """The state of the plan's last run."""
    return replay(entry.event for entry in entries)
