"""`windlass plan [PLAN]`."""

import shutil
from pathlib import Path

import click

from windlass.app.plan import plan as read
from windlass.app.plan import plan_edits, plan_outlook, plan_summary
from windlass.app.wiring import Project
from windlass.cli.options import (
    dialect_option,
    json_option,
    print_json,
    print_result,
    project_at,
    repo_option,
)
from windlass.core.plan import Plan
from windlass.views.understanding import understanding

MAX_WIDTH = 100
"""Columns; longer lines are hard to read."""


@click.command("plan")
@click.argument("plan", required=False)
@dialect_option
@click.option("--diff", is_flag=True, help="Show what changed since the plan's last run")
@click.option("--verbose", is_flag=True, help="Show every criterion, file and note")
@json_option
@repo_option
def command(plan: str | None, dialect: str | None, repo: Path, **options: bool) -> int:
    """Show what Windlass reads in PLAN, a file or a folder with tasks.

    Shows the tasks by stage with their criteria, files and checks, their order as a graph, the
    critical path, which tasks stop and ask, an estimate from past runs, what was skipped, where
    and why, and what looks like a slip. Runs nothing and changes nothing. Inside a task's
    workspace you can leave PLAN out.

    \b
    Examples:
      windlass plan docs/plan.md
      windlass plan docs/plan.md --verbose
      windlass plan docs/plan.md --diff      # what an edit means for the run
    """  # noqa: D301
    project = project_at(repo)
    if options["diff"]:
        edits = plan_edits(project, plan, dialect=dialect)
        text = "\n".join(edits) or "The plan has not changed since the last run."
        return print_result({"edits": edits}, text, as_json=options["as_json"])
    found = read(project, plan, dialect=dialect)
    return show_plan(project, found, as_json=options["as_json"], verbose=options["verbose"])


def show_plan(project: Project, plan: Plan, *, as_json: bool, verbose: bool) -> int:
    if as_json:
        print_json(plan_summary(project, plan))
    else:
        width = min(shutil.get_terminal_size().columns, MAX_WIDTH)
        seen = plan_outlook(project, plan)
        click.echo("\n".join(understanding(plan, width=width, verbose=verbose, seen=seen)))
    return 0
