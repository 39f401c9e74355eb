"""`windlass stop [PLAN]`."""

from pathlib import Path

import click

from windlass.cli.options import repo_option
from windlass.cli.resting import Rest, bring_to_rest
from windlass.events.model import RunEnd

STOP = Rest(
    message="stop",
    end=RunEnd.STOPPED,
    name="stop",
    asked="stop; `windlass resume` goes on with it.",
    recorded="it is recorded as stopped.",
)


@click.command("stop", short_help="Stop a live run; it can be resumed")
@click.argument("plan", required=False)
@repo_option
def command(plan: str | None, repo: Path) -> int:
    """Stop the run of PLAN: agents are ended, what they did so far is kept, resume goes on.

    Of a run whose process is gone already, it records that it was stopped.
    """
    return bring_to_rest(repo, plan, STOP)
