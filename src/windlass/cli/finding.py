"""From what a person typed to a plan: a file, or the id of a plan that was run here."""

import hashlib
from pathlib import Path

from msgspec.structs import replace

from windlass.cli.wiring import Project, newest
from windlass.dialects import load
from windlass.errors import BadInput, PlanError
from windlass.plan import Plan
from windlass.state import RunState
from windlass.views.outcome import is_finished, run_status

MAX_BYTES = 10_000_000


def read_plan(project: Project, typed: str) -> Plan:
    """The plan that is meant, read from its file as it is now."""
    path = Path(typed)
    if not path.is_absolute():
        path = project.directory / path
    if path.is_dir():
        raise BadInput(f"{typed} is a folder", hint="name the plan's file in it")
    if not path.exists():
        return _by_id(project, typed)
    shown = _shown(project, path)
    if not shown.isprintable():
        # It would be recorded with the run, and shown; surrogates cannot even be written.
        raise PlanError("the file's name is not plain text", path=shown, hint="rename it")
    plan = load(shown, _text(path, typed))
    return replace(plan, id=_own_id(project, plan))


def plan_to_resume(project: Project, typed: str) -> Plan:
    """The plan whose run is to go on: its file as it is now, or as recorded where that is gone."""
    try:
        return read_plan(project, typed)
    except PlanError:
        state = newest(project.entries(typed)) if typed in project.plans() else None
        if state is None:
            raise
        return state.plan


def plan_id_of(project: Project, typed: str | None) -> str:
    """The id of a plan that was run here; without a name, of the only unfinished one."""
    if typed is None:
        return _only_unfinished(project)
    if typed in project.plans():
        return typed
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


def _by_id(project: Project, typed: str) -> Plan:
    """The plan of that id, from the file its last run was started with."""
    state = newest(project.entries(typed)) if typed in project.plans() else None
    if state is None:
        known = ", ".join(project.plans())
        hint = f"plans run here: {known}" if known else "name a Markdown file with tasks"
        raise PlanError("no such file or plan", path=typed, hint=hint)
    path = project.root / state.plan.path
    if not path.exists():
        raise PlanError("the plan's file is gone", path=state.plan.path, hint="put it back")
    return replace(load(state.plan.path, _text(path, state.plan.path)), id=state.plan.id)


def _text(path: Path, typed: str) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise PlanError(f"more than {MAX_BYTES // 1_000_000} MB", path=typed)
        # What is not UTF-8 is said by the dialects, with its line.
        return path.read_bytes().decode("utf-8", errors="surrogateescape")
    except OSError as error:
        raise PlanError(error.strerror or str(error), path=typed) from None


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
