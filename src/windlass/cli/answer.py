"""`windlass answer TASK TEXT`."""

from pathlib import Path

import click

from windlass.app.say import answer
from windlass.cli.options import project_at, repo_option


@click.command("answer")
@click.argument("task")
@click.argument("text")
@repo_option
def command(task: str, text: str, repo: Path) -> int:
    """Answer the question of TASK, or tell it how to continue; its later agents see the answer.

    A live run continues at once, a stopped one with `windlass resume`. TASK may be written
    PLAN:TASK.
    """
    click.echo(answer(project_at(repo), task, text).message)
    return 0
