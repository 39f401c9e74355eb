"""Signals: the first asks the run to stop, the second leaves at once.

Leaving at once loses nothing: what is recorded is durable, and whatever runs inside a sandbox dies
with this process.
"""

import os
import signal
from collections.abc import AsyncIterator

import anyio

STOPPED = 4
"""The exit code of a run that can be resumed."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def stop_signals() -> AsyncIterator[str]:
    """The name of the first signal that asks to stop; the second ends the process here."""
    with anyio.open_signal_receiver(*_SIGNALS) as received:
        asked = False
        async for signum in received:
            if asked:
                os._exit(STOPPED)
            asked = True
            yield signal.Signals(signum).name
