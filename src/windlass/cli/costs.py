"""`windlass costs [PLAN]`."""

from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import click

from windlass.app.costs import costs
from windlass.cli.options import json_option, print_json, project_at, repo_option
from windlass.views.bills import By
from windlass.views.columns import fitted, padded
from windlass.views.cost import Cost, amounts, column, doubts
from windlass.views.words import tokens

_NAME = 40


@click.command("costs")
@click.argument("plan", required=False)
@click.option(
    "--by",
    "by",
    type=click.Choice(get_args(By)),
    multiple=True,
    help="Sum by this; repeatable  [default: all but run]",
)
@click.option("--run", "run", metavar="ID", help="Count only this run  [default: all runs]")
@json_option
@repo_option
def command(
    plan: str | None,
    by: tuple[By, ...],
    run: str | None,
    as_json: bool,  # noqa: FBT001
    repo: Path,
) -> int:
    """Show what agents have cost in all runs of PLAN; without PLAN, in every plan here.

    The sums come from the journal. A ~ marks a sum that includes an estimate, for a request whose
    answer was never seen. A + marks a sum with a part that is unknown. Amounts reserved for
    requests in flight are listed below the sums.

    \b
    Examples:
      windlass costs
      windlass costs docs/plan.md --by task --by model
    """  # noqa: D301
    found = costs(project_at(repo), plan, run=run)
    wanted: tuple[By, ...] = by or ("plan", "task", "role", "model")
    if as_json:
        sums = {each: found.by(each) for each in wanted}
        print_json({"schema": 1, "total": found.total, **sums})
        return 0
    for each in wanted:
        _table(each, found.by(each))
    _row("total", found.total, _NAME)
    for line in (amounts(found.total), *doubts(found.total)):
        click.echo(line)
    return 0


def _table(by: By, sums: Mapping[str, Cost]) -> None:
    if not sums:
        return
    click.echo(f"{by:<{_NAME}} {'cost':>10} {'in':>8} {'cached':>8} {'out':>8}")
    for name, total in sums.items():
        _row(name, total, _NAME)
    click.echo("")


def _row(name: str, total: Cost, width: int) -> None:
    shown = fitted(name, width)
    spent = column(total)
    read, cached = tokens(total.input_tokens), tokens(total.cached_tokens)
    written = tokens(total.output_tokens)
    click.echo(f"{padded(shown, width)} {spent:>10} {read:>8} {cached:>8} {written:>8}")
