"""Find the plan or task that a person named: a file, a folder, or the id of a plan run here."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from windlass.app.wiring import Project
from windlass.app.wiring.recovering import plans_in_git
from windlass.core.nearest import did_you_mean
from windlass.core.plan import Plan
from windlass.core.state import RunState
from windlass.errors import BadInput, PlanError, WindlassError
from windlass.formats import load, refers_to
from windlass.views.outcome import is_finished, run_status
from windlass.views.steps import how_to_take_up
from windlass.views.words import one_line

_PLAN_FILES = (".md", ".markdown", ".yaml", ".yml")


def read_plan(project: Project, typed: str, *, dialect: str | None = None) -> Plan:
    """The named plan, read from its files as they are now."""
    if not os.path.lexists(project.path_of(typed)):
        return _by_id(project, typed, dialect)
    plan = plan_as_written(project, typed, dialect=dialect)
    return replace(plan, id=_own_id(project, plan))


def plan_as_written(project: Project, typed: str, *, dialect: str | None = None) -> Plan:
    """The plan of a file or folder, read without any journal."""
    path = project.path_of(typed)
    if not path.exists():
        if os.path.lexists(path):
            why, cure = "the link leads nowhere", "name the plan's file"
        else:
            why, cure = (
                "no such file or plan",
                _nearest_plan(project, typed, "name the plan's file"),
            )
        raise PlanError(why, path=one_line(typed, 200), hint=cure)
    shown = _shown(project, path)
    if not shown.isprintable():
        # The name is recorded with the run and shown; surrogates cannot even be written.
        raise PlanError("the file's name is not plain text", path=shown, hint="rename it")
    return _loaded(project, path, shown, dialect)


def plan_to_resume(project: Project, typed: str) -> Plan:
    """The plan to resume: its file as it is now, or as recorded if the file is gone.

    It is read in the dialect that its run was started with.
    """
    recorded = _recorded(project, typed)
    dialect = recorded.plan.dialect if recorded is not None else None
    try:
        return read_plan(project, typed, dialect=dialect)
    except PlanError:
        # A file that is there and cannot be read is an edit, which must not be ignored.
        if recorded is None or recorded.plan.id != typed or _is_there(project, recorded.plan):
            raise
        return recorded.plan


def plan_of_run(project: Project, recorded: Plan) -> Plan:
    """The plan of a run: its file as it is now, or as recorded if the file is gone.

    Raises PlanError if the file is there and cannot be read: that is an edit too.
    """
    if not _is_there(project, recorded):
        return recorded
    path = project.root / recorded.path
    plan = _loaded(project, path, recorded.path, recorded.dialect)
    return replace(plan, id=recorded.id)


def plan_now(project: Project, recorded: Plan) -> Plan | str:
    """The same as plan_of_run, or a sentence why the file cannot be read."""
    try:
        return plan_of_run(project, recorded)
    except (WindlassError, OSError) as error:
        why = error.message if isinstance(error, WindlassError) else error.strerror or "no access"
        return f"an edit of {recorded.path} that cannot be read: {one_line(why, 300)}"


def _is_there(project: Project, plan: Plan) -> bool:
    return os.path.lexists(project.root / plan.path)


def plan_id_of(project: Project, typed: str | None, *, cure: str | None = None) -> str:
    """The id of a plan that was run here.

    Without a name: the plan whose workspace this is, or else the only unfinished one. `cure` is
    the hint if every run is finished; None: how to start or continue one.
    """
    if typed is None and project.here is not None:
        typed = project.here.plan
    if typed is None:
        return _only_unfinished(project, cure)
    if typed in project.journals.plans():
        return typed
    if (recorded := _recorded(project, typed)) is not None:
        return recorded.plan.id
    plan_id = read_plan(project, typed).id
    if plan_id not in project.journals.plans():
        raise plan_never_run(project, plan_id, typed)
    return plan_id


def selected_plans(project: Project, typed: str | None) -> list[str]:
    """The ids of the plans that a command is about: the named one, or else every one here.

    In a workspace, without a name: only the workspace's plan.
    """
    if typed is not None or project.here is not None:
        return [plan_id_of(project, typed)]
    if plans := project.journals.plans():
        return plans
    raise never_run(project)


def plan_to_watch(project: Project, plan: str | None) -> str:
    """The id of the named plan; without a name, of the only one with a live run."""
    live = [
        plan_id
        for plan_id in project.journals.plans()
        if project.journals.live_pid(plan_id) is not None
    ]
    if plan is None and project.here is None and len(live) == 1:
        return live[0]
    return plan_id_of(project, plan, cure="name the plan")


def only_plan(project: Project, typed: str | None) -> str:
    """The id of the named plan; without a name, of the only one here."""
    if typed is None and project.here is None and len(plans := project.journals.plans()) == 1:
        return plans[0]
    return plan_id_of(project, typed, cure="name the plan")


def last_run(project: Project, typed: str | None) -> RunState:
    plan_id = plan_id_of(project, typed)
    state = project.journals.last_run(plan_id)
    if state is None:
        raise plan_never_run(project, plan_id, typed or plan_id)
    return state


def newest_plan(project: Project, typed: str | None = None) -> str:
    """The named plan, else the one with the only unfinished run, else the one that ran last."""
    if typed is not None or project.here is not None:
        return plan_id_of(project, typed)
    found = (project.journals.last_run(plan_id) for plan_id in project.journals.plans())
    states = [state for state in found if state is not None]
    if not states:
        raise never_run(project)
    unfinished = [state for state in states if not is_finished(state)]
    if len(unfinished) == 1:
        return unfinished[0].plan.id
    return max(states, key=lambda state: state.started_at).plan.id


def plan_to_land(project: Project, typed: str | None) -> str:
    """The id of the named plan; without a name, of the only one with something to land."""
    if typed is not None or project.here is not None:
        return plan_id_of(project, typed)
    found = [project.journals.last_run(plan_id) for plan_id in project.journals.plans()]
    waiting = [state for state in found if state is not None and _could_land(state)]
    if len(waiting) == 1:
        return waiting[0].plan.id
    if waiting:
        listed = ", ".join(state.plan.id for state in waiting)
        raise BadInput(f"several runs could land: {listed}", hint="name the plan")
    if not any(found):
        raise never_run(project, "no run here has something to land")
    raise BadInput("no run here has something to land", hint="`windlass status` shows every run")


def _could_land(state: RunState) -> bool:
    landed = state.landing is not None and state.landing.landed is not None
    return state.merges > 0 and not landed


def find_task(project: Project, typed: str, *, stages: bool = False) -> tuple[RunState, str]:
    """The task written TASK or PLAN:TASK, and the last run of its plan.

    With `stages`, it may also name a stage; names of stages may contain colons.
    """
    what = "task or stage" if stages else "task"

    def has(state: RunState, name: str) -> bool:
        return name in state.tasks or (stages and name in state.index.stages)

    for plan, name in _split(project, typed):
        state = last_run(project, plan)
        if has(state, name):
            return state, name
        cure = did_you_mean(name, _names(state, stages=stages), "`windlass status` lists them")
        raise BadInput(f"plan {plan!r} has no {what} {name!r}", about=plan, hint=cure)
    states = [project.journals.last_run(plan_id) for plan_id in project.journals.plans()]
    having = [state for state in states if state is not None and has(state, typed)]
    if project.here is not None:
        own = [state for state in having if state.plan.id == project.here.plan]
        having = own or having
    if len(having) == 1:
        return having[0], typed
    if having:
        listed = ", ".join(f"{state.plan.id}:{typed}" for state in having)
        raise BadInput(f"several plans have a {what} {typed!r}", hint=f"say which: {listed}")
    plan, _, name = typed.rpartition(":")
    if plan:
        last_run(project, plan)  # its error says why there is no such plan
    why = f"no plan that was run here has a {what} {typed!r}"
    known = [name for state in states if state for name in _names(state, stages=stages)]
    cure = did_you_mean(typed, known, "`windlass status` lists them")
    raise BadInput(why, hint=cure) if known else never_run(project, why)


def _names(state: RunState, *, stages: bool) -> list[str]:
    return [*state.tasks, *(state.index.stages if stages else ())]


def plan_and_task(project: Project, typed: str) -> tuple[str, str | None]:
    """The plan that the name is of, and its task if it is TASK or PLAN:TASK."""
    try:
        return plan_id_of(project, typed), None
    except WindlassError as error:
        try:
            state, task = find_task(project, typed)
        except WindlassError as missing:
            raise (missing if names_a_plan(project, typed) else error) from None
        return state.plan.id, task


def task_here(project: Project, command: str) -> str:
    """The task whose workspace this is, for a command that was called without a name."""
    if project.here is None:
        raise BadInput(
            "name the task: this is no task's workspace", hint=f"windlass {command} TASK"
        )
    return f"{project.here.plan}:{project.here.task}"


def names_a_plan(project: Project, typed: str) -> bool:
    """Whether it begins with a plan that was run here and a colon."""
    return any(_split(project, typed))


def _split(project: Project, typed: str) -> Iterator[tuple[str, str]]:
    """Split at the first colon that follows the name of a plan run here."""
    ends = (end for end, letter in enumerate(typed) if letter == ":" and end)
    for end in ends:
        if _recorded(project, typed[:end]) is not None:
            yield typed[:end], typed[end + 1 :]
            return


def _by_id(project: Project, typed: str, dialect: str | None) -> Plan:
    """The plan of that id, from the file or folder its last run was started with."""
    state = project.journals.last_run(typed) if typed in project.journals.plans() else None
    if state is None:
        known = ", ".join(project.journals.plans())
        hint = f"plans run here: {known}" if known else "name a Markdown file with tasks"
        hint = _nearest_plan(project, typed, hint)
        if typed in plans_in_git(project):
            hint = f"git has a run of it, and no journal: windlass recover {typed}"
        raise PlanError("no such file or plan", path=one_line(typed, 200), hint=hint)
    shown = state.plan.path
    path = project.root / shown
    if not path.exists():
        raise PlanError("the plan's file is gone", path=shown, hint="put it back")
    plan = _loaded(project, path, shown, dialect or state.plan.dialect)
    return replace(plan, id=state.plan.id)


def _nearest_plan(project: Project, typed: str, otherwise: str) -> str:
    """The file or plan that a person may have meant: the same name elsewhere, or a similar one."""
    files = [path for path in project.files.listed() if path.endswith(_PLAN_FILES)]
    shown = [os.path.relpath(project.root / path, project.directory) for path in files]
    leaf = os.path.basename(typed)  # noqa: PTH119  a name that is typed may be anything
    same = [path for path in shown if os.path.basename(path) == leaf]  # noqa: PTH119
    if len(same) == 1:
        return f"did you mean {one_line(same[0], 200)!r}? {otherwise}"
    return did_you_mean(typed, [*project.journals.plans(), *shown], otherwise)


def _recorded(project: Project, typed: str) -> RunState | None:
    """The last run of the plan with this id, or of the only one that was read from this path."""
    if typed in project.journals.plans():
        return project.journals.last_run(typed)
    path = project.path_of(typed)
    if not os.path.exists(path):  # noqa: PTH110  also for a name that is too long
        return None
    shown = _shown(project, path)
    having: list[RunState] = []
    for plan_id in project.journals.plans():
        # A journal that cannot be read is an error of its own plan only.
        with suppress(WindlassError):
            state = project.journals.last_run(plan_id)
            having += [state] if state is not None and state.plan.path == shown else []
    return having[0] if len(having) == 1 else None


def _loaded(project: Project, path: Path, shown: str, dialect: str | None) -> Plan:
    files = project.files.plan_files()
    files.read(path, shown)
    files.read_also(refers_to(shown, files.texts, dialect=dialect))
    plan = load(shown, files.texts, dialect=dialect)
    return replace(plan, notes=(*plan.notes, *files.notes))


def _shown(project: Project, path: Path) -> str:
    """The path relative to the repository if it is inside, so that it is the same everywhere."""
    try:
        return str(path.resolve().relative_to(project.root.resolve()))
    except ValueError:
        return str(path)


def _own_id(project: Project, plan: Plan) -> str:
    """The plan's id, with a suffix from its path if another plan here has that id already."""
    other = project.journals.last_run(plan.id) if plan.id in project.journals.plans() else None
    if other is None or other.plan.path == plan.path:
        return plan.id
    if not (project.root / other.plan.path).exists():
        return plan.id
    return id_beside_others(plan)


def id_beside_others(plan: Plan) -> str:
    """The plan's id with a suffix, because another plan has the id already."""
    suffix = hashlib.sha256(plan.path.encode()).hexdigest()[:6]
    return f"{plan.id[:57]}-{suffix}"


def _only_unfinished(project: Project, cure: str | None) -> str:
    found = [project.journals.last_run(plan_id) for plan_id in project.journals.plans()]
    states = [state for state in found if state is not None]
    open_runs = [state for state in states if not is_finished(state)]
    if len(open_runs) == 1:
        return open_runs[0].plan.id
    if open_runs:
        raise BadInput(f"several runs are unfinished: {_listed(open_runs)}", hint="name the plan")
    if not states:
        raise never_run(project, "there is no unfinished run here")
    cure = cure or _how_to_take_up(project, states) or "start one: windlass run PLAN"
    raise BadInput(f"there is no unfinished run here: {_listed(states)}", hint=cure)


def _how_to_take_up(project: Project, states: list[RunState]) -> str:
    """How the first complete run with an edited plan gets the edits; empty if there is none."""
    for state in states:
        plan, path = plan_now(project, state.plan), state.plan.path
        typed = path if project.directory == project.root else state.plan.id
        if isinstance(plan, Plan) and (how := how_to_take_up(state, plan, typed)):
            return how
    return ""


def plan_never_run(project: Project, plan_id: str, typed: str) -> BadInput:
    """The error for a plan without a journal; git may have its runs."""
    if pinned := plans_in_git(project).get(plan_id):
        return BadInput(
            f"plan {plan_id!r} has no journal, and git has run {', '.join(pinned)} of it",
            hint=f"rebuild it: windlass recover {plan_id}",
        )
    why, hint = f"plan {plan_id!r} was never run here", f"start it: windlass run {typed}"
    return BadInput(why, about=plan_id, hint=hint)


def never_run(project: Project, why: str = "no plan was run here yet") -> BadInput:
    """The error if there is no journal at all; git may have runs."""
    pinned = plans_in_git(project)
    if pinned:
        lost = f"git has runs of {', '.join(pinned)}, and their journals are gone"
        return BadInput(f"{why}: {lost}", hint=f"rebuild it: windlass recover {min(pinned)}")
    return BadInput(why, hint="start one: windlass run PLAN")


def _listed(states: list[RunState]) -> str:
    return ", ".join(f"{state.plan.id} ({run_status(state)})" for state in states)
