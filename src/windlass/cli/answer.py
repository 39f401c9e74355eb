"""`windlass answer TASK TEXT`."""

from pathlib import Path

import click

from windlass.app.say import answer
from windlass.cli.options import json_option, print_result, project_at, repo_option


@click.command("answer")
@click.argument("task")
@click.argument("text")
@json_option
@repo_option
def command(task: str, text: str, as_json: bool, repo: Path) -> int:  # noqa: FBT001
    """Answer the question of TASK, or tell it how to continue.

    Every later agent of the task gets the answer. A live run continues at once, a stopped one with
    `windlass resume`. TASK may be written PLAN:TASK.

    \b
    Example:
      windlass answer 1.3 "Keep the old signature"
    """  # noqa: D301
    done = answer(project_at(repo), task, text)
    return print_result(done, done.message, as_json=as_json)
