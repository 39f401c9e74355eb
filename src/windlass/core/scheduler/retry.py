"""What to do when an agent fails for a reason other than the code: one table.

Such failures use up no turns. Each class has its own bound on failures in a row; a Player that
finishes, or a person who resumes, resets the count.
"""

import enum
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType

from msgspec import Struct

from windlass.core.events.model import Failure


class Then(enum.Enum):
    AGAIN = "again"
    WAIT = "wait"
    ASK = "ask"
    PAUSE = "pause"
    """No agent can work until a person fixes it: the whole run pauses."""


class Rule(Struct, frozen=True):
    """How often a class may fail in a row, and how long to wait in between."""

    bound: int | None
    first_wait: float = 0.0
    longest_wait: float = 0.0


RULES: Mapping[Failure, Rule] = MappingProxyType(
    {
        Failure.ENVIRONMENT: Rule(2, 1, 5),
        Failure.TRANSIENT: Rule(8, 2, 300),
        Failure.USAGE_LIMIT: Rule(None, 60, 3600),
        Failure.AUTH: Rule(0),
        Failure.BUDGET: Rule(0),
        Failure.STALLED: Rule(3),
        Failure.CRASHED: Rule(3, 1, 30),
        Failure.INTERRUPTED: Rule(None),
        Failure.INCONCLUSIVE: Rule(3),
    }
)

FARTHEST = timedelta(days=31)
"""A retry time more than a month ahead is an error of the provider, and ignored."""

_PAUSING = frozenset({Failure.AUTH, Failure.BUDGET})


class Retry(Struct, frozen=True, kw_only=True):
    then: Then
    until: datetime | None = None


def after(
    failure: Failure, *, in_a_row: int, at: datetime, retry_at: datetime | None, jitter: float
) -> Retry:
    """The decision on this failure at `at`, the `in_a_row`-th of its class."""
    rule = RULES[failure]
    if failure in _PAUSING:
        return Retry(then=Then.PAUSE)
    if rule.bound is not None and in_a_row > rule.bound:
        return Retry(then=Then.ASK)
    if retry_at is not None and retry_at - at <= FARTHEST:
        # The provider's time is exact. A repeated failure also backs off, or a wrong clock would
        # start agents without end.
        wait = _back_off(rule, in_a_row - 1, jitter)
        return Retry(then=Then.WAIT, until=max(retry_at, at + wait))
    wait = _back_off(rule, in_a_row, jitter)
    return Retry(then=Then.WAIT, until=at + wait) if wait else Retry(then=Then.AGAIN)


def _back_off(rule: Rule, in_a_row: int, jitter: float) -> timedelta:
    if in_a_row < 1:
        return timedelta()
    wait = min(rule.longest_wait, rule.first_wait * 2 ** min(in_a_row - 1, 20))
    # Half of the wait is fixed and half is random, so that agents do not all retry at once.
    return timedelta(seconds=wait * (0.5 + jitter / 2))
