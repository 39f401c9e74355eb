"""`windlass log [PLAN]`."""

import os
from pathlib import Path

import click
import msgspec

from windlass.cli.finding import plan_id_of
from windlass.cli.options import json_option, repo_option
from windlass.cli.wiring import Project
from windlass.errors import BadInput
from windlass.events.model import Entry, RunStarted
from windlass.state import RunState, apply
from windlass.views.story import line_of


@click.command("log", short_help="Show what happened in a run")
@click.argument("plan", required=False)
@click.option("--task", metavar="ID", help="Show this task only")
@click.option("--all", "every", is_flag=True, help="Show every run of the plan, not only the last")
@json_option
@repo_option
def command(plan: str | None, task: str | None, every: bool, as_json: bool, repo: Path) -> int:  # noqa: FBT001
    """Show what happened in the last run of PLAN, from its journal.

    With --json: every fact as recorded, one per line.
    """
    project = Project(repo.resolve(), dict(os.environ))
    plan_id = plan_id_of(project, plan) if plan or len(project.plans()) != 1 else project.plans()[0]
    entries = project.entries(plan_id)
    if not entries:
        raise BadInput(f"plan {plan_id!r} was never run here", hint="start it: windlass run PLAN")
    first = max((i for i, x in enumerate(entries) if isinstance(x.event, RunStarted)), default=0)
    known = {t.id for x in entries if isinstance(x.event, RunStarted) for t in x.event.plan.tasks}
    if task is not None and task not in known:
        raise BadInput(
            f"plan {plan_id!r} has no task {task!r}", hint=f"it has {', '.join(sorted(known))}"
        )
    state: RunState | None = None
    for position, entry in enumerate(entries):
        state = apply(state, entry.event)
        concerns = task is None or getattr(entry.event, "task", None) == task
        if concerns and (every or position >= first):
            _show(entry, state, as_json=as_json)
    return 0


def _show(entry: Entry, state: RunState, *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode(entry))
        return
    line = line_of(entry.event, state)
    if line is None:
        return
    click.echo(f"{entry.event.at:%Y-%m-%d %H:%M:%S}Z  {line.word:>9}  {line.text}")
    for detail in line.details:
        click.echo(f"{'':20}  {'':>9}  {detail}")
