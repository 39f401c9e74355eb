"""`diff`: what a task changed, or a whole run."""

from msgspec import Struct

from windlass.app.plans import find_task, last_run, newest_plan, task_here
from windlass.app.wiring import Project
from windlass.core.state import RunState
from windlass.core.state.work import change_of
from windlass.errors import BadInput

_SAFE = ("--no-ext-diff", "--no-textconv", "--color=never")


class Diff(Struct, frozen=True, kw_only=True):
    """What a task or a run changed."""

    plan: str
    task: str
    """Empty for the whole run."""
    start: str
    """The commit it started from."""
    end: str
    """Its newest commit."""
    text: str
    """The output of git; bytes that are not UTF-8 are surrogates."""


def diff(project: Project, what: str | None = None, *, stat: bool = False) -> Diff:
    """What a task or a run changed: a patch with its statistics, or `stat` for those alone.

    `what` is a task, written TASK or PLAN:TASK, or a plan, for the merged work of its last run.
    Without it: the task whose workspace this is, else the only unfinished run, else the newest.
    """
    if what is None and project.here is not None:
        return diff_of(project, *find_task(project, task_here(project, "diff")), stat=stat)
    if what is None:
        return diff_of_run(project, last_run(project, newest_plan(project)), stat=stat)
    if what in project.journals.plans() and not _is_task(project, what):
        return diff_of_run(project, last_run(project, what), stat=stat)
    return diff_of(project, *find_task(project, what), stat=stat)


def diff_of(project: Project, state: RunState, task_id: str, *, stat: bool) -> Diff:
    found = state.tasks[task_id]
    if found.head is None:
        raise BadInput(f"task {task_id!r} has not been started", hint="`windlass status` shows all")
    start, end = change_of(found) or (found.attempts[0].start, found.head)
    text = _patch(project, start, end, stat=stat)
    return Diff(plan=state.plan.id, task=task_id, start=start, end=end, text=text)


def diff_of_run(project: Project, state: RunState, *, stat: bool) -> Diff:
    """All merged work of a run, against the commit that it started from."""
    if not state.merges:
        raise BadInput(
            f"nothing of {state.plan.id!r} is merged yet",
            hint="`windlass diff TASK` shows what a task has changed so far",
        )
    text = _patch(project, state.base, state.tip, stat=stat)
    return Diff(plan=state.plan.id, task="", start=state.base, end=state.tip, text=text)


def _patch(project: Project, start: str, end: str, *, stat: bool) -> str:
    what = ("--stat",) if stat else ("--patch", "--stat")
    return project.git.ask("diff", *_SAFE, *what, start, end, "--")


def _is_task(project: Project, name: str) -> bool:
    """Whether the last run of some plan has a task of that name."""
    states = (project.journals.last_run(plan) for plan in project.journals.plans())
    return any(state is not None and name in state.tasks for state in states)
