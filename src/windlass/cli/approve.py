"""`windlass approve TASK|STAGE`."""

import os
from pathlib import Path

import click

from windlass.cli.options import repo_option
from windlass.cli.saying import say
from windlass.cli.wiring import Project


@click.command("approve", short_help="Let a complex task start, or a stage pass")
@click.argument("task", metavar="TASK|STAGE")
@repo_option
def command(task: str, repo: Path) -> int:
    """Let TASK start, which is too complex to start unasked (complexity 7 or more).

    Or let the stage of that name pass which did not verify: the next begins all the same. A live
    run goes on at once, a stopped one with `windlass resume`. TASK may be written PLAN:TASK.
    """
    return say(Project(repo.resolve(), dict(os.environ)), task, "approve", stages=True)
