"""What a screen remembers of the tasks under way: since when each does what it does, and what.

Law: it is made of facts and activities alone and kept by whoever shows it; nothing is decided by
it. A task that begins something else begins it with a clean slate.
"""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from windlass.events import model as e
from windlass.ports import Activity
from windlass.state import Phase, RunState, TaskState
from windlass.views.words import one_line

_LONG = 200
_ROLES = {Phase.PLAYING: "player", Phase.REVIEWING: "coach"}
_AT_REST = frozenset({Phase.PENDING, Phase.MERGED, Phase.STALE, Phase.ABANDONED})


class Sight(Struct, frozen=True, kw_only=True):
    """One task under way."""

    phase: Phase
    attempt: int
    since: datetime
    doing: str = ""
    """The newest thing its agent did, or the check that runs."""


Sights = Mapping[str, Sight]

WHOLE = ""
"""The key under which the run itself is seen: the base or the tip being looked at."""


def under_way(state: RunState) -> list[TaskState]:
    """The tasks that were begun and are not done, the merge queue last and in its order."""
    queued = [state.tasks[id_] for id_ in state.queue]
    return [*state.live, *(task for task in queued if task.phase is Phase.APPROVED)]


def seen(before: Sights, event: e.Event, state: RunState) -> dict[str, Sight]:
    """How it looks once the event has led to the state."""
    sights = dict(before)
    if isinstance(event, e.TaskEvent):
        _look(sights, event.task, event, state)  # no other can have changed
    elif not isinstance(event, e.SpendReserved | e.SpendSettled | e.HostsAsked):
        for id_ in {*before, *(task.id for task in under_way(state))} - {WHOLE}:
            _look(sights, id_, event, state)
    match event:
        case e.ChecksStarted():
            doing = _commands(event.checks)
            sights[event.task] = replace(sights[event.task], since=event.at, doing=doing)
        case e.BaselineStarted() | e.VerificationStarted():
            doing = _commands(event.checks)
            sights[WHOLE] = Sight(phase=Phase.CHECKING, attempt=0, since=event.at, doing=doing)
        case e.BaselineFinished() | e.VerificationFinished() | e.RunResumed() | e.RunEnded():
            sights.pop(WHOLE, None)
        case _:
            pass
    return sights


def _look(sights: dict[str, Sight], id_: str, event: e.Event, state: RunState) -> None:
    task = state.tasks.get(id_)
    if task is None or task.phase in _AT_REST:
        sights.pop(id_, None)
        return
    before, attempts = sights.get(id_), len(task.attempts)
    if before is None or (before.phase, before.attempt) != (task.phase, attempts):
        sights[id_] = Sight(phase=task.phase, attempt=attempts, since=event.at)


def heard(before: Sights, activity: Activity) -> dict[str, Sight]:
    """How it looks once an agent has said or done something."""
    sight = before.get(activity.task)
    line = one_line(activity.text, _LONG)
    if (
        sight is None
        or not line
        or activity.kind in {"start", "end"}
        or not _is_of(sight, activity)
    ):
        return dict(before)
    return {**before, activity.task: replace(sight, doing=line)}


def _is_of(sight: Sight, activity: Activity) -> bool:
    """Whether it is the agent's that works there now: who looks on reads facts first."""
    role = _ROLES.get(sight.phase)
    return role is not None and activity.role in {"", role} and activity.n in {0, sight.attempt}


def _commands(checks: tuple[str, ...]) -> str:
    more = f" +{len(checks) - 1}" if len(checks) > 1 else ""
    return one_line(checks[0], _LONG - len(more)) + more if checks else ""
