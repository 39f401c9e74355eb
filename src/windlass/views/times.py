"""Moments as people read them: in their own time zone on a terminal, in UTC everywhere else.

Law: a time always shows its zone, `14:20Z` or `16:20+02`, and reads back as the same moment. Views
know nothing of the machine: a time is written in the zone that it comes in.
"""

from datetime import datetime


def time_of_day(at: datetime, *, seconds: bool = False) -> str:
    """`14:20Z`, `16:20+02`, `19:50:05+05:30`."""
    return f"{at:%H:%M:%S}{_zone(at)}" if seconds else f"{at:%H:%M}{_zone(at)}"


def date_and_time(at: datetime, *, seconds: bool = False) -> str:
    """`2026-01-31 14:20Z`, `2026-01-31 16:20+02`."""
    return f"{at:%Y-%m-%d} {time_of_day(at, seconds=seconds)}"


def moment(until: datetime, now: datetime, *, seconds: bool = False) -> str:
    """The time of day in the zone of `now`, with the date if it is another day.

    A usage limit can last a week.
    """
    local = until.astimezone(now.tzinfo)
    write = time_of_day if local.date() == now.date() else date_and_time
    return write(local, seconds=seconds)


def _zone(at: datetime) -> str:
    offset = f"{at:%z}"
    if not at.utcoffset():
        return "Z"
    hours, minutes = offset[:3], offset[3:5]
    return hours if minutes == "00" else f"{hours}:{minutes}"
