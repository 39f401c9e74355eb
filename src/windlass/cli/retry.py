"""`windlass retry TASK|STAGE`."""

from pathlib import Path

import click

from windlass.app.say import retry
from windlass.cli.options import project_at, repo_option


@click.command("retry")
@click.argument("task", metavar="TASK|STAGE")
@repo_option
def command(task: str, repo: Path) -> int:
    """Retry TASK if it was abandoned, or redo it if it was merged for an older text of the plan.

    An abandoned task continues from its kept work, with new turns. A merged task starts again from
    the tip; the merged work stays until new work replaces it, or for good if there is nothing to
    change. For a STAGE, every merged or abandoned task is redone. A live run continues at once, a
    stopped one with `windlass resume`. TASK may be written PLAN:TASK.
    """
    click.echo(retry(project_at(repo), task).message)
    return 0
