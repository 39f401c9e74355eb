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


@click.command("run", short_help="Run a plan to verified, merged commits")
@click.argument("plan")
@dialect_option
@again_options
@click.option("--dry-run", is_flag=True, help="Show what was understood, and do nothing")
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

    Each task is played by a fresh agent in a checkout of its own, committed by Windlass, proven by
    the project's checks on exactly that commit, and merged onto the branch
    windlass/PLAN/integration. Your own checkout and branch are not touched. With --task or --stage
    only that begins, with what it needs: the tasks it depends on, and the stages that it waits for.
    Once that is merged the run rests with exit code 0, and `windlass resume` does all the rest.

    \b
    windlass run docs/plan.md
    windlass run docs/plan.md --agents 2 --max-cost 5
    windlass run docs/plan.md --dry-run
    """  # noqa: D301
    choice = choice_of(resumes=resumes, restarts=restarts)
    with greeting(plan, options):
        from windlass.app.plans import read_plan
        from windlass.cli.running import request_of, run_plan

        project = project_at(repo)
        understood = read_plan(project, plan, dialect=dialect)
    if dry_run:
        from windlass.cli.plan import show_plan

        as_json, verbose = bool(options["as_json"]), bool(options["verbose"])
        return show_plan(project, understood, as_json=as_json, verbose=verbose)
    return run_plan(project, understood, request_of(plan, options, choice), options)
