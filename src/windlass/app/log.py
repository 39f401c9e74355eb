"""`log`: what happened in a run, from its journal."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime, tzinfo
from typing import get_args

import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from windlass.app.follow import Fact, follow
from windlass.app.plans import only_plan, plan_and_task
from windlass.app.wiring import Project
from windlass.core.engine import apply
from windlass.core.events.model import Entry, Event, PlanRevised, RunStarted
from windlass.core.nearest import did_you_mean
from windlass.core.state import RunState
from windlass.errors import BadInput
from windlass.views.lines import Line
from windlass.views.story import WORDS, line_of
from windlass.views.words import one_line

_FACTS = tuple(sorted(each.__name__ for each in get_args(Event)))


class LogRequest(Struct, frozen=True, kw_only=True):
    """What to show of a journal; filters combine."""

    plan: str | None = None
    """A plan, or PLAN:TASK."""
    tasks: tuple[str, ...] = ()
    turns: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ()
    """Words of the log (RETURNED) or names of facts (TurnReturned), in any case."""
    since: datetime | None = None
    after: int = 0
    """Only facts after this position of the journal."""
    every_run: bool = False
    """Every run of the plan, not only the last."""
    zone: tzinfo = UTC
    """The time zone of times inside of lines."""


class LogLine(Struct, frozen=True):
    """A fact and its line for people; some facts have none."""

    entry: Entry
    line: Line | None


class Log(Struct, frozen=True, kw_only=True):
    """The requested part of a plan's log."""

    plan: str
    last: int
    """The position of the newest fact."""
    lines: tuple[LogLine, ...]


def log(project: Project, request: LogRequest | None = None) -> Log:
    """What happened in the last run of a plan, oldest first."""
    request, entries = _settled(project, request or LogRequest())
    state: RunState | None = None
    found: list[LogLine] = []
    for entry in entries:
        state = apply(state, entry.event)
        found += filter(None, (_wanted(request, entry, state),))
    return Log(plan=request.plan or "", last=entries[-1].seq, lines=tuple(found))


async def follow_log(project: Project, request: LogRequest) -> AsyncGenerator[LogLine]:
    """The same, and then each new fact while the run is live."""
    request, _ = await anyio.to_thread.run_sync(_settled, project, request)
    async with aclosing(follow(project, request.plan, activity=False)) as seen:
        async for each in seen:
            if isinstance(each, Fact) and (line := _wanted(request, each.entry, each.state)):
                yield line


def log_plan(project: Project, request: LogRequest) -> str:
    """The id of the plan that the request names."""
    return _resolved(project, request)[0]


def _settled(project: Project, request: LogRequest) -> tuple[LogRequest, list[Entry]]:
    """The request with its plan's id, its tasks and its first position; and the journal."""
    plan_id, tasks = _resolved(project, request)
    entries = project.journals.entries(plan_id)
    if not entries:
        raise BadInput(f"plan {plan_id!r} was never run here", hint="start it: windlass run PLAN")
    _refuse_unknown_tasks(plan_id, entries, tasks)
    _refuse_unknown_kinds(request.kinds)
    starts = [each.seq for each in entries if isinstance(each.event, RunStarted)]
    begins = 0 if request.every_run or not starts else starts[-1] - 1
    kinds = tuple(map(_plainly, request.kinds))
    after = max(request.after, begins)
    return replace(request, plan=plan_id, tasks=tasks, kinds=kinds, after=after), entries


def _resolved(project: Project, request: LogRequest) -> tuple[str, tuple[str, ...]]:
    """The plan and the tasks that the request names; a task alone names both."""
    if request.plan is None:
        return only_plan(project, None), request.tasks
    plan_id, task = plan_and_task(project, request.plan)
    return plan_id, request.tasks if task is None else (*request.tasks, task)


def _wanted(request: LogRequest, entry: Entry, state: RunState) -> LogLine | None:
    """The entry with its line, if it passes the filters; `state` is the state after it."""
    event = entry.event
    if entry.seq <= request.after or (request.since is not None and event.at < request.since):
        return None
    line = line_of(event, state, request.zone, whole=True)
    names = {type(event).__name__.lower(), line.word.lower() if line is not None else ""}
    tasks = _tasks_of(event)
    wanted = (
        (not request.kinds or bool(names & set(request.kinds)))
        and (not request.tasks or bool(tasks & set(request.tasks)))
        and (not request.turns or _turn_of(tasks, state) in request.turns)
    )
    return LogLine(entry, line) if wanted else None


def _tasks_of(event: Event) -> set[str]:
    one: str | None = getattr(event, "task", None)
    return {one} if one is not None else set(getattr(event, "tasks", ()))


def _turn_of(tasks: set[str], state: RunState) -> int | None:
    """The turn that a fact belongs to: the task's last one."""
    found = [state.tasks[id_] for id_ in tasks if id_ in state.tasks]
    return found[0].last.turn if found and found[0].attempts else None


def _plainly(kind: str) -> str:
    return kind.lower().replace("_", " ")


def _refuse_unknown_tasks(plan_id: str, entries: list[Entry], tasks: tuple[str, ...]) -> None:
    if not tasks:
        return
    events = [entry.event for entry in entries]
    plans = [each.plan for each in events if isinstance(each, RunStarted | PlanRevised)]
    known = {task.id for plan in plans for task in plan.tasks}
    named = set[str]().union(*map(_tasks_of, events))
    for task in tasks:
        if task not in known | named:
            listed = f"it has {', '.join(sorted(known))}"
            raise BadInput(
                f"plan {plan_id!r} has no task {task!r}", hint=did_you_mean(task, known, listed)
            )


def _refuse_unknown_kinds(kinds: tuple[str, ...]) -> None:
    known = {*map(_plainly, WORDS), *map(_plainly, _FACTS)}
    for kind in kinds:
        if _plainly(kind) not in known:
            words = f"use a word of the log: {', '.join(WORDS)}; or a fact: {', '.join(_FACTS)}"
            raise BadInput(
                f"unknown kind {one_line(kind, 60)!r}",
                hint=did_you_mean(_plainly(kind), (*WORDS, *_FACTS), words),
            )
