"""Signals: the first asks the run to stop, the second leaves at once; ignored ones stay so.

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
    # Who started it with nohup wants it to outlive the terminal.
    heeded = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    with anyio.open_signal_receiver(*heeded) as received:
        asked = False
        async for signum in received:
            if asked:
                os._exit(STOPPED)
            asked = True
            yield signal.Signals(signum).name
