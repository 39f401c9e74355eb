"""Why a request was refused, and when to retry. Pure.

A header that cannot be parsed is ignored; none can make this fail. Whether a time is plausible is
decided by the code that waits for it.
"""

import enum
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from msgspec import Struct


class Complaint(enum.Enum):
    """What the provider finds wrong, where only a person can put it right."""

    KEY = "the credentials"
    MODEL = "the model"
    PATH = "the address"


class Refusal(Struct, frozen=True, kw_only=True):
    """Why a request was refused, by the provider or by the meter."""

    until: datetime | None = None
    """When to retry, if it was said."""
    is_limit: bool = False
    """Whether a usage limit of the account is reached."""
    is_ours: bool = False
    """Whether too little of the run's budget was left, so that the provider was not asked."""
    is_cut: bool = False
    """Whether the answer was cut short because the meter had limited it to what was left."""
    why: str = ""
    """What was wrong with the request or its answer, in the meter's words."""
    unreached: bool = False
    """Whether there was no answer because the provider could not be reached."""
    is_lasting: bool = False
    """Whether that stays so until a person changes something."""
    complaint: Complaint | None = None
    status: int = 0
    """The status of the provider's answer, with a complaint."""


def retry_after(
    value: str, now: datetime, counted: Callable[[datetime], datetime]
) -> datetime | None:
    """The time in `retry-after`: seconds from now, or an HTTP date."""
    try:
        seconds = timedelta(seconds=float(value))
    except ValueError:
        named = _http_date(value)
        return counted(named) if named is not None else None
    except OverflowError:
        return None
    try:
        return now + seconds if seconds >= timedelta() else None
    except OverflowError:
        return None


def _http_date(value: str) -> datetime | None:
    try:
        return _in_utc(parsedate_to_datetime(value))
    except (ValueError, OverflowError):
        return None


def read_moment(value: str | float) -> datetime | None:
    """A time given as seconds since 1970, or as an RFC 3339 date."""
    try:
        return datetime.fromtimestamp(float(value), UTC)
    except (OverflowError, OSError):
        return None
    except ValueError:
        pass  # not a number, or out of range
    try:
        return _in_utc(datetime.fromisoformat(str(value)))
    except (ValueError, OverflowError):
        return None


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
