"""When a provider that refuses a request asks to be asked again, from its headers alone. Pure.

Rule 1: what cannot be read is not there; no header can make this fail. Rule 2: where several
moments are named the latest counts, for until then one of them still refuses. Whether a moment is
believable is for whoever waits for it to say.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from msgspec import Struct

REFUSED = frozenset({429, 503, 529})
"""The answers that mean: not now."""
TOO_MANY = 429
_LIMITS = "anthropic-ratelimit-"
_ACCOUNT = f"{_LIMITS}unified-status"
_EXTRA = f"{_LIMITS}unified-overage-reset"
"""When more could be bought beyond the limit: the limit itself is over sooner."""


class Refusal(Struct, frozen=True, kw_only=True):
    """Why a request was not granted: what a provider said with an answer that means: not now."""

    until: datetime | None = None
    """When to ask again, if it said so."""
    is_limit: bool = False
    """Whether it said that a usage limit of the account is reached."""
    is_ours: bool = False
    """Whether the provider was never asked, because the run's own budget is used up."""
    why: str = ""
    """What was wrong with the request, or with its answer, in the meter's own words."""


def read_refusal(
    status: int,
    headers: Mapping[str, str],
    now: datetime,
    counted: Callable[[datetime], datetime] = lambda moment: moment,
) -> Refusal:
    """Understand a refusal; header names are in lower case.

    `counted` gives a moment of the provider's calendar as `now` is counted.
    """
    moments = [counted(end) for end in _resets(headers)]
    if (after := _delay(headers.get("retry-after", ""), now, counted)) is not None:
        moments.append(after)
    return Refusal(
        until=max(moments, default=None),
        is_limit=status == TOO_MANY and headers.get(_ACCOUNT) == "rejected",
    )


def _resets(headers: Mapping[str, str]) -> Iterator[datetime]:
    """The ends of those limits that are said to be reached; the others' are news of no use."""
    for name, value in headers.items():
        if not (name.startswith(_LIMITS) and name.endswith("-reset")) or name == _EXTRA:
            continue
        reached = headers.get(f"{name.removesuffix('reset')}status") == "rejected"
        if reached and (end := read_moment(value)) is not None:
            yield end


def _delay(value: str, now: datetime, counted: Callable[[datetime], datetime]) -> datetime | None:
    """`retry-after`: seconds, or a date in HTTP's words."""
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
