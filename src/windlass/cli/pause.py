"""`windlass pause [PLAN]`."""

from pathlib import Path

import click
from msgspec.structs import replace

from windlass.cli.options import repo_option
from windlass.cli.resting import Rest, bring_to_rest
from windlass.events.model import RunEnd

PAUSE = Rest(
    message="pause",
    end=RunEnd.PAUSED,
    name="pause",
    asked="pause: turns that have begun come to their end first (--now ends them).\n"
    "Where it stands is then written to continue-here; `windlass resume` goes on.",
    recorded="it is recorded as paused; `windlass resume` goes on.",
)


PAUSE_NOW = replace(
    PAUSE, message="pause_now", asked="pause at once; `windlass resume` goes on with it."
)


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
    return bring_to_rest(repo, plan, PAUSE_NOW if now else PAUSE)
