"""`windlass take TASK`."""

from pathlib import Path

import click

from windlass.app.take import take
from windlass.cli.options import json_option, print_result, project_at, repo_option
from windlass.cli.process import forget_secrets


@click.command("take")
@click.argument("task")
@json_option
@repo_option
def command(task: str, as_json: bool, repo: Path) -> int:  # noqa: FBT001
    """Work on TASK yourself, in place of a Player.

    Prints the path of the task's workspace, which holds the work done so far. Edit there, commit
    as you like, and hand it back with `windlass give`: Windlass then checks, reviews and merges it
    like a Player's work, with your commits as they are. If an agent works on the task, wait for
    its turn to end or stop the run first. TASK may be written PLAN:TASK.

    \b
    Example:
      cd "$(windlass take 1.2)"
    """  # noqa: D301
    project = project_at(repo)
    forget_secrets()
    taken = take(project, task)
    # stdout is for `cd "$(…)"`; people read stderr.
    print_result(taken, str(taken.workspace), as_json=as_json)
    subject = f"{taken.plan}:{taken.task}"
    hint = f"""{taken.task} is yours. Work in that folder, and commit there as you like. Then:
  windlass give {subject}            hand it back, to be checked, reviewed and merged
  windlass reset {subject}           or start it again from the tip"""
    if project.journals.live_pid(taken.plan) is None:
        hint += f"\nand continue the run: windlass resume {taken.plan}"
    click.echo(hint, err=True)
    return 0
