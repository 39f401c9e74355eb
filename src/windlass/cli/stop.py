"""`windlass stop [PLAN]`."""

from pathlib import Path

import click

from windlass.app.rest import stop
from windlass.cli.options import json_option, print_result, project_at, repo_option


@click.command("stop")
@click.argument("plan", required=False)
@json_option
@repo_option
def command(plan: str | None, as_json: bool, repo: Path) -> int:  # noqa: FBT001
    """Stop the run of PLAN; `windlass resume` continues it.

    Its agents stop now, and their work so far is kept. If the run's process has died, it is
    recorded as stopped.

    \b
    Example:
      windlass stop
    """  # noqa: D301
    done = stop(project_at(repo), plan)
    return print_result(done, done.message, as_json=as_json)
