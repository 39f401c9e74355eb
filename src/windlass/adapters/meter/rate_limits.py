"""Why a request was not granted, and the moments that a refusal can name. Pure.

What cannot be read is not there; no header can make this fail. Whether a moment is believable is
decided where it is waited for.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from msgspec import Struct


class Refusal(Struct, frozen=True, kw_only=True):
    """Why a request was not granted, by the provider or by the meter."""

    until: datetime | None = None
    """When to ask again, if it said so."""
    is_limit: bool = False
    """Whether it said that a usage limit of the account is reached."""
    is_ours: bool = False
    """Whether too little of the run's own budget was left, so that the provider was not asked."""
    is_cut: bool = False
    """Whether the answer was cut short, for the meter had bounded it to what was left."""
    why: str = ""
    """What was wrong with the request, or with its answer, in the meter's own words."""


def retry_after(
    value: str, now: datetime, counted: Callable[[datetime], datetime]
) -> datetime | None:
    """The moment that `retry-after` means: seconds from now, or a date as HTTP writes it."""
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
    """Seconds since 1970, or a date by RFC 3339."""
    try:
        return datetime.fromtimestamp(float(value), UTC)
    except (OverflowError, OSError):
        return None
    except ValueError:
        pass  # no number, or none of this calendar's
    try:
        return _in_utc(datetime.fromisoformat(str(value)))
    except (ValueError, OverflowError):
        return None


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
