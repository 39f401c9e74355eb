"""`windlass diff TASK`."""

import os
import sys
from pathlib import Path

import click

from windlass.cli.finding import last_run
from windlass.cli.options import repo_option
from windlass.cli.wiring import Project, newest
from windlass.errors import BadInput
from windlass.state import RunState


@click.command("diff", short_help="Show what a task changed")
@click.argument("task")
@click.option("--stat", is_flag=True, help="Show only which files, and how much")
@repo_option
def command(task: str, stat: bool, repo: Path) -> int:  # noqa: FBT001
    """Show what TASK changed: its newest commit against the commit it started from.

    TASK may be written PLAN:TASK where several plans were run here.
    """
    project = Project(repo.resolve(), dict(os.environ))
    state, task_id = _find(project, task)
    found = state.tasks[task_id]
    if found.head is None:
        raise BadInput(f"task {task_id!r} has not been started", hint="`windlass status` shows all")
    what = ("--stat",) if stat else ("--patch", "--stat")
    colour = "--color=always" if sys.stdout.isatty() else "--color=never"
    safe = ("--no-ext-diff", "--no-textconv", colour)
    sys.stdout.write(project.git("diff", *safe, *what, found.attempts[0].start, found.head, "--"))
    return 0


def _find(project: Project, typed: str) -> tuple[RunState, str]:
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
