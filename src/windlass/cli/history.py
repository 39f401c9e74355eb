"""`windlass history [PLAN]`."""

import os
from pathlib import Path

import click
import msgspec

from windlass.cli.finding import never_run, plan_id_of
from windlass.cli.options import json_option, repo_option
from windlass.cli.wiring import Project
from windlass.errors import JournalError
from windlass.state import runs
from windlass.views.columns import columns, fitted, padded
from windlass.views.past import Past, past
from windlass.views.words import duration, money, one_line, plural


@click.command("history", short_help="Show the runs that there were")
@click.argument("plan", required=False)
@json_option
@repo_option
def command(plan: str | None, as_json: bool, repo: Path) -> int:  # noqa: FBT001
    """Show every run of PLAN, the newest first; without PLAN, those of every plan here.

    Only looks: safe at any time, beside a live run too.
    """
    project = Project(repo.resolve(), dict(os.environ))
    plans = [plan_id_of(project, plan)] if plan is not None else project.plans()
    found: list[Past] = []
    for plan_id in plans:
        try:
            found += _runs(project, plan_id)
        except JournalError as error:
            if plan is not None:
                raise
            # One journal that cannot be read must not hide the others.
            click.echo(f"windlass: {plan_id}: {one_line(str(error), 500)}", err=True)
    if not found:
        raise never_run(project)
    found.sort(key=lambda each: each.started_at, reverse=True)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
        return 0
    wide = min(30, max(columns(each.plan) for each in found))
    for each in found:
        click.echo(_line(each, wide))
    return 0


def _runs(project: Project, plan_id: str) -> list[Past]:
    states = runs(entry.event for entry in project.entries(plan_id))
    shown = [msgspec.structs.replace(past(state), plan=plan_id) for state in states]
    if shown and shown[-1].status == "in_progress" and project.live_pid(plan_id) is None:
        # A run whose process is gone never shows as running.
        shown[-1] = msgspec.structs.replace(shown[-1], status="interrupted")
    return shown


def _line(each: Past, wide: int) -> str:
    name = padded(fitted(each.plan, wide), wide)
    done = f"{each.completed}/{each.tasks} done"
    return (
        f"{each.started_at:%Y-%m-%d %H:%MZ}  {name}  {each.run[:8]}  {each.status:<11}"
        f"  {done:>10}  {plural(each.turns, 'turn'):>9}  {duration(each.elapsed_seconds):>9}"
        f"  {money(each.cost_usd, known=each.cost_known):>8}"
    )
