"""`windlass reset TASK`."""

from pathlib import Path

import click

from windlass.app.say import reset
from windlass.cli.options import project_at, repo_option


@click.command("reset")
@click.argument("task")
@click.option("--undo", is_flag=True, help="Undo the reset, if no work has started since")
@repo_option
def command(task: str, undo: bool, repo: Path) -> int:  # noqa: FBT001
    """Start TASK again from the tip, without the work done so far.

    Nothing is lost: every commit stays pinned, the workspace is kept under another name, and merged
    work stays until the new work replaces it. Until new work starts, --undo restores the task. A
    live run continues at once, a stopped one with `windlass resume`. TASK may be written PLAN:TASK.
    """
    click.echo(reset(project_at(repo), task, undo=undo).message)
    return 0
