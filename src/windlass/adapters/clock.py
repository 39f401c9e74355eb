"""The machine's clock: the calendar when the process began, and from then on what has passed since.

Law: in one process no moment is earlier than one before it, and the time between two is the time
that has passed, also when a person or a time server sets the calendar meanwhile. Waiting is for a
moment, not for a number of seconds: a laptop may sleep, and that time counts.
"""

import time
from datetime import UTC, datetime, timedelta

import anyio
import anyio.lowlevel

SLICE = 60.0
"""Look at the clock at least this often, for a laptop may sleep meanwhile."""

_PASSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Never set, never back; goes on while the machine sleeps, which on Linux is a clock of its own."""


def _calendar() -> datetime:
    return datetime.now(UTC)  # noqa: TID251  this is where the port gets it


_BEGAN, _TICKS = _calendar(), time.clock_gettime_ns(_PASSED)


class SystemClock:
    """The time as this process counts it; all its clocks are one."""

    def now(self) -> datetime:
        """The present, in UTC."""
        passed = time.clock_gettime_ns(_PASSED) - _TICKS
        return _BEGAN + timedelta(microseconds=passed // 1000)

    def counted(self, moment: datetime) -> datetime:
        """A moment that another machine names by the calendar, as this process counts it."""
        try:
            return moment + (self.now() - _calendar())
        except OverflowError:
            return moment

    async def sleep_until(self, moment: datetime) -> None:
        """Return at that moment, at once when it is past."""
        # Also a wait that is over at once must be a place to be cancelled at.
        await anyio.lowlevel.checkpoint()
        while (left := (moment - self.now()).total_seconds()) > 0:  # noqa: ASYNC110  no event tells when a machine wakes
            await anyio.sleep(min(left, SLICE))
