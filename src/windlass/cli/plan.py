"""`windlass plan PLAN`."""

import os
from pathlib import Path

import click
import msgspec

from windlass.cli.config import configure
from windlass.cli.finding import last_run, read_plan
from windlass.cli.options import json_option, repo_option
from windlass.cli.wiring import Project
from windlass.plan import Plan, critical_lengths
from windlass.state import RunState
from windlass.views.edits import edit_lines
from windlass.views.words import one_line, plural

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


@click.command("plan", short_help="Show what was understood of a plan")
@click.argument("plan")
@click.option("--diff", is_flag=True, help="Show what was edited since the plan's last run")
@json_option
@repo_option
def command(plan: str, diff: bool, as_json: bool, repo: Path) -> int:  # noqa: FBT001
    """Show what was understood of PLAN: tasks, order, criteria, checks, and what was passed over.

    Nothing is run and nothing is changed.
    """
    project = Project(repo.resolve(), dict(os.environ))
    if diff:
        return _show_edits(last_run(project, plan), read_plan(project, plan))
    return show_plan(project, read_plan(project, plan), as_json=as_json)


def _show_edits(state: RunState, plan: Plan) -> int:
    lines = edit_lines(state, plan)
    click.echo("\n".join(lines) or "The plan is as the last run knows it.")
    return 0


def show_plan(project: Project, plan: Plan, *, as_json: bool) -> int:
    """Print it."""
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(_machine(project, plan)), indent=2))
    else:
        _people(plan)
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


def _people(plan: Plan) -> None:
    title = one_line(plan.title, 100)
    click.echo(f"{title} ({plan.id}, {plan.dialect}): {plural(len(plan.tasks), 'task')}")
    lengths = critical_lengths(plan, {})
    longest = max(lengths.values())
    for task in plan.tasks:
        after = f"after {', '.join(task.depends_on)}" if task.depends_on else "first"
        criteria = plural(len(task.acceptance_criteria), "criterion")
        criteria = criteria.replace("criterions", "criteria")
        click.echo(f"\n  {task.id}  {one_line(task.title, 70)}")
        click.echo(f"      {plan.path}:{task.line} · {after} · {criteria}")
        for name, items in (("files", task.files), ("checks", task.checks)):
            if items:
                click.echo(f"      {name}: {', '.join(one_line(item, 60) for item in items)}")
    click.echo(f"\nThe longest way through is {plural(int(longest), 'task')}.")
    if plan.checks:
        click.echo(f"Every task: {', '.join(one_line(check, 60) for check in plan.checks)}")
    if plan.e2e:
        click.echo("It has an E2E scenario, which is tried with --e2e.")
    for note in plan.notes:
        click.echo(f"{plan.path}:{note.line}: passed over: {one_line(note.text, 200)}")
