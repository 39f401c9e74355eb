"""`windlass stop [PLAN]`."""

from pathlib import Path

import click

from windlass.app.rest import stop
from windlass.cli.options import project_at, repo_option


@click.command("stop")
@click.argument("plan", required=False)
@repo_option
def command(plan: str | None, repo: Path) -> int:
    """Stop the run of PLAN: stop its agents and keep their work; `windlass resume` continues it.

    If the run's process has died, it is recorded as stopped.
    """
    click.echo(stop(project_at(repo), plan).message)
    return 0
