"""`windlass history [PLAN]`."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from windlass.app.history import history
from windlass.app.plans import never_run
from windlass.cli.options import json_option, print_json, project_at, repo_option
from windlass.cli.screens.terminal import room, zone
from windlass.views.columns import columns, fitted, padded
from windlass.views.cost import amounts
from windlass.views.progress import Past
from windlass.views.times import date_and_time
from windlass.views.words import duration, one_line, plural

_LONGEST = 30
"""Columns for a plan's name."""


@click.command("history")
@click.argument("plan", required=False)
@json_option
@repo_option
def command(plan: str | None, as_json: bool, repo: Path) -> int:  # noqa: FBT001
    """List every run of PLAN, newest first; without PLAN, those of every plan here.

    Shows when each run started, how it ended, its tasks and turns, and its cost. Changes nothing;
    safe during a live run.

    \b
    Example:
      windlass history docs/plan.md
    """  # noqa: D301
    project = project_at(repo)
    found = history(project, plan)
    for plan_id, why in found.unreadable.items():
        click.echo(f"windlass: {plan_id}: {one_line(why, 500)}", err=True)
    if not found.runs:
        raise never_run(project)
    if as_json:
        print_json({"schema": 1, "runs": found.runs})
    else:
        click.echo("\n".join(_lines(found.runs, room())))
    return 0


def _lines(found: Sequence[Past], width: int | None) -> Iterator[str]:
    """A line for each run, in aligned columns; the figures go below where the line is too wide."""
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
    started = date_and_time(each.started_at.astimezone(zone()))
    status = f"{each.status}, landed" if each.landed else each.status
    return started, fitted(each.plan, _LONGEST), each.run[:8], status


def _figures(each: Past) -> tuple[str, ...]:
    return (
        f"{each.completed}/{each.tasks} done",
        plural(each.turns, "turn"),
        duration(each.elapsed_seconds),
        amounts(each.cost),
    )
