"""`windlass give [TASK]`."""

from pathlib import Path

import click

from windlass.app.say import give
from windlass.cli.options import project_at, repo_option


@click.command("give")
@click.argument("task", required=False)
@click.option("--message", metavar="TEXT", default="", help="Tell the Coach what you did")
@repo_option
def command(task: str | None, message: str, repo: Path) -> int:
    """Hand back TASK, which you took with `windlass take`.

    Windlass checks, reviews and merges your work like a Player's. Your commits stay as they are;
    uncommitted changes become one more commit. A live run continues at once, a stopped one with
    `windlass resume`. TASK may be written PLAN:TASK; inside its workspace you can leave it out.
    """
    click.echo(give(project_at(repo), task, message).message)
    return 0
