"""`windlass resume [PLAN]`."""

from pathlib import Path
from typing import Any

import click

from windlass.cli.greeting import greeting
from windlass.cli.options import mend_options, part_options, project_at, run_options


@click.command("resume", short_help="Go on with a run that was interrupted")
@click.argument("plan", required=False)
@mend_options
@part_options
@run_options
def command(plan: str | None, repo: Path, **options: Any) -> int:
    """Go on with a run that was interrupted, stopped, or needs you.

    Without PLAN: the run that continue-here names, where one was paused, else the only unfinished
    run of the repository. Nothing that was finished is done or paid for again; what an interrupted
    agent left is kept and given to the next. With --task or --stage only that begins, with what
    it needs, beside what has begun. A run that failed cannot go on alone: without a terminal to ask
    at, --retry, --retry-stage or --yes says how.
    """
    with greeting(plan or "the journal", options):
        from windlass.app.continue_here import paused_plan
        from windlass.app.plans import plan_id_of, plan_to_resume
        from windlass.cli.running import request_of, run_plan

        project = project_at(repo)
        typed = plan or paused_plan(project) or plan_id_of(project, None)
        understood = plan_to_resume(project, typed)
    request = request_of(typed, options, "resume", resuming=True)
    return run_plan(project, understood, request, options)
