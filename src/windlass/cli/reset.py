"""`windlass reset TASK`."""

from pathlib import Path

import click

from windlass.app.say import reset
from windlass.cli.options import json_option, print_result, project_at, repo_option


@click.command("reset")
@click.argument("task")
@click.option("--undo", is_flag=True, help="Undo the reset, if no work has started since")
@json_option
@repo_option
def command(task: str, undo: bool, as_json: bool, repo: Path) -> int:  # noqa: FBT001
    """Start TASK again from the tip, without the work done so far.

    Nothing is lost: every commit stays pinned, the workspace is kept under another name, and
    merged work stays until the new work replaces it. Until new work starts, --undo restores the
    task. A live run continues at once, a stopped one with `windlass resume`. TASK may be written
    PLAN:TASK.

    \b
    Examples:
      windlass reset 1.3
      windlass reset 1.3 --undo
    """  # noqa: D301
    done = reset(project_at(repo), task, undo=undo)
    return print_result(done, done.message, as_json=as_json)
