"""From what a person typed to a plan: a file, a folder, or the id of a plan that was run here."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from windlass.cli.wiring import Project, newest
from windlass.dialects import load, refers_to
from windlass.errors import BadInput, PlanError, WindlassError
from windlass.plan import Plan
from windlass.state import RunState
from windlass.views.outcome import is_finished, run_status
from windlass.views.words import one_line


def read_plan(project: Project, typed: str, *, dialect: str | None = None) -> Plan:
    """The plan that is meant, read from its files as they are now."""
    path = project.directory / typed
    if not os.path.lexists(path):
        return _by_id(project, typed, dialect)
    if not path.exists():
        raise PlanError("the link leads nowhere", path=typed, hint="name the plan's file")
    shown = _shown(project, path)
    if not shown.isprintable():
        # It would be recorded with the run, and shown; surrogates cannot even be written.
        raise PlanError("the file's name is not plain text", path=shown, hint="rename it")
    plan = _loaded(project, path, shown, dialect)
    return replace(plan, id=_own_id(project, plan))


def plan_to_resume(project: Project, typed: str) -> Plan:
    """The plan whose run is to go on: its file as it is now, or as recorded where that is gone.

    It is read in the dialect that its run was started with.
    """
    recorded = _recorded(project, typed)
    dialect = recorded.plan.dialect if recorded is not None else None
    try:
        return read_plan(project, typed, dialect=dialect)
    except PlanError:
        # One that is there and cannot be read is somebody's edit, which must not go unheeded.
        if recorded is None or recorded.plan.id != typed or _is_there(project, recorded.plan):
            raise
        return recorded.plan


def _is_there(project: Project, plan: Plan) -> bool:
    return os.path.lexists(project.root / plan.path)


def plan_id_of(project: Project, typed: str | None) -> str:
    """The id of a plan that was run here; without a name, of the only unfinished one."""
    if typed is None:
        return _only_unfinished(project)
    if typed in project.plans():
        return typed
    if (recorded := _recorded(project, typed)) is not None:
        return recorded.plan.id
    return read_plan(project, typed).id


def last_run(project: Project, typed: str | None) -> RunState:
    """The state of the plan's last run."""
    plan_id = plan_id_of(project, typed)
    state = newest(project.entries(plan_id))
    if state is None:
        raise BadInput(
            f"plan {plan_id!r} was never run here",
            hint=f"start it: windlass run {typed or plan_id}",
        )
    return state


def find_task(project: Project, typed: str) -> tuple[RunState, str]:
    """The task that is meant, written TASK or PLAN:TASK, with its plan's last run."""
    plan, _, task_id = typed.rpartition(":")
    if plan:
        state = last_run(project, plan)
        if task_id not in state.tasks:
            raise BadInput(f"plan {plan!r} has no task {task_id!r}", hint="`windlass status`")
        return state, task_id
    states = [newest(project.entries(plan_id)) for plan_id in project.plans()]
    having = [state for state in states if state is not None and task_id in state.tasks]
    if len(having) == 1:
        return having[0], task_id
    if not having:
        raise BadInput(
            f"no plan that was run here has a task {task_id!r}", hint="`windlass status`"
        )
    listed = ", ".join(f"{state.plan.id}:{task_id}" for state in having)
    raise BadInput(f"several plans have a task {task_id!r}", hint=f"say which: {listed}")


def _by_id(project: Project, typed: str, dialect: str | None) -> Plan:
    """The plan of that id, from the file or folder its last run was started with."""
    state = newest(project.entries(typed)) if typed in project.plans() else None
    if state is None:
        known = ", ".join(project.plans())
        hint = f"plans run here: {known}" if known else "name a Markdown file with tasks"
        raise PlanError("no such file or plan", path=one_line(typed, 200), hint=hint)
    shown = state.plan.path
    path = project.root / shown
    if not path.exists():
        raise PlanError("the plan's file is gone", path=shown, hint="put it back")
    plan = _loaded(project, path, shown, dialect or state.plan.dialect)
    return replace(plan, id=state.plan.id)


def _recorded(project: Project, typed: str) -> RunState | None:
    """The last run of the plan that has this id, or that alone was read from this path."""
    if typed in project.plans():
        return newest(project.entries(typed))
    path = project.directory / typed
    if not os.path.exists(path):  # noqa: PTH110  which is also true of a name that is too long
        return None
    shown = _shown(project, path)
    having: list[RunState] = []
    for plan_id in project.plans():
        # A journal that cannot be read is said where its own plan is asked for.
        with suppress(WindlassError):
            state = newest(project.entries(plan_id))
            having += [state] if state is not None and state.plan.path == shown else []
    return having[0] if len(having) == 1 else None


def _loaded(project: Project, path: Path, shown: str, dialect: str | None) -> Plan:
    files = project.plan_files()
    files.read(path, shown)
    files.read_also(refers_to(shown, files.texts, dialect=dialect))
    plan = load(shown, files.texts, dialect=dialect)
    return replace(plan, notes=(*plan.notes, *files.notes))


def _shown(project: Project, path: Path) -> str:
    """Relative to the repository where the plan lies inside, so that it means the same to all."""
    try:
        return str(path.resolve().relative_to(project.root.resolve()))
    except ValueError:
        return str(path)


def _own_id(project: Project, plan: Plan) -> str:
    """The plan's id, with a suffix from its path where another plan here has that id already."""
    other = newest(project.entries(plan.id)) if plan.id in project.plans() else None
    if other is None or other.plan.path == plan.path:
        return plan.id
    if not (project.root / other.plan.path).exists():
        return plan.id
    suffix = hashlib.sha256(plan.path.encode()).hexdigest()[:6]
    return f"{plan.id[:57]}-{suffix}"


def _only_unfinished(project: Project) -> str:
    found = [newest(project.entries(plan_id)) for plan_id in project.plans()]
    states = [state for state in found if state is not None]
    open_runs = [state for state in states if not is_finished(state)]
    if len(open_runs) == 1:
        return open_runs[0].plan.id
    if open_runs:
        raise BadInput(f"several runs are unfinished: {_listed(open_runs)}", hint="name the plan")
    known = f": {_listed(states)}" if states else ""
    cure = "name the plan, or start one" if states else "start one"
    raise BadInput(f"there is no unfinished run here{known}", hint=f"{cure}: windlass run PLAN")


def _listed(states: list[RunState]) -> str:
    return ", ".join(f"{state.plan.id} ({run_status(state)})" for state in states)
