"""`windlass abort [PLAN]`."""

from pathlib import Path

import click

from windlass.app.rest import abort
from windlass.cli.options import json_option, print_result, project_at, repo_option, yes_option
from windlass.cli.person import person


@click.command("abort")
@click.argument("plan", required=False)
@yes_option
@json_option
@repo_option
def command(plan: str | None, yes: bool, as_json: bool, repo: Path) -> int:  # noqa: FBT001
    """Abort the run of PLAN: it ends as failed and cannot be resumed. Asks first.

    Merged work stays on the integration branch, other work stays pinned, and workspaces stay until
    `windlass clean`. `windlass run PLAN` starts a new run. To rest and continue later, use
    `windlass stop` or `windlass pause`.

    \b
    Example:
      windlass abort docs/plan.md
      windlass abort docs/plan.md --yes      # for scripts
    """  # noqa: D301
    done = abort(project_at(repo), plan, confirmed=yes, person=person())
    return print_result(done, done.message, as_json=as_json)
