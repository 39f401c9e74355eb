"""`windlass plan PLAN`."""

import os
import shutil
from pathlib import Path

import click
import msgspec

from windlass.cli.config import configure
from windlass.cli.finding import read_plan
from windlass.cli.options import dialect_option, json_option, repo_option
from windlass.cli.wiring import Project
from windlass.plan import Plan
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
@click.option("--verbose", is_flag=True, help="Also show every criterion, file and note")
@json_option
@repo_option
def command(plan: str, dialect: str | None, verbose: bool, as_json: bool, repo: Path) -> int:  # noqa: FBT001
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
    return show_plan(project, understood, as_json=as_json, verbose=verbose)


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
