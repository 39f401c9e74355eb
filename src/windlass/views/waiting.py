"""What a task waits for, and until when.

Law: what it means that nobody works on a task that was begun is said here, for every screen.
"""

from datetime import datetime
from typing import Literal

from msgspec import Struct

from windlass.events.model import Absence, Failure
from windlass.state import Phase, RunState, TaskState
from windlass.state.demands import task_checks
from windlass.state.quota import coach_model, limits, player_model
from windlass.state.slots import free_slots
from windlass.views.words import duration

_WORDS = {
    Failure.USAGE_LIMIT: "for the provider's usage limit to end",
    Failure.TRANSIENT: "for the provider to recover",
}

_FOR_COACH = frozenset({Phase.SAVED, Phase.CHECKED})

_FOR = {
    "limit": "for the limit",
    "agent": "for an agent",
    "slot": "for a test slot",
    "tasks": "for the other tasks",
    "resume": "for `windlass resume`",
}


class Idle(Struct, frozen=True):
    """Why nobody works on a task that could be worked on."""

    why: Literal["limit", "agent", "slot", "tasks", "resume"]
    until: datetime | None = None

    @property
    def text(self) -> str:
        """`for an agent`."""
        return _FOR[self.why]


def waits_for(task: TaskState) -> Failure | None:
    """The failure that is waited out before an agent is started again, if one is."""
    waits = task.phase in {Phase.WAITING, Phase.WAITING_FOR_COACH}
    return task.failed.failure if waits and task.failed is not None else None


def idle(state: RunState, task: TaskState) -> Idle | None:
    """What it waits for that is no fault of its own; None where something is done about it."""
    if task.phase is Phase.RETURNED:
        if state.specs[task.id].scenario and task.turn == 0:
            return Idle("tasks")  # it is tried on the tip, once all else is in it
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
    """How many tasks could begin, were it not for a usage limit."""
    limited = limits(state)
    return sum(player_model(state, task.id) in limited for task in state.free) if limited else 0


def _waits_for_slot(state: RunState, task: TaskState) -> bool:
    """Whether checks have yet to speak, and others' are under way in their place."""
    if free_slots(state) > 0:
        return False
    said = state.evidence.get(task.last.tree or "", {})
    heard = {c for c, result in said.items() if result.absence is not Absence.TIMED_OUT}
    return not heard.issuperset(task_checks(state, task.id))


def moment(until: datetime, now: datetime, *, seconds: bool = False) -> str:
    """`14:20Z`; a limit may be a week's, and a time of day alone would then name the wrong day."""
    day = "" if until.date() == now.date() else f"{until:%Y-%m-%d} "
    return f"{day}{until:%H:%M:%S}Z" if seconds else f"{day}{until:%H:%M}Z"


def wait_line(failure: Failure, until: datetime, now: datetime) -> str:
    """`for the provider's usage limit to end · until 14:20:05Z, in 31m50s`."""
    reason = _WORDS.get(failure, f"before it is tried again ({failure})")
    left = max(0.0, (until - now).total_seconds())
    return f"{reason} · until {moment(until, now, seconds=True)}, in {duration(left)}"
