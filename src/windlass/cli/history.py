"""`windlass history [PLAN]`."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path

import click
import msgspec

from windlass.cli.finding import never_run, plan_id_of
from windlass.cli.options import json_option, repo_option
from windlass.cli.wiring import Project
from windlass.errors import JournalError
from windlass.state import runs
from windlass.ui.sheet import room
from windlass.views.columns import columns, fitted, padded
from windlass.views.past import Past, past
from windlass.views.words import duration, money, one_line, plural

_LONGEST = 30
"""Columns of a plan's name at most."""


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
    past_runs: list[tuple[datetime, int, Past]] = []
    for plan_id in plans:
        try:
            past_runs += _in_order(_runs(project, plan_id))
        except JournalError as error:
            if plan is not None:
                raise
            # One journal that cannot be read must not hide the others.
            click.echo(f"windlass: {plan_id}: {one_line(str(error), 500)}", err=True)
    if not past_runs:
        raise never_run(project)
    past_runs.sort(key=itemgetter(0, 1), reverse=True)
    found = [each for _, _, each in past_runs]
    if as_json:
        told = msgspec.json.encode({"schema": 1, "runs": found})
        click.echo(msgspec.json.format(told, indent=2))
        return 0
    for line in _lines(found, room()):
        click.echo(line)
    return 0


def _in_order(found: list[Past]) -> Iterator[tuple[datetime, int, Past]]:
    """Runs of one plan, each with what sorts it among runs of others.

    The journal says which came later, also where the clock was set back between two of them.
    """
    reached = datetime.min.replace(tzinfo=UTC)
    for place, each in enumerate(found):
        reached = max(reached, each.started_at)
        yield reached, place, each


def _runs(project: Project, plan_id: str) -> list[Past]:
    states = runs(entry.event for entry in project.entries(plan_id))
    shown = [msgspec.structs.replace(past(state), plan=plan_id) for state in states]
    if shown and shown[-1].status == "in_progress" and project.live_pid(plan_id) is None:
        # A run whose process is gone never shows as running.
        shown[-1] = msgspec.structs.replace(shown[-1], status="interrupted")
    return shown


def _lines(found: list[Past], width: int | None) -> Iterator[str]:
    """A line for each, its columns as wide as what is in them; its figures below where need be."""
    names = [_name(each) for each in found]
    figures = [_figures(each) for each in found]
    broad = [max(map(columns, column)) for column in zip(*names, strict=True)]
    wide = [max(map(len, column)) for column in zip(*figures, strict=True)]
    for name, figure in zip(names, figures, strict=True):
        first = "  ".join(padded(part, to) for part, to in zip(name, broad, strict=True))
        rest = "  ".join(f"{part:>{to}}" for part, to in zip(figure, wide, strict=True))
        whole = f"{first}  {rest}"
        if width is None or columns(whole) <= width:
            yield whole
        else:
            yield first.rstrip()
            yield f"{'':{broad[0]}}  {rest}"


def _name(each: Past) -> tuple[str, ...]:
    started = f"{each.started_at:%Y-%m-%d %H:%MZ}"
    return started, fitted(each.plan, _LONGEST), each.run[:8], each.status


def _figures(each: Past) -> tuple[str, ...]:
    return (
        f"{each.completed}/{each.tasks} done",
        plural(each.turns, "turn"),
        duration(each.elapsed_seconds),
        money(each.cost_usd, known=each.cost_known),
    )
