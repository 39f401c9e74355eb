"""`windlass give TASK`."""

import os
from pathlib import Path

import click

from windlass.cli.options import repo_option
from windlass.cli.saying import say
from windlass.cli.wiring import Project


@click.command("give", short_help="Hand a task back that you had taken")
@click.argument("task")
@click.option("--message", metavar="TEXT", default="", help="Tell the Coach what you did")
@repo_option
def command(task: str, message: str, repo: Path) -> int:
    """Hand TASK back, which you had taken with `windlass take`.

    What its workspace holds is checked, reviewed and merged like a Player's work. Commits of yours
    are kept as you made them; what you left uncommitted becomes one more. A live run goes on at
    once, a stopped one with `windlass resume`. TASK may be written PLAN:TASK.
    """
    return say(Project(repo.resolve(), dict(os.environ)), task, "give", message)
