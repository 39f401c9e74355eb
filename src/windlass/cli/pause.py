"""`windlass pause [PLAN]`."""

from pathlib import Path

import click

from windlass.app.rest import pause
from windlass.cli.options import project_at, repo_option


@click.command("pause", short_help="Pause a live run at the end of its turns")
@click.argument("plan", required=False)
@click.option("--now", is_flag=True, help="End agents now, and keep what they did so far")
@repo_option
def command(plan: str | None, now: bool, repo: Path) -> int:  # noqa: FBT001
    """Pause the run of PLAN: every turn that has begun comes to its end, then the run rests.

    It returns at once, and the run says when it rests. Where it stands and how to go on is then
    in .windlass/continue-here (for a SpecFlow spec in .specflow/.continue-here), which
    `windlass resume` without PLAN follows. Of a run whose process is gone already, it records that
    it is paused.
    """
    click.echo(pause(project_at(repo), plan, now=now))
    return 0
