"""When the provider asks to be asked again, from the headers of its refusal. Pure.

Where several moments are named the latest counts, for until then one of them still refuses.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from windlass.adapters.meter.rate_limits import Refusal, read_moment, retry_after

REFUSED = frozenset({429, 503, 529})
"""The answers that mean: not now."""
TOO_MANY = 429
_LIMITS = "anthropic-ratelimit-"
_ACCOUNT = f"{_LIMITS}unified-status"
_EXTRA = f"{_LIMITS}unified-overage-reset"
"""When more could be bought beyond the limit: the limit itself is over sooner."""


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
    if (after := retry_after(headers.get("retry-after", ""), now, counted)) is not None:
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
