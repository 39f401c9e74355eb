"""The machine's clock. Waiting is for a moment of the calendar, not for a number of seconds."""

from datetime import UTC, datetime

import anyio
import anyio.lowlevel

SLICE = 60.0
"""Look at the clock at least this often, for it may be set, and a laptop may sleep meanwhile."""


class SystemClock:
    """The time as the machine has it."""

    def now(self) -> datetime:
        """The present, in UTC."""
        return datetime.now(UTC)  # noqa: TID251  this is where the port gets it

    async def sleep_until(self, moment: datetime) -> None:
        """Return at that moment, at once when it is past."""
        # Also a wait that is over at once must be a place to be cancelled at.
        await anyio.lowlevel.checkpoint()
        while (left := (moment - self.now()).total_seconds()) > 0:  # noqa: ASYNC110  nobody tells when a clock is set
            await anyio.sleep(min(left, SLICE))
