"""`windlass approve TASK|STAGE`."""

from pathlib import Path

import click

from windlass.app.acceptance import approve
from windlass.cli.options import project_at, repo_option


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
    project = project_at(repo)
    click.echo(approve(project, task))
    return 0
