"""A stream that may lose its reader: a pipe that is closed, a terminal that is gone.

Law: nobody looking is no fault of what goes on. What is written from then on goes nowhere, down to
what is left in the stream at the end of the process; any other trouble, such as a full disk below
a log, is said as ever.
"""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO

_NOBODY_READS = frozenset({errno.EPIPE, errno.EIO})
"""Of a pipe and of a terminal."""


class LastingStream:
    """Writes to a stream for as long as somebody reads it."""

    def __init__(self, stream: TextIO, left: Callable[[], object]) -> None:
        self._stream = stream
        self._left = left
        """Called when the reader of a pipe has gone; who had a terminal gets a signal anyway."""

    def write(self, text: str) -> int:
        """Write, whether or not somebody reads."""
        self._lasting(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Hand over what was written, whether or not somebody reads."""
        self._lasting(self._stream.flush)

    def __getattr__(self, name: str) -> Any:
        """All else is as the stream has it."""
        return getattr(self._stream, name)

    def _lasting(self, act: Callable[[], object]) -> None:
        try:
            act()
        except OSError as error:
            if error.errno not in _NOBODY_READS:
                raise
            silence(self._stream)
            if error.errno == errno.EPIPE:
                self._left()


def silence(stream: TextIO) -> None:
    """Let what is in the stream, and what is still written to it, go nowhere."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
