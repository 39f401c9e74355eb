"""`windlass diff TASK`."""

import os
import sys
from pathlib import Path

import click

from windlass.cli.finding import find_task
from windlass.cli.options import repo_option
from windlass.cli.wiring import Project
from windlass.errors import BadInput


@click.command("diff", short_help="Show what a task changed")
@click.argument("task")
@click.option("--stat", is_flag=True, help="Show only which files, and how much")
@repo_option
def command(task: str, stat: bool, repo: Path) -> int:  # noqa: FBT001
    """Show what TASK changed: its newest commit against the commit it started from.

    TASK may be written PLAN:TASK where several plans were run here.
    """
    project = Project(repo.resolve(), dict(os.environ))
    state, task_id = find_task(project, task)
    found = state.tasks[task_id]
    if found.head is None:
        raise BadInput(f"task {task_id!r} has not been started", hint="`windlass status` shows all")
    what = ("--stat",) if stat else ("--patch", "--stat")
    colour = "--color=always" if sys.stdout.isatty() else "--color=never"
    safe = ("--no-ext-diff", "--no-textconv", colour)
    sys.stdout.write(project.git("diff", *safe, *what, found.attempts[0].start, found.head, "--"))
    return 0
