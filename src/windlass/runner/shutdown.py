"""Signals: the first stops the run, the second exits at once. Ignored signals stay ignored.

Exiting at once loses nothing: recorded facts are durable, and all processes in a sandbox die with
this one.
"""

import os
import signal
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager

import anyio

from windlass.views.outcome import Exit

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stop_signals() -> Generator[AsyncIterator[str]]:
    """The name of the first signal that asks to stop; the second ends this process.

    The block catches signals from its first moment, before anyone waits for them.
    """
    # A run that was started with nohup must outlive the terminal.
    watched = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    with anyio.open_signal_receiver(*watched) as received:
        yield _names(received)


async def _names(received: AsyncIterator[signal.Signals]) -> AsyncIterator[str]:
    asked = False
    async for signum in received:
        if asked:
            os._exit(Exit.STOPPED)
        asked = True
        yield signal.Signals(signum).name
