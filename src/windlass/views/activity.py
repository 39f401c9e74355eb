"""What the tasks under way do, since when, and what they wait for.

Law: every screen gets from here why no agent works on a task. A `TaskView` follows from facts and
activities alone, and decides nothing.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.events.model import Absence, Failure
from windlass.core.state import Phase, RunPhase, RunState, TaskState
from windlass.core.state.checks import free_slots, task_checks
from windlass.core.state.quota import coach_model, limits, player_model
from windlass.ports import Activity
from windlass.views.lines import Line, harmless_line
from windlass.views.times import moment
from windlass.views.words import duration, one_line

_LONG = 200
_ROLES = {Phase.PLAYING: "player", Phase.REVIEWING: "coach"}
_AT_REST = frozenset({Phase.PENDING, Phase.MERGED, Phase.STALE, Phase.ABANDONED})


class TaskView(Struct, frozen=True, kw_only=True):
    """One task under way."""

    phase: Phase
    attempt: int
    since: datetime
    doing: str = ""
    """The last thing that its agent did, or the check that runs."""
    setup: str = ""
    """The setup command that runs, before any of that."""


TaskViews = Mapping[str, TaskView]

_BESIDE = (e.SpendReserved, e.SpendStreamed, e.SpendSettled, e.SpendRefused, e.HostsAsked)
"""Facts that change no task's phase."""

WHOLE = ""
"""The key of the run itself, while the base or the tip is checked."""


def under_way(state: RunState) -> list[TaskState]:
    """The tasks that have started and are not done; the merge queue comes last, in its order."""
    queued = [state.tasks[id_] for id_ in state.queue]
    return [*state.live, *(task for task in queued if task.phase is Phase.APPROVED)]


def after_event(before: TaskViews, event: e.Event, state: RunState) -> dict[str, TaskView]:
    """The views after the event that led to the state."""
    views = dict(before)
    if isinstance(event, e.TaskEvent):
        _look(views, event.task, event, state)  # no other can have changed
    elif not isinstance(event, _BESIDE):
        for id_ in {*before, *(task.id for task in under_way(state))} - {WHOLE}:
            _look(views, id_, event, state)
    match event:
        case e.ChecksStarted():
            doing = _commands(event.checks)
            views[event.task] = replace(views[event.task], since=event.at, doing=doing)
        case e.BaselineStarted() | e.VerificationStarted():
            doing = _commands(event.checks)
            views[WHOLE] = TaskView(phase=Phase.CHECKING, attempt=0, since=event.at, doing=doing)
        case e.BaselineFinished() | e.VerificationFinished() | e.RunResumed() | e.RunEnded():
            views.pop(WHOLE, None)
        case _:
            pass
    return views


def _look(views: dict[str, TaskView], id_: str, event: e.Event, state: RunState) -> None:
    task = state.tasks.get(id_)
    if task is None or task.phase in _AT_REST:
        views.pop(id_, None)
        return
    before, attempts = views.get(id_), len(task.attempts)
    if before is None or (before.phase, before.attempt) != (task.phase, attempts):
        views[id_] = TaskView(phase=task.phase, attempt=attempts, since=event.at)


def after_activity(before: TaskViews, activity: Activity) -> dict[str, TaskView]:
    """The views after an activity of an agent or of the setup."""
    view = before.get(activity.task)
    line = one_line(activity.text, _LONG)
    if activity.kind == "setup" and view is not None:
        runs = line if activity.took is None else ""
        return {**before, activity.task: replace(view, setup=runs)}
    if view is None or not line or activity.kind in {"start", "end"} or not _is_of(view, activity):
        return dict(before)
    return {**before, activity.task: replace(view, doing=line)}


def setup_line(activity: Activity, state: RunState | None) -> Line:
    """The line for a setup command that begins, or has ended."""
    spec = state.specs.get(activity.task) if state is not None else None
    named = f"{activity.task} {one_line(spec.title, 60)}" if spec is not None else activity.task
    who = named or whole_name(state)
    runs = " runs" if activity.took is None else ""
    text = f"{who} · `{one_line(activity.text, _LONG)}`{runs}"
    return harmless_line(Line("SETUP", text, (), activity.took))


def whole_name(state: RunState | None) -> str:
    """What is checked while no task is."""
    is_tip = state is not None and state.phase is not RunPhase.CHECKING_BASE
    return "the tip" if is_tip else "base"


def _is_of(view: TaskView, activity: Activity) -> bool:
    """Whether it comes from the current agent: a watcher reads facts before activities."""
    role = _ROLES.get(view.phase)
    return role is not None and activity.role in {"", role} and activity.n in {0, view.attempt}


def _commands(checks: tuple[str, ...]) -> str:
    more = f" +{len(checks) - 1}" if len(checks) > 1 else ""
    return one_line(checks[0], _LONG - len(more)) + more if checks else ""


_WORDS = {
    Failure.USAGE_LIMIT: "for the provider's usage limit to end",
    Failure.TRANSIENT: "for the provider to recover",
}

REASON = 200
"""Columns for why a provider cannot be reached: the cure stands at its end."""

_FOR_COACH = frozenset({Phase.SAVED, Phase.CHECKED})

_FOR = {
    "limit": "for the limit",
    "agent": "for an agent",
    "slot": "for a test slot",
    "tasks": "for the other tasks",
    "resume": "for `windlass resume`",
}


class Idle(Struct, frozen=True):
    """Why no agent works on a task that is ready."""

    why: Literal["limit", "agent", "slot", "tasks", "resume"]
    until: datetime | None = None

    @property
    def text(self) -> str:
        """`for an agent`."""
        return _FOR[self.why]


def quota(state: RunState) -> str:
    """Whose usage limit a run waits for."""
    return f"{state.settings.agent.name or 'agent'} quota"


def waits_for(task: TaskState) -> Failure | None:
    """The failure after which an agent starts again only later, if there is one."""
    waits = task.phase in {Phase.WAITING, Phase.WAITING_FOR_COACH}
    return task.failed.failure if waits and task.failed is not None else None


def idle(state: RunState, task: TaskState) -> Idle | None:
    """What the task waits for through no fault of its own; None if work on it is under way."""
    if task.phase is Phase.RETURNED:
        if state.specs[task.id].scenario and task.turn == 0:
            return Idle("tasks")  # it runs on the tip, after all other tasks
        if state.stopping is not None:
            return Idle("resume")
        return _for_agent(state, player_model(state, task.id))
    if task.phase in _FOR_COACH:
        if _waits_for_slot(state, task):
            return Idle("slot")
        return _for_agent(state, coach_model(state))
    return None


def _for_agent(state: RunState, model: str) -> Idle:
    limited = limits(state)
    return Idle("limit", limited[model]) if model in limited else Idle("agent")


def held_by_limit(state: RunState) -> int:
    """How many tasks could start but for a usage limit."""
    limited = limits(state)
    return sum(player_model(state, task.id) in limited for task in state.free) if limited else 0


def _waits_for_slot(state: RunState, task: TaskState) -> bool:
    """Whether checks have yet to run, and others take up all test slots."""
    if free_slots(state) > 0:
        return False
    results = state.evidence.get(task.last.tree or "", {})
    done = {c for c, result in results.items() if result.absence is not Absence.TIMED_OUT}
    return not done.issuperset(task_checks(state, task.id))


def unreached(task: TaskState) -> str:
    """Why the provider could not be reached, if the task waits for that."""
    return one_line(task.failed.message, REASON) if task.failed and task.failed.unreached else ""


def wait_line(failure: Failure, until: datetime, now: datetime, unreached: str = "") -> str:
    """`for the provider's usage limit to end · until 14:20:05Z, in 31m50s`; the zone of `now`."""
    reason = unreached or _WORDS.get(failure, f"before it is tried again ({failure})")
    left = max(0.0, (until - now).total_seconds())
    return f"{reason} · until {moment(until, now, seconds=True)}, in {duration(left)}"
