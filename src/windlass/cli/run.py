"""`windlass run PLAN`."""

from pathlib import Path
from typing import Any

import click

from windlass.cli.greeting import greeting
from windlass.cli.options import (
    again_options,
    choice_of,
    dialect_option,
    mend_options,
    part_options,
    project_at,
    run_options,
)


@click.command("run")
@click.argument("plan")
@dialect_option
@again_options
@click.option(
    "--dry-run", is_flag=True, help="Show what Windlass reads in the plan, and run nothing"
)
@mend_options
@part_options
@run_options
def command(
    plan: str,
    dialect: str | None,
    resumes: bool,  # noqa: FBT001
    restarts: bool,  # noqa: FBT001
    dry_run: bool,  # noqa: FBT001
    repo: Path,
    **options: Any,
) -> int:
    """Run PLAN, a file or a folder with tasks, to verified, merged commits.

    A fresh agent works on each task in its own checkout. Windlass commits the result, runs the
    project's checks on exactly that commit, has another agent review it, and merges it onto the
    branch windlass/PLAN/integration. Your own checkout and branch are not touched.

    --task and --stage run only that part of the plan, with the tasks and stages that it needs. The
    run then stops with exit code 0, and `windlass resume` runs the rest.

    \b
    Examples:
      windlass run docs/plan.md
      windlass run docs/plan.md --agents 2 --max-cost 5
      windlass run docs/plan.md --task 1.1   # one task, and what it needs
    """  # noqa: D301
    choice = choice_of(resumes=resumes, restarts=restarts)
    with greeting("the plan", options):
        from windlass.app.plan import plan as read
        from windlass.cli.running import request_of, run_plan

        project = project_at(repo)
        parsed = read(project, plan, dialect=dialect)
    if dry_run:
        from windlass.cli.plan import show_plan

        as_json, verbose = bool(options["as_json"]), bool(options["verbose"])
        return show_plan(project, parsed, as_json=as_json, verbose=verbose)
    return run_plan(project, parsed, request_of(plan, options, choice), options)
