"""What a task waits for, and until when."""

from datetime import datetime

from windlass.events.model import Failure
from windlass.state import Phase, TaskState
from windlass.views.words import duration

_WORDS = {
    Failure.USAGE_LIMIT: "for the provider's usage limit to end",
    Failure.TRANSIENT: "for the provider to recover",
}


def waits_for(task: TaskState) -> Failure | None:
    """The failure that is waited out before an agent is started again, if one is."""
    waits = task.phase in {Phase.WAITING, Phase.WAITING_FOR_COACH}
    return task.failed.failure if waits and task.failed is not None else None


def wait_line(failure: Failure, until: datetime, now: datetime) -> str:
    """`for the provider's usage limit to end · until 14:20:05Z, in 31m50s`."""
    reason = _WORDS.get(failure, f"before it is tried again ({failure})")
    # A limit may be a week's: a time of day alone would then name the wrong day.
    day = "" if until.date() == now.date() else f"{until:%Y-%m-%d} "
    left = max(0.0, (until - now).total_seconds())
    return f"{reason} · until {day}{until:%H:%M:%S}Z, in {duration(left)}"
