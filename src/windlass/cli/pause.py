"""`windlass pause [PLAN]`."""

from pathlib import Path

import click

from windlass.app.rest import pause
from windlass.cli.options import json_option, print_result, project_at, repo_option


@click.command("pause")
@click.argument("plan", required=False)
@click.option("--now", is_flag=True, help="Stop agents now, and keep their work so far")
@json_option
@repo_option
def command(plan: str | None, now: bool, as_json: bool, repo: Path) -> int:  # noqa: FBT001
    """Pause the run of PLAN: turns that have started finish, then the run stops.

    Returns at once; the run reports when it has paused. It writes where it stopped to
    .windlass/continue-here (for a SpecFlow spec to .specflow/.continue-here), which `windlass
    resume` without PLAN reads. If the run's process has died, it is recorded as paused.

    \b
    Examples:
      windlass pause
      windlass pause --now                   # do not wait for the turns to end
    """  # noqa: D301
    done = pause(project_at(repo), plan, now=now)
    return print_result(done, done.message, as_json=as_json)
