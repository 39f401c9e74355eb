"""`windlass log [PLAN]`."""

import re
from contextlib import aclosing
from datetime import datetime, timedelta
from pathlib import Path

import anyio
import click
import msgspec

from windlass.app.log import LogLine, LogRequest, follow_log, log, log_plan
from windlass.app.wiring import LOCAL_TIME, Project, now
from windlass.cli.options import json_option, project_at, repo_option
from windlass.cli.screens.terminal import put, zone
from windlass.errors import BadInput
from windlass.views.times import date_and_time
from windlass.views.words import duration

_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.IGNORECASE)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@click.command("log")
@click.argument("plan", required=False)
@click.option(
    "--task", "tasks", metavar="ID", multiple=True, help="Show only this task; repeatable"
)
@click.option(
    "--turn", "turns", type=int, metavar="N", multiple=True, help="Show only this turn; repeatable"
)
@click.option(
    "--kind",
    "kinds",
    metavar="WORD",
    multiple=True,
    help="Show only this word of the log (RETURNED) or fact (TurnReturned); repeatable",
)
@click.option(
    "--since",
    metavar="WHEN",
    help="Start at this time: 10m ago, 2h ago, or 2026-01-31T12:00 (your time; 12:00Z is UTC)",
)
@click.option("--follow", "-f", "following", is_flag=True, help="Follow the run until it ends")
@click.option("--all", "every", is_flag=True, help="Show all runs of the plan, not only the last")
@json_option
@repo_option
def command(
    plan: str | None,
    tasks: tuple[str, ...],
    turns: tuple[int, ...],
    kinds: tuple[str, ...],
    since: str | None,
    following: bool,  # noqa: FBT001
    every: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
    repo: Path,
) -> int:
    """Show what happened in the last run of PLAN, from its journal; PLAN may be PLAN:TASK.

    Filters combine. --json prints every fact as recorded, one per line. Safe during a live run.

    \b
    Examples:
      windlass log plan.md --task 1.2 --turn 2
      windlass log --kind RETURNED --kind ABANDONED --since 2h
      windlass log --follow
    """  # noqa: D301
    project = project_at(repo)
    request = LogRequest(
        plan=plan,
        tasks=tasks,
        turns=turns,
        kinds=kinds,
        since=_moment(since),
        every_run=every,
        zone=zone(),
    )
    if following:
        _follow(project, request, as_json=as_json)
        return 0
    found = log(project, request)
    shown = [_print(each, as_json=as_json) for each in found.lines]
    if not any(shown):
        click.echo(f"windlass: no matching lines in the log of {found.plan}", err=True)
    return 0


def _follow(project: Project, request: LogRequest, *, as_json: bool) -> None:
    async def show() -> None:
        async with aclosing(follow_log(project, request)) as lines:
            async for each in lines:
                _print(each, as_json=as_json)

    try:
        anyio.run(show)
    except KeyboardInterrupt:
        return
    plan_id = log_plan(project, request)
    state = project.journals.last_run(plan_id)
    if state is not None and state.ended is None:
        cure = f"to continue: windlass resume {plan_id}"
        click.echo(f"the run's process has died; {cure}", err=True)


def _moment(since: str | None) -> datetime | None:
    if since is None:
        return None
    if (ago := _AGO.fullmatch(since.strip())) is not None:
        amount, unit = ago.groups()
        try:
            return now() - timedelta(**{_UNITS[unit.lower()]: float(amount)})
        except OverflowError:
            return None
    try:
        at = datetime.fromisoformat(since.strip())
    except ValueError:
        raise BadInput(
            f"--since {since!r} is not a time", hint="use 10m, 2h, 3d, or 2026-01-31T12:00"
        ) from None
    return at if at.tzinfo is not None else at.replace(tzinfo=LOCAL_TIME)


def _print(shown: LogLine, *, as_json: bool) -> bool:
    """Print the line; False if there was nothing to show."""
    if as_json:
        click.echo(msgspec.json.encode(shown.entry))
        return True
    line = shown.line
    if line is None:
        return False
    took = f" · {duration(line.took)}" if line.took is not None else ""
    at = date_and_time(shown.entry.event.at.astimezone(zone()), seconds=True)
    put(f"{at}  {line.word:>9}  ", f"{line.text}{took}")
    for detail in line.details:
        put(f"{'':{len(at)}}  {'':>9}  ", detail)
    return True
