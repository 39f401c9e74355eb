"""A finished run: what is left to do, and how to start again."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from windlass.app.wiring import Project
from windlass.app.wiring.configuration import option, unlike_run
from windlass.app.wiring.facts import state_file_position
from windlass.app.wiring.recovering import plans_in_git
from windlass.core.plan import Plan
from windlass.core.scheduler.late_edits import newly_stale
from windlass.core.state import RunState
from windlass.errors import BadInput
from windlass.views.edits import edited
from windlass.views.lines import Line
from windlass.views.outcome import is_finished, run_status
from windlass.views.steps import has_landed, how_to_take_up, listed, next_steps
from windlass.views.words import plural


def completion_lines(
    project: Project, state: RunState, typed: str, options: Mapping[str, Any]
) -> tuple[Line, ...]:
    """The lines of `run` for a plan whose run is complete, with the next commands.

    `options` are settings by key. Those that ask for something else than was done are ignored.
    """
    ground = project.git.ground(state)
    landed = has_landed(state, ground)
    where = "landed" if landed else "not landed yet"
    merged = plural(len(state.done), "task")
    text = f"run {state.run} is complete: {merged} merged, {where}; nothing to do"
    again = f"`windlass run {typed} --restart` runs it all again"
    first, *more = listed(next_steps(state, plan=typed, ground=ground))
    ignored = [Line("Ignored", each) for each in _ignored(state, typed, options, landed=landed)]
    return (Line("Complete", text, (again,)), *ignored, Line("Next", first, tuple(more)))


def _ignored(
    state: RunState, typed: str, options: Mapping[str, Any], *, landed: bool
) -> Iterator[str]:
    """A line for options that nothing uses, with the command that does what they ask."""
    given = unlike_run(options, state.settings)
    if given.pop("land", False) and not landed:
        yield f"--land: the run is complete; `windlass land {typed}` lands it"
    if given:
        listed_options = " ".join(option(key, value) for key, value in given.items())
        again = f"`windlass run {typed} --restart {listed_options}`"
        yield f"{listed_options}: the run is complete; {again} runs it all again"


def refuse_nothing_to_resume(
    project: Project, plan: Plan, typed: str, before: RunState | None, last: int
) -> None:
    """Raise if the plan has no run that `resume` could continue; `last` ends its journal."""
    if before is not None and not is_over(project, before, last):
        return
    why = "was never run here" if before is None else f"is {run_status(before)}"
    take_up = how_to_take_up(before, plan, typed) if before is not None else ""
    cure = _how_to_start(project, before, typed, lands=not take_up)
    if take_up and before is not None:
        why = f"{why}, and {_edit(before, plan)}"
        cure = f"{take_up}; or {cure}"
    if before is None and plans_in_git(project).get(plan.id):
        why = "has no journal, and git has a run of it"
        cure = f"rebuild it from git: windlass recover {plan.id}"
    raise BadInput(f"nothing to resume: plan {plan.id!r} {why}", hint=cure)


def _edit(before: RunState, plan: Plan) -> str:
    """What was edited in the plan of a complete run."""
    added, stale = edited(before, plan).added, newly_stale(before, plan)
    new = f"{', '.join(added)} {'was' if len(added) == 1 else 'were'} added" if added else ""
    changed = f"the text of {', '.join(stale)} has changed" if stale else ""
    return f"{' and '.join(filter(None, (new, changed))) or 'its plan was edited'} since"


def _how_to_start(project: Project, before: RunState | None, typed: str, *, lands: bool) -> str:
    if before is None or before.given_up:
        return f"start a new one: windlass run {typed}"
    if lands and before.merges and not has_landed(before, project.git.ground(before)):
        return (
            f"land it: windlass land {typed}; or run it all again: windlass run {typed} --restart"
        )
    return f"run it all again: windlass run {typed} --restart"


def is_over(project: Project, state: RunState, last: int) -> bool:
    """Whether nothing is left to do for the run; `last` ends its journal."""
    return is_finished(state) and _is_cleared(project, state, last)


def _is_cleared(project: Project, state: RunState, last: int) -> bool:
    """Whether its state files, if any, are current and none of its checkouts is left.

    A process may have been killed right after the run ended, and a power loss can bring back
    folders that were removed.
    """
    folders = project.folders(state.plan.id)
    left = (*map(folders.workspace, state.in_tip), *_inside(folders.throwaway))
    is_current = state_file_position(project, state.plan.id, state.run) in {0, last}
    return is_current and not any(path.exists() for path in left)


def _inside(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []
