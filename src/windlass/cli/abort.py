"""`windlass abort [PLAN]`."""

from pathlib import Path

import click

from windlass.app.rest import abort
from windlass.cli.options import project_at, repo_option


@click.command("abort")
@click.argument("plan", required=False)
@repo_option
def command(plan: str | None, repo: Path) -> int:
    """Abort the run of PLAN: it ends as failed and cannot be resumed.

    Merged work stays on the integration branch, other work stays pinned, and workspaces stay until
    `windlass clean`. `windlass run PLAN` starts a new run.
    """
    click.echo(abort(project_at(repo), plan).message)
    return 0
