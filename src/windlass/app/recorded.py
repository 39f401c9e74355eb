"""Names of plans and tasks for callers from outside: MCP clients, a page.

Law: no file is opened because a caller names it. A plan must have been run here, and is named by
its id or by the path it was run with.
"""

from windlass.app.wiring import Project
from windlass.core.nearest import did_you_mean
from windlass.core.state import RunState
from windlass.errors import BadInput
from windlass.views.words import one_line

_WIDTH = 80


def recorded_plan(project: Project, typed: str | None) -> str:
    """The plan with that id or path; without a name, the only live one or the only one."""
    plans = project.journals.plans()
    if typed is None and project.here is not None:
        typed = project.here.plan
    if typed is None:
        live = [each for each in plans if project.journals.live_pid(each) is not None]
        for few in (live, plans):
            if len(few) == 1:
                return few[0]
        raise BadInput(f"name a plan: {', '.join(plans) or 'none was run here yet'}")
    if typed in plans:
        return typed
    for plan_id in plans:
        state = project.journals.last_run(plan_id)
        if state is not None and state.plan.path == typed:
            return plan_id
    known = ", ".join(plans) or "none yet"
    raise BadInput(
        f"no plan {one_line(typed, _WIDTH)!r} was run here; known plans: {known}",
        hint=did_you_mean(typed, plans),
    )


def recorded_task(project: Project, typed: str, *, stages: bool = False) -> tuple[RunState, str]:
    """The task (or stage) named TASK or PLAN:TASK, and the last run of its plan."""
    plans = project.journals.plans()
    named = [p for p in plans if typed.startswith(f"{p}:")]
    pairs = [(p, typed[len(p) + 1 :]) for p in named] + [(p, typed) for p in plans]
    found: list[tuple[RunState, str]] = []
    for plan_id, name in pairs:
        state = project.journals.last_run(plan_id)
        if state is None:
            continue
        if name in state.tasks or (stages and name in state.index.stages):
            found.append((state, name))
    if len(found) == 1:
        return found[0]
    shown = one_line(typed, _WIDTH)
    if found:
        ways = ", ".join(f"{state.plan.id}:{name}" for state, name in found)
        raise BadInput(f"several plans have a task {shown!r}; say which: {ways}")
    states = filter(None, map(project.journals.last_run, plans))
    known = (id_ for state in states for id_ in state.tasks)
    cure = did_you_mean(typed, known)
    raise BadInput(f"no plan that was run here has a task {shown!r}", hint=cure)
