"""`windlass approve TASK|STAGE`."""

import os
from pathlib import Path

import click

from windlass.cli.acceptance import accept, is_stale
from windlass.cli.finding import find_task
from windlass.cli.options import repo_option
from windlass.cli.saying import say
from windlass.cli.wiring import Project


@click.command("approve", short_help="Let a task start, accept a stale one, or pass a stage")
@click.argument("task", metavar="TASK|STAGE")
@repo_option
def command(task: str, repo: Path) -> int:
    """Let TASK start, which is too complex to start unasked (complexity 7 or more).

    Or accept TASK where it is stale: it was merged for an older text of the plan, and you say that
    what is merged will do for the text that the plan has now. That is recorded with your name and
    that text; after another edit the task is stale again. The checks of the new text must still
    pass on the tip before the run is complete, and approve names those that do not.

    Or let the stage of that name pass which did not verify: the next begins all the same. A live
    run goes on at once, a stopped one with `windlass resume`. TASK may be written PLAN:TASK.
    """
    project = Project(repo.resolve(), dict(os.environ))
    state, subject = find_task(project, task, stages=True)
    if is_stale(project, state, subject):
        click.echo(accept(project, state, subject))
        return 0
    return say(project, task, "approve", stages=True)
