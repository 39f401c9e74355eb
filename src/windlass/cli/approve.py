"""`windlass approve TASK`."""

import os
from pathlib import Path

import click

from windlass.cli.options import repo_option
from windlass.cli.saying import say
from windlass.cli.wiring import Project


@click.command("approve", short_help="Let a complex task start")
@click.argument("task")
@repo_option
def command(task: str, repo: Path) -> int:
    """Let TASK start, which is too complex to start unasked (complexity 7 or more).

    A live run goes on at once, a stopped one with `windlass resume`. TASK may be written PLAN:TASK.
    """
    return say(Project(repo.resolve(), dict(os.environ)), task, "approve")
