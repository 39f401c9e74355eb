"""`windlass abort [PLAN]`."""

from pathlib import Path

import click

from windlass.cli.options import repo_option
from windlass.cli.resting import Rest, bring_to_rest
from windlass.events.model import RunEnd

ABORT = Rest(
    message="abort",
    end=RunEnd.ABORTED,
    name="abort",
    asked="end for good; what was done stays pinned, and workspaces stay until `windlass clean`.",
    recorded="it is given up; what was done stays pinned, and workspaces until `windlass clean`.",
    any_unfinished=True,
)


@click.command("abort", short_help="Give a run up for good")
@click.argument("plan", required=False)
@repo_option
def command(plan: str | None, repo: Path) -> int:
    """Give the run of PLAN up: it ends as failed and cannot be resumed.

    What was merged stays on the integration branch, all other work stays pinned, and workspaces
    stay until `windlass clean`. `windlass run PLAN` starts a new run.
    """
    return bring_to_rest(repo, plan, ABORT)
