"""`windlass pause [PLAN]`."""

from pathlib import Path

import click

from windlass.app.rest import pause
from windlass.cli.options import project_at, repo_option


@click.command("pause")
@click.argument("plan", required=False)
@click.option("--now", is_flag=True, help="Stop agents now, and keep their work so far")
@repo_option
def command(plan: str | None, now: bool, repo: Path) -> int:  # noqa: FBT001
    """Pause the run of PLAN: turns that have started finish, then the run stops.

    Returns at once; the run reports when it has paused. It writes where it stopped to
    .windlass/continue-here (for a SpecFlow spec to .specflow/.continue-here), which
    `windlass resume` without PLAN reads. If the run's process has died, it is recorded as paused.
    """
    click.echo(pause(project_at(repo), plan, now=now).message)
    return 0
