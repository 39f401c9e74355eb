"""`windlass reset TASK`."""

from pathlib import Path

import click

from windlass.app.say import reset
from windlass.cli.options import project_at, repo_option


@click.command("reset", short_help="Have a task begin anew from the tip")
@click.argument("task")
@click.option("--undo", is_flag=True, help="Take the reset back, while nobody has begun anew")
@repo_option
def command(task: str, undo: bool, repo: Path) -> int:  # noqa: FBT001
    """Have TASK begin anew from the tip, with nothing of what was done for it so far.

    Nothing is lost: every commit stays pinned, the workspace is kept under another name, and what
    was merged stays until the new work replaces it. Until somebody begins anew, --undo puts the
    task back to where it was. A live run goes on at once, a stopped one with `windlass resume`.
    TASK may be written PLAN:TASK.
    """
    click.echo(reset(project_at(repo), task, undo=undo))
    return 0
