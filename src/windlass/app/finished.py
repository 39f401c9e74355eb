"""A run that is over: what is left to do for it, and how to begin again."""

from pathlib import Path

from windlass.app.wiring import Project
from windlass.app.wiring.facts import told_until
from windlass.app.wiring.recovering import plans_in_git
from windlass.core.plan import Plan
from windlass.core.scheduler.late_edits import newly_stale
from windlass.core.state import RunState
from windlass.errors import BadInput
from windlass.views.lines import Line
from windlass.views.outcome import is_finished, run_status
from windlass.views.steps import has_landed, how_to_settle, listed, next_steps
from windlass.views.words import plural


def completion_lines(project: Project, state: RunState, typed: str) -> tuple[Line, ...]:
    """What `run` says of a plan whose run is complete, with the next commands."""
    ground = project.git.ground(state)
    where = "landed" if has_landed(state, ground) else "not landed yet"
    merged = plural(len(state.done), "task")
    text = f"run {state.run} is complete: {merged} merged, {where}; nothing is to be done"
    again = f"`windlass run {typed} --restart` runs it all again"
    first, *more = listed(next_steps(state, plan=typed, ground=ground))
    return (Line("Complete", text, (again,)), Line("Next", first, tuple(more)))


def refuse_nothing_to_resume(
    project: Project, plan: Plan, typed: str, before: RunState | None, last: int
) -> None:
    """Raise where a plan has no run that `resume` could continue; `last` ends its journal."""
    if before is not None and not (is_finished(before) and _is_cleared(project, before, last)):
        return
    why = "was never run here" if before is None else f"is {run_status(before)}"
    stale = newly_stale(before, plan) if before is not None else ()
    cure = _how_to_begin(project, before, typed, takes=not stale)
    if stale and before is not None and not before.given_up:
        why = f"{why}, and the text of {', '.join(stale)} has changed since"
        cure = f"{how_to_settle(before, stale)}; or {cure}"
    if before is None and plans_in_git(project).get(plan.id):
        why = "has no journal, and git has a run of it"
        cure = f"rebuild it from git: windlass recover {plan.id}"
    raise BadInput(f"there is nothing to resume: plan {plan.id!r} {why}", hint=cure)


def _how_to_begin(project: Project, before: RunState | None, typed: str, *, takes: bool) -> str:
    if before is None or before.given_up:
        return f"start a new one: windlass run {typed}"
    lands = takes and before.merges and not has_landed(before, project.git.ground(before))
    take = f"take it: windlass land {typed}; or " if lands else ""
    return f"{take}run it all again: windlass run {typed} --restart"


def _is_cleared(project: Project, state: RunState, last: int) -> bool:
    """Whether its state files, if any, are current and none of its checkouts is left.

    A process may have been killed right after the run ended, and a power loss can bring back
    folders that were removed.
    """
    folders = project.folders(state.plan.id)
    left = (*map(folders.workspace, state.in_tip), *_inside(folders.throwaway))
    is_current = told_until(project, state.plan.id, state.run) in {0, last}
    return is_current and not any(path.exists() for path in left)


def _inside(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []
