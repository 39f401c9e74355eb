"""Find the run that continue-here names. It is only a pointer; the journal has the rest."""

from windlass.app.wiring import Project
from windlass.errors import BadInput
from windlass.views.closing import Pointer, pointer
from windlass.views.outcome import is_finished, run_status
from windlass.views.words import one_line


def paused_plan(project: Project) -> str | None:
    """The plan whose workspace this is, or else the one whose unfinished run continue-here names.

    A file that names no unfinished run is ignored, with a notice.
    """
    if project.here is not None:
        return project.here.plan
    found: dict[str, str] = {}
    for path, text in project.files.continue_here().items():
        named = pointer(text)
        why = _why_not(project, named) if named is not None else "names no plan and no run"
        if named is None or why is not None:
            project.notice(f"{path} {why}; ignored")
        else:
            found[named.plan] = path
    if len(found) > 1:
        listed = ", ".join(f"{plan} ({path})" for plan, path in found.items())
        raise BadInput(f"several runs are paused: {listed}", hint="name the plan")
    return next(iter(found), None)


def _why_not(project: Project, named: Pointer) -> str | None:
    """Why the pointer cannot be used; None if it can."""
    shown = f"names run {one_line(named.run, 40)} of {one_line(named.plan, 64)!r}"
    if named.plan not in project.journals.plans():
        return f"{shown}, which was never run here"
    state = project.journals.last_run(named.plan)
    if state is None or state.run != named.run:
        last = f": the last run of it is {state.run}" if state is not None else ""
        return f"{shown}, which is not the last one{last}"
    return f"{shown}, which is {run_status(state)}" if is_finished(state) else None
