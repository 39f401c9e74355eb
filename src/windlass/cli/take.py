"""`windlass take TASK`."""

from pathlib import Path

import click

from windlass.app.take import take
from windlass.cli.options import project_at, repo_option
from windlass.cli.process import forget_secrets


@click.command("take", short_help="Work on a task yourself, in its workspace")
@click.argument("task")
@repo_option
def command(task: str, repo: Path) -> int:
    """Work on TASK yourself, in a Player's place.

    Prints the folder of its workspace, with all that was done for it so far. Edit there, commit as
    you like, and hand it back with `windlass give`: it is then checked, reviewed and merged like a
    Player's work, with your commits as you made them. What an agent is at work on must come to its
    end first, or be stopped. TASK may be written PLAN:TASK.

    \b
    cd "$(windlass take 1.2)"
    """  # noqa: D301
    project = project_at(repo)
    forget_secrets()
    taken = take(project, task)
    # The folder for programs, the rest for people.
    click.echo(str(taken.workspace))
    subject = f"{taken.plan}:{taken.task}"
    told = f"""{taken.task} is yours. Work in that folder, and commit there as you like. Then:
  windlass give {subject}            hand it back, to be checked, reviewed and merged
  windlass reset {subject}           have it begin anew instead"""
    if project.journals.live_pid(taken.plan) is None:
        told += f"\nand go on with: windlass resume {taken.plan}"
    click.echo(told, err=True)
    return 0
