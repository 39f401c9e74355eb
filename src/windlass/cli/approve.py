"""`windlass approve TASK|STAGE`."""

from pathlib import Path

import click

from windlass.app.acceptance import approve
from windlass.cli.options import project_at, repo_option


@click.command("approve")
@click.argument("task", metavar="TASK|STAGE")
@repo_option
def command(task: str, repo: Path) -> int:
    """Let TASK start that needs approval because of its complexity (7 or more).

    If TASK is stale, that is, merged for an older text of the plan: accept the merged work for the
    current text. Windlass records your name and that text; after another edit the task is stale
    again. The checks of the new text must still pass on the tip before the run is complete, and
    approve lists those that do not.

    If a STAGE did not verify: let it pass, so that the next one starts.

    A live run continues at once, a stopped one with `windlass resume`. TASK may be written
    PLAN:TASK.
    """
    click.echo(approve(project_at(repo), task).message)
    return 0
