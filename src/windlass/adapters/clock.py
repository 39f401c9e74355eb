"""The machine's clock: the calendar time at the process start, plus the time passed since.

Law: within one process time never goes back, and the difference of two moments is the time that
passed, even if a person or a time server sets the calendar. Waiting is for a moment, not for a
number of seconds: a laptop may sleep, and that time counts.
"""

import time
from datetime import UTC, datetime, timedelta, tzinfo

import anyio
import anyio.lowlevel

SLICE = 60.0
"""Look at the clock at least this often: a laptop may sleep."""

_PASSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Never set, never back; includes the time the machine sleeps, which on Linux is its own clock."""


def _calendar() -> datetime:
    return datetime.now(UTC)  # noqa: TID251  the port's source


_BEGAN, _TICKS = _calendar(), time.clock_gettime_ns(_PASSED)


class SystemClock:
    """The time as this process counts it; all instances agree."""

    def now(self) -> datetime:
        passed = time.clock_gettime_ns(_PASSED) - _TICKS
        return _BEGAN + timedelta(microseconds=passed // 1000)

    def counted(self, moment: datetime) -> datetime:
        """A calendar time given by another machine, as this process counts it."""
        try:
            return moment + (self.now() - _calendar())
        except OverflowError:
            return moment

    async def sleep_until(self, moment: datetime) -> None:
        # A wait that is over at once must still be a cancellation point.
        await anyio.lowlevel.checkpoint()
        while (left := (moment - self.now()).total_seconds()) > 0:  # noqa: ASYNC110  no event says when a machine wakes
            await anyio.sleep(min(left, SLICE))


class LocalTime(tzinfo):
    """The machine's time zone, as TZ or the system says, with the offset of each moment."""

    def fromutc(self, dt: datetime) -> datetime:
        return dt.replace(tzinfo=UTC).astimezone()

    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        return None if dt is None else dt.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, dt: datetime | None) -> timedelta | None:  # noqa: ARG002  the base class's form
        return None

    def tzname(self, dt: datetime | None) -> str | None:
        return None if dt is None else dt.replace(tzinfo=None).astimezone().tzname()
