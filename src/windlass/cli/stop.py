"""`windlass stop [PLAN]`."""

from pathlib import Path

import click

from windlass.app.rest import stop
from windlass.cli.options import project_at, repo_option


@click.command("stop", short_help="Stop a live run; it can be resumed")
@click.argument("plan", required=False)
@repo_option
def command(plan: str | None, repo: Path) -> int:
    """Stop the run of PLAN: agents are ended, what they did so far is kept, resume goes on.

    Of a run whose process is gone already, it records that it was stopped.
    """
    click.echo(stop(project_at(repo), plan))
    return 0
