"""`windlass log [PLAN]`."""

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import anyio
import click
import msgspec
from msgspec import Struct

from windlass.cli.finding import find_task, names_a_plan, plan_id_of
from windlass.cli.following import follow
from windlass.cli.options import json_option, repo_option
from windlass.cli.wiring import Project, now
from windlass.errors import BadInput, WindlassError
from windlass.events.model import Entry, Event, RunStarted
from windlass.state import RunState, apply
from windlass.ui.sheet import put
from windlass.views.lines import Line
from windlass.views.story import WORDS, line_of
from windlass.views.words import duration, one_line

_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.IGNORECASE)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@click.command("log", short_help="Show what happened in a run")
@click.argument("plan", required=False)
@click.option(
    "--task", "tasks", metavar="ID", multiple=True, help="Show this task only; repeatable"
)
@click.option("--turn", "turns", type=int, metavar="N", multiple=True, help="Show this turn only")
@click.option(
    "--kind",
    "kinds",
    metavar="WORD",
    multiple=True,
    help="Show only this: a word of the log (RETURNED) or a fact's name (TurnReturned)",
)
@click.option("--since", metavar="WHEN", help="Show from then on: 10m, 2h, or 2026-01-31T12:00")
@click.option("--follow", "-f", "following", is_flag=True, help="Go on while the run does")
@click.option("--all", "every", is_flag=True, help="Show every run of the plan, not only the last")
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

    Filters narrow it down together. With --json: every fact as recorded, one per line. Safe beside
    a live run; --follow ends when the run does.

    \b
    windlass log plan.md --task 1.2 --turn 2
    windlass log --kind RETURNED --kind ABANDONED --since 2h
    windlass log --follow --json
    """  # noqa: D301
    project = Project(repo.resolve(), dict(os.environ))
    plan_id, tasks = _meant(project, plan, tasks)
    entries = project.entries(plan_id)
    if not entries:
        raise BadInput(f"plan {plan_id!r} was never run here", hint="start it: windlass run PLAN")
    _refuse_unknown_tasks(plan_id, entries, tasks)
    _refuse_unknown(kinds)
    starts = [x.seq for x in entries if isinstance(x.event, RunStarted)]
    wanted = _Wanted(
        tasks=tasks,
        turns=turns,
        kinds=tuple(map(_plainly, kinds)),
        since=_moment(since),
        after=0 if every or not starts else starts[-1] - 1,
    )

    shown = 0

    def show(entry: Entry, state: RunState) -> None:
        nonlocal shown
        line = line_of(entry.event, state)
        if wanted.has(entry, state, line):
            shown += _show(entry, line, as_json=as_json)

    if following:
        _follow(project, plan_id, show)
        return 0
    state: RunState | None = None
    for entry in entries:
        state = apply(state, entry.event)
        show(entry, state)
    if not shown:
        click.echo(f"windlass: the log of {plan_id} has nothing of that", err=True)
    return 0


_FACTS = tuple(sorted(each.__name__ for each in get_args(Event)))


def _plainly(kind: str) -> str:
    return kind.lower().replace("_", " ")


def _refuse_unknown_tasks(plan_id: str, entries: list[Entry], tasks: tuple[str, ...]) -> None:
    known = {t.id for x in entries if isinstance(x.event, RunStarted) for t in x.event.plan.tasks}
    for task in tasks:
        if task not in known:
            listed = ", ".join(sorted(known))
            raise BadInput(f"plan {plan_id!r} has no task {task!r}", hint=f"it has {listed}")


def _refuse_unknown(kinds: tuple[str, ...]) -> None:
    known = {*map(_plainly, WORDS), *map(_plainly, _FACTS)}
    for kind in kinds:
        if _plainly(kind) not in known:
            words = f"the words of the log: {', '.join(WORDS)}; or a fact: {', '.join(_FACTS)}"
            raise BadInput(f"nothing is called {one_line(kind, 60)!r} in a log", hint=words)


class _Wanted(Struct, frozen=True, kw_only=True):
    """What of a journal to show."""

    tasks: tuple[str, ...]
    turns: tuple[int, ...]
    kinds: tuple[str, ...]
    since: datetime | None
    after: int

    def has(self, entry: Entry, state: RunState, line: Line | None) -> bool:
        """Whether an entry is wanted, given the state it led to and how it is told."""
        event = entry.event
        if entry.seq <= self.after or (self.since is not None and event.at < self.since):
            return False
        names = {type(event).__name__.lower(), line.word.lower() if line is not None else ""}
        return (
            (not self.kinds or bool(names & set(self.kinds)))
            and (not self.tasks or bool(_tasks_of(event) & set(self.tasks)))
            and (not self.turns or _turn_of(event, state) in self.turns)
        )


def _tasks_of(event: Event) -> set[str]:
    one: str | None = getattr(event, "task", None)
    return {one} if one is not None else set(getattr(event, "tasks", ()))


def _turn_of(event: Event, state: RunState) -> int | None:
    """The turn that a fact belongs to: the one its task was last played in."""
    found = [state.tasks[id_] for id_ in _tasks_of(event) if id_ in state.tasks]
    return found[0].last.turn if found and found[0].attempts else None


def _meant(
    project: Project, plan: str | None, tasks: tuple[str, ...]
) -> tuple[str, tuple[str, ...]]:
    """The plan that was meant, and the tasks; a task alone names both."""
    if plan is None:
        plans = project.plans()
        only = plans[0] if len(plans) == 1 else plan_id_of(project, None, cure="name the plan")
        return only, tasks
    try:
        return plan_id_of(project, plan), tasks
    except WindlassError as error:
        try:
            state, task = find_task(project, plan)
        except WindlassError as missing:
            raise (missing if names_a_plan(project, plan) else error) from None
        return state.plan.id, (*tasks, task)


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
            f"--since {since!r} is no time", hint="say 10m, 2h, 3d, or 2026-01-31T12:00 in UTC"
        ) from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _follow(project: Project, plan_id: str, show: Callable[[Entry, RunState], None]) -> None:
    try:
        state = anyio.run(lambda: follow(project, plan_id, show=show))
    except KeyboardInterrupt:
        return
    if state is not None and state.ended is None:
        told = f"the run's process is gone; go on with: windlass resume {plan_id}"
        click.echo(told, err=True)


def _show(entry: Entry, line: Line | None, *, as_json: bool) -> bool:
    """Whether there was something to show."""
    if as_json:
        click.echo(msgspec.json.encode(entry))
        return True
    if line is None:
        return False
    took = f" · {duration(line.took)}" if line.took is not None else ""
    put(f"{entry.event.at:%Y-%m-%d %H:%M:%S}Z  {line.word:>9}  ", f"{line.text}{took}")
    for detail in line.details:
        put(f"{'':20}  {'':>9}  ", detail)
    return True
