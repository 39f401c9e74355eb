"""`windlass give [TASK]`."""

from pathlib import Path

import click

from windlass.app.say import give
from windlass.cli.options import json_option, print_result, project_at, repo_option


@click.command("give")
@click.argument("task", required=False)
@click.option("--message", metavar="TEXT", default="", help="Tell the Coach what you did")
@json_option
@repo_option
def command(task: str | None, message: str, as_json: bool, repo: Path) -> int:  # noqa: FBT001
    """Hand back TASK, which you took with `windlass take`.

    Windlass checks, reviews and merges your work like a Player's. Your commits stay as they are;
    uncommitted changes become one more commit. A live run continues at once, a stopped one with
    `windlass resume`. TASK may be written PLAN:TASK; inside its workspace you can leave it out.

    \b
    Example:
      windlass give 1.2 --message "Split the parser in two"
    """  # noqa: D301
    done = give(project_at(repo), task, message)
    return print_result(done, done.message, as_json=as_json)
