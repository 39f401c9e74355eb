"""`windlass retry TASK|STAGE`."""

from pathlib import Path

import click

from windlass.app.say import retry
from windlass.cli.options import project_at, repo_option


@click.command("retry", short_help="Have a task or a stage done once more")
@click.argument("task", metavar="TASK|STAGE")
@repo_option
def command(task: str, repo: Path) -> int:
    """Have TASK done once more, which was abandoned, or merged for what the plan said before.

    An abandoned task goes on from the work that was kept, with a new allowance of turns. A merged
    one begins anew from the tip, and what was merged stays until the new work replaces it: where
    the plan still says the same and nobody finds anything to change, it stands. Of a STAGE every
    task that is merged or abandoned is done once more. A live run goes on at once, a stopped one
    with `windlass resume`. TASK may be written PLAN:TASK.
    """
    click.echo(retry(project_at(repo), task))
    return 0
