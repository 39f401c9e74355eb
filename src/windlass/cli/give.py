"""`windlass give [TASK]`."""

from pathlib import Path

import click

from windlass.app.plans import task_here
from windlass.app.say import give
from windlass.cli.options import project_at, repo_option


@click.command("give", short_help="Hand a task back that you had taken")
@click.argument("task", required=False)
@click.option("--message", metavar="TEXT", default="", help="Tell the Coach what you did")
@repo_option
def command(task: str | None, message: str, repo: Path) -> int:
    """Hand TASK back, which you had taken with `windlass take`.

    What its workspace holds is checked, reviewed and merged like a Player's work. Commits of yours
    are kept as you made them; what you left uncommitted becomes one more. A live run goes on at
    once, a stopped one with `windlass resume`. TASK may be written PLAN:TASK. Inside the task's
    workspace it may be left out.
    """
    project = project_at(repo)
    click.echo(give(project, task or task_here(project, "give"), message))
    return 0
