"""`windlass costs [PLAN]`."""

import os
from pathlib import Path
from typing import get_args

import click
import msgspec

from windlass.cli.finding import never_run, plan_id_of
from windlass.cli.options import json_option, repo_option
from windlass.cli.wiring import Project
from windlass.errors import BadInput
from windlass.views.bills import Bill, By, Total, bills, totals, whole
from windlass.views.columns import fitted, padded
from windlass.views.words import money, tokens

_NAME = 40


@click.command("costs", short_help="Show what was paid, and for what")
@click.argument("plan", required=False)
@click.option(
    "--by",
    "by",
    type=click.Choice(get_args(By)),
    multiple=True,
    help="Sum up by this; repeatable  [default: all but run]",
)
@click.option("--run", "run", metavar="ID", help="Count this run only  [default: all of them]")
@json_option
@repo_option
def command(
    plan: str | None,
    by: tuple[By, ...],
    run: str | None,
    as_json: bool,  # noqa: FBT001
    repo: Path,
) -> int:
    """Show what agents have used up in PLAN, over all its runs; without PLAN, in every plan here.

    Each sum is made from the journal. A + says that some of it is not known: an agent was killed
    before it could say, or a request under way counts at the most it can cost.
    """
    project = Project(repo.resolve(), dict(os.environ))
    plans = [plan_id_of(project, plan)] if plan is not None else project.plans()
    if not plans:
        raise never_run(project)
    found = [
        bill
        for plan_id in plans
        for bill in bills(plan_id, (entry.event for entry in project.entries(plan_id)))
        if run is None or bill.run.startswith(run)
    ]
    if run is not None and not found:
        raise BadInput(f"no run {run!r} has cost anything", hint="`windlass history` lists runs")
    wanted: tuple[By, ...] = by or ("plan", "task", "role", "model")
    if as_json:
        told = {
            "schema": 1,
            "total": whole(found),
            **{each: totals(found, each) for each in wanted},
        }
        click.echo(msgspec.json.format(msgspec.json.encode(told), indent=2))
        return 0
    for each in wanted:
        _table(each, found)
    _row("total", whole(found), _NAME)
    return 0


def _table(by: By, found: list[Bill]) -> None:
    sums = totals(found, by)
    if not sums:
        return
    click.echo(f"{by:<{_NAME}} {'cost':>10} {'in':>8} {'cached':>8} {'out':>8}")
    for name, total in sums.items():
        _row(name, total, _NAME)
    click.echo("")


def _row(name: str, total: Total, width: int) -> None:
    shown = fitted(name, width)
    spent = money(total.cost_usd, known=total.known)
    read, cached = tokens(total.input_tokens), tokens(total.cached_tokens)
    written = tokens(total.output_tokens)
    click.echo(f"{padded(shown, width)} {spent:>10} {read:>8} {cached:>8} {written:>8}")
