"""`windlass status [PLAN]`."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import click
import msgspec
from msgspec import Struct

from windlass.cli.finding import never_run, plan_id_of
from windlass.cli.following import follow
from windlass.cli.options import json_option, repo_option
from windlass.cli.showing import screens
from windlass.cli.wiring import Project, newest, now
from windlass.cli.wiring.recovering import why_git_is_older
from windlass.errors import BadInput, JournalError, WindlassError
from windlass.plan import names
from windlass.state import RunState
from windlass.ui.sheet import put, room
from windlass.views.closing import what_it_needs
from windlass.views.columns import fitted
from windlass.views.progress import Progress, TaskProgress, progress
from windlass.views.stale_tasks import accepted_line
from windlass.views.steps import listed, next_steps
from windlass.views.tree import stage_line
from windlass.views.waiting import wait_line
from windlass.views.words import duration, money, one_line, plural

_STATUS = 12
_USUAL = 80
"""Columns of a line where nobody says how many there are."""
_SHORTEST = 16
"""Columns that a title has at least."""


@click.command("status", short_help="Show how a run stands")
@click.argument("plan", required=False)
@click.option("--watch", is_flag=True, help="Go on showing it while the run does")
@json_option
@repo_option
def command(plan: str | None, watch: bool, as_json: bool, repo: Path) -> int:  # noqa: FBT001
    """Show how the last run of PLAN stands; without PLAN, every plan that was run here.

    Only looks: safe at any time, beside a live run too. With --watch: what the run's own terminal
    shows, until the run ends or you leave it with Ctrl-C, which it does not notice.
    """
    project = Project(repo.resolve(), dict(os.environ))
    if watch and as_json:
        hint = "for a program: windlass log --follow --json"
        raise BadInput("--watch shows a run to people, and --json to programs", hint=hint)
    if watch:
        plan = _watched(project, plan)
    plans = [plan_id_of(project, plan)] if plan is not None else project.plans()
    if not plans:
        raise never_run(project)
    shown = [_progress(project, plan_id) for plan_id in plans]
    if as_json:
        told = shown[0].told if len(shown) == 1 else [each.told for each in shown]
        click.echo(msgspec.json.format(msgspec.json.encode(told), indent=2))
        for each in shown:
            if each.note:
                click.echo(f"windlass: {each.told.plan}: {one_line(each.note, 1000)}", err=True)
        return 0
    for each in shown:
        _people(project, each)
    return 0


def _watched(project: Project, plan: str | None) -> str:
    """Look on until the run ends, or the person has seen enough; the plan that it was."""
    live = [plan_id for plan_id in project.plans() if project.live_pid(plan_id) is not None]
    only = plan is None and len(live) == 1
    plan_id = live[0] if only else plan_id_of(project, plan, cure="name the plan")
    screen, _ = screens({}, project.environment, stream=sys.stdout, watching=True)
    ahead = len(project.entries(plan_id))

    async def look() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(screen.keep)
            await follow(
                project,
                plan_id,
                show=screen.entry,
                hear=screen.activity,
                ahead=ahead,
                remember=screen.remember,
            )
            tasks.cancel_scope.cancel()

    with screen, suppress(KeyboardInterrupt):
        anyio.run(look)
    return plan_id


class _Seen(Struct, frozen=True):
    """A run as it was found: from its journal, or from what the state file still says of it."""

    told: Progress
    state: RunState | None
    note: str = ""


def _progress(project: Project, plan_id: str) -> _Seen:
    """From the journal, or from the state file where the journal cannot be read."""
    try:
        entries = project.entries(plan_id)
        state = newest(entries)
    except JournalError as error:
        told = project.state_file(plan_id)
        if told is None:
            raise
        return _Seen(told, None, f"from state.json, because {error}")
    if state is None:
        raise BadInput(f"plan {plan_id!r} was never run here", hint="start it: windlass run PLAN")
    note = ""
    # A live run moves on meanwhile, and asks git itself.
    if project.live_pid(plan_id) is None:
        with suppress(WindlassError):
            note = why_git_is_older(project, state) or ""
    return _Seen(progress(state, entries[-1].seq), state, note)


def _people(project: Project, seen: _Seen) -> None:
    told, state = seen.told, seen.state
    pid = project.live_pid(told.plan)
    status = told.status
    if status == "in_progress":
        status = f"running (PID {pid})" if pid else "interrupted; `windlass resume` goes on"
    metrics = told.metrics
    put(
        "",
        f"{told.plan} · run {told.run} · {status} · {metrics.completed}/{metrics.tasks} done"
        f" · {duration(metrics.elapsed_seconds)}"
        f" · {money(metrics.cost_usd, known=metrics.cost_known)}",
    )
    for line in (one_line(told.reason, 200), seen.note):
        if line:
            put("  ", line)
    for head, text in _rows(told, state):
        put(names.told(f"  {head}"), names.told(text))
    put("  branch ", f"{told.integration} on {told.base_branch or told.base[:10]}")
    if state is not None and pid is None:
        steps = next_steps(state, plan=told.plan, ground=project.ground(state))
        for line in listed(steps):
            put("  next   ", names.told(line))
    click.echo("")


def _rows(told: Progress, state: RunState | None) -> Iterator[tuple[str, str]]:
    """The tasks, below their stages where there are any; what of a row may be folded is apart."""
    ids = max((len(id_) for id_ in told.tasks), default=0)
    turns = max((len(_turns(task)) for task in told.tasks.values()), default=0)
    commits = 10 if any(task.merged for task in told.tasks.values()) else 0
    head = 2 + _STATUS + 1 + sum(width + 2 for width in (ids, turns, commits) if width)
    title_room = max(_SHORTEST, (room() or _USUAL) - head)
    stages = {} if state is None else {id_: state.specs[id_].stage for id_ in told.tasks}
    before: str | None = None
    for task_id, task in told.tasks.items():
        stage = stages.get(task_id)
        if state is not None and stage and stage != before:
            yield "", stage_line(state, stage)
        before = stage
        title = fitted(state.specs[task_id].title, title_room) if state is not None else ""
        parts = ((task_id, ids), (_turns(task), turns), ((task.merged or "")[:10], commits))
        row = "".join(f"{part:<{width}}  " for part, width in parts if width)
        yield f"{task.status:<{_STATUS}} {row}", _waiting(task) or title
        if state is not None:
            needed = what_it_needs(state.tasks[task_id], state)
            accepted = filter(None, (accepted_line(state, task_id),))
            yield from ((f"{'':<{_STATUS}} ", line) for line in (*needed, *accepted))


def _turns(task: TaskProgress) -> str:
    return plural(task.turns, "turn") if task.turns else ""


def _waiting(task: TaskProgress) -> str:
    at = now()
    if task.waits_for is None or task.waits_until is None or task.waits_until <= at:
        return ""
    return f"waits {wait_line(task.waits_for, task.waits_until, at)}"
