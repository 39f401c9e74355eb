"""`windlass resume [PLAN]`."""

from pathlib import Path
from typing import Any

import click

from windlass.cli.greeting import greeting
from windlass.cli.options import mend_options, part_options, project_at, run_options


@click.command("resume")
@click.argument("plan", required=False)
@mend_options
@part_options
@run_options
def command(plan: str | None, repo: Path, **options: Any) -> int:
    """Continue a run that was interrupted, stopped, or needs you.

    Finished work is not done or paid for again. The next agent of a task continues with what an
    interrupted agent left. Without PLAN: the paused run that continue-here names, else the only
    unfinished run of the repository.

    A run that failed asks how to continue; without a terminal, use --retry, --retry-stage or
    --yes. --task and --stage start only that part of the plan, with what it needs; tasks that have
    started continue too.

    \b
    Examples:
      windlass resume
      windlass resume docs/plan.md --max-cost 30
      windlass resume --retry                # give abandoned tasks new turns
    """  # noqa: D301
    with greeting("the journal", options):
        from windlass.app.plans import plan_to_resume
        from windlass.app.run import named_to_resume
        from windlass.cli.running import request_of, run_plan

        project = project_at(repo)
        typed = named_to_resume(project, plan)
        parsed = plan_to_resume(project, typed)
    request = request_of(typed, options, "resume", resuming=True)
    return run_plan(project, parsed, request, options)
