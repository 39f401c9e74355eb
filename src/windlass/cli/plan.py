"""`windlass plan PLAN`."""

import os
import shutil
from pathlib import Path

import click
import msgspec

from windlass.cli.config import configure
from windlass.cli.finding import last_run, read_plan
from windlass.cli.options import dialect_option, json_option, repo_option
from windlass.cli.wiring import Project
from windlass.plan import Plan
from windlass.state import RunState
from windlass.views.edits import edit_lines
from windlass.views.understanding import understanding

FIELDS = (
    "id",
    "title",
    "stage",
    "depends_on",
    "acceptance_criteria",
    "files",
    "checks",
    "complexity",
)
MAX_WIDTH = 100
"""Columns; longer lines are hard to read on any screen."""


@click.command("plan", short_help="Show what was understood of a plan")
@click.argument("plan")
@dialect_option
@click.option("--diff", is_flag=True, help="Show what was edited since the plan's last run")
@click.option("--verbose", is_flag=True, help="Also show every criterion, file and note")
@json_option
@repo_option
def command(plan: str, dialect: str | None, repo: Path, **options: bool) -> int:
    """Show what was understood of PLAN, a file or a folder with tasks.

    Tasks by stage with their criteria, files and checks; their order as a picture; the critical
    path; and what was passed over, where and why. Nothing is run and nothing is changed.

    \b
    windlass plan docs/plan.md
    windlass plan docs/plan.md --verbose
    windlass plan docs/plan.md --json
    """  # noqa: D301
    project = Project(repo.resolve(), dict(os.environ))
    understood = read_plan(project, plan, dialect=dialect)
    if options["diff"]:
        return _show_edits(last_run(project, plan), understood)
    return show_plan(project, understood, as_json=options["as_json"], verbose=options["verbose"])


def _show_edits(state: RunState, plan: Plan) -> int:
    lines = edit_lines(state, plan)
    click.echo("\n".join(lines) or "The plan is as the last run knows it.")
    return 0


def show_plan(project: Project, plan: Plan, *, as_json: bool, verbose: bool) -> int:
    """Print it."""
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(_machine(project, plan)), indent=2))
    else:
        width = min(shutil.get_terminal_size().columns, MAX_WIDTH)
        click.echo("\n".join(understanding(plan, width=width, verbose=verbose)))
    return 0


def _machine(project: Project, plan: Plan) -> dict[str, object]:
    settings = configure(project.root, project.environment, {}).settings
    base = project.base(settings.base, plan.id)
    return {
        "schema": 1,
        "id": plan.id,
        "title": plan.title,
        "dialect": plan.dialect,
        "base": base.branch or base.commit,
        "tasks": [{name: getattr(task, name) for name in FIELDS} for task in plan.tasks],
        "e2e": plan.e2e,
    }
