"""`diff`: what a task changed, against the commit that it started from."""

from msgspec import Struct

from windlass.app.plans import find_task, task_here
from windlass.app.wiring import Project
from windlass.core.state import RunState
from windlass.errors import BadInput

_SAFE = ("--no-ext-diff", "--no-textconv", "--color=never")


class Diff(Struct, frozen=True, kw_only=True):
    """What a task changed."""

    plan: str
    task: str
    start: str
    """The commit it started from."""
    end: str
    """Its newest commit."""
    text: str
    """The output of git; bytes that are not UTF-8 are surrogates."""


def diff(project: Project, task: str | None = None, *, stat: bool = False) -> Diff:
    """What a task changed: a patch with its statistics, or with `stat` the statistics alone.

    The task is written TASK or PLAN:TASK; inside its workspace it may be left out.
    """
    state, task_id = find_task(project, task or task_here(project, "diff"))
    return diff_of(project, state, task_id, stat=stat)


def diff_of(project: Project, state: RunState, task_id: str, *, stat: bool) -> Diff:
    found = state.tasks[task_id]
    if found.head is None:
        raise BadInput(f"task {task_id!r} has not been started", hint="`windlass status` shows all")
    start, end = found.attempts[0].start, found.head
    what = ("--stat",) if stat else ("--patch", "--stat")
    text = project.git.ask("diff", *_SAFE, *what, start, end, "--")
    return Diff(plan=state.plan.id, task=task_id, start=start, end=end, text=text)
