"""`windlass status [PLAN|TASK]`."""

import sys
from collections.abc import Iterator
from contextlib import aclosing, suppress
from pathlib import Path

import anyio
import click

from windlass.app.follow import Fact, follow
from windlass.app.plans import plan_to_watch
from windlass.app.status import RunStatus, status, status_of, task_named
from windlass.app.wiring import Project, now
from windlass.cli.options import json_option, print_json, project_at, repo_option
from windlass.cli.screens.choice import screen_for
from windlass.cli.screens.terminal import put, room, zone
from windlass.core.plan.names import escaped
from windlass.core.state import RunState
from windlass.errors import BadInput
from windlass.views.activity import wait_line
from windlass.views.closing import what_it_needs
from windlass.views.columns import fitted
from windlass.views.cost import amounts, doubts, run_cost
from windlass.views.lines import red_lines, room_for
from windlass.views.outcome import accepted_line, words_for_people
from windlass.views.progress import Progress, TaskProgress, landed_at
from windlass.views.steps import listed
from windlass.views.task_page import task_page
from windlass.views.tree import stage_line
from windlass.views.words import duration, one_line, plural

_STATUS = 12
_USUAL = 80
"""Columns, if the terminal does not say how many it has."""
_SHORTEST = 16
"""Columns of a title, at least."""


@click.command("status")
@click.argument("plan", required=False)
@click.option("--watch", is_flag=True, help="Keep showing it until the run ends")
@json_option
@repo_option
def command(plan: str | None, watch: bool, as_json: bool, repo: Path) -> int:  # noqa: FBT001
    """Show the state of the last run of PLAN; without PLAN, of every plan that was run here.

    Shows each task, what waits for you, the cost, and the command to use next. PLAN may be
    PLAN:TASK: then everything about that task, whole: what it asks, the failed checks with their
    output, what the Coach said, what the agents summed up.

    Changes nothing; safe during a live run. --watch shows what the run's own terminal shows, until
    the run ends or you press Ctrl-C, which does not stop the run.

    \b
    Examples:
      windlass status
      windlass status docs/plan.md --watch
      windlass status plan:1.2
    """  # noqa: D301
    project = project_at(repo)
    if watch and as_json:
        hint = "for programs: `windlass log --follow --json`"
        raise BadInput("--watch and --json exclude each other", hint=hint)
    if watch:
        plan = plan_to_watch(project, plan)
        with suppress(KeyboardInterrupt):
            anyio.run(_watch, project, plan)
    if (named := task_named(project, plan)) is not None:
        return _show_task(status_of(project, named[0]), named[1], as_json=as_json)
    shown = status(project, plan)
    if not as_json:
        for each in shown:
            _print(each)
        return 0
    print_json(shown[0].progress if len(shown) == 1 else [each.progress for each in shown])
    for each in shown:
        if each.note:
            click.echo(f"windlass: {each.progress.plan}: {one_line(each.note, 1000)}", err=True)
    return 0


def _show_task(shown: RunStatus, task: str, *, as_json: bool) -> int:
    if as_json:
        print_json(shown.progress.tasks[task])
        return 0
    if shown.state is None:
        raise BadInput(f"only the whole plan can be shown {shown.note}", hint="windlass status")
    for line in task_page(shown.state, task):
        put(f"{line.word:>9}  ", line.text)
        for detail in line.details:
            put(f"{'':9}  ", detail)
    return 0


async def _watch(project: Project, plan_id: str) -> None:
    """Show the run until it ends; earlier facts are folded, but not shown."""
    ahead = len(project.journals.entries(plan_id))
    screen = screen_for({}, project.environment, stream=sys.stdout, watching=True)
    with screen:
        async with anyio.create_task_group() as tasks, aclosing(follow(project, plan_id)) as seen:
            tasks.start_soon(screen.keep)
            async for each in seen:
                if not isinstance(each, Fact):
                    screen.activity(each)
                else:
                    show = screen.entry if each.entry.seq > ahead else screen.remember
                    show(each.entry, each.state)
            tasks.cancel_scope.cancel()


def _print(shown: RunStatus) -> None:
    progress, state, pid = shown.progress, shown.state, shown.pid
    word = progress.status
    if word == "in_progress":
        word = f"running (PID {pid})" if pid else "interrupted; `windlass resume` continues it"
    metrics = progress.metrics
    cost = metrics.cost if state is None else run_cost(state)
    put(
        "",
        f"{progress.plan} · run {progress.run} · {word} · {metrics.completed}/{metrics.tasks} done"
        f" · {duration(metrics.elapsed_seconds)}"
        f" · {amounts(cost)}",
    )
    red = red_lines(state, room_for(state)) if state is not None else ()
    for line in (one_line(progress.reason, 400), *red, *doubts(cost), shown.note):
        if line:
            put("  ", escaped(line))
    for head, text in _rows(progress, state):
        put(escaped(f"  {head}"), escaped(text))
    landed = f", landed at {commit[:10]}" if (commit := state and landed_at(state)) else ""
    base = progress.base_branch or progress.base[:10]
    put("  branch ", f"{progress.integration} on {base}{landed}")
    for line in listed(list(shown.steps)):
        put("  next   ", escaped(line))
    click.echo("")


def _rows(progress: Progress, state: RunState | None) -> Iterator[tuple[str, str]]:
    """The tasks below their stages; of each row the head, and the text that may be folded."""
    tasks = progress.tasks
    ids = max((len(id_) for id_ in tasks), default=0)
    turns = max((len(_turns(task)) for task in tasks.values()), default=0)
    commits = 10 if any(task.merged for task in tasks.values()) else 0
    head = 2 + _STATUS + 1 + sum(width + 2 for width in (ids, turns, commits) if width)
    title_room = max(_SHORTEST, (room() or _USUAL) - head)
    stages = {} if state is None else {id_: state.specs[id_].stage for id_ in tasks}
    words = {} if state is None else words_for_people(state)
    before: str | None = None
    for task_id, task in tasks.items():
        stage = stages.get(task_id)
        if state is not None and stage and stage != before:
            yield "", stage_line(state, stage)
        before = stage
        title = fitted(state.specs[task_id].title, title_room) if state is not None else ""
        parts = ((task_id, ids), (_turns(task), turns), ((task.merged or "")[:10], commits))
        row = "".join(f"{part:<{width}}  " for part, width in parts if width)
        word = words.get(task_id, task.status)
        yield f"{word:<{_STATUS}} {row}", _waiting(task) or title
        if state is not None:
            needed = what_it_needs(state.tasks[task_id], state)
            accepted = filter(None, (accepted_line(state, task_id, zone()),))
            yield from ((f"{'':<{_STATUS}} ", line) for line in (*needed, *accepted))


def _turns(task: TaskProgress) -> str:
    """How many turns a task took; before it is settled, the turn that it is in."""
    if not task.turns:
        return ""
    settled = task.merged is not None or task.status == "abandoned"
    return plural(task.turns, "turn") if settled else f"turn {task.turns}"


def _waiting(task: TaskProgress) -> str:
    at = now().astimezone(zone())
    if task.waits_for is None or task.waits_until is None or task.waits_until <= at:
        return ""
    return f"waits {wait_line(task.waits_for, task.waits_until, at, task.waits_because or '')}"
