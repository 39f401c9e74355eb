"""What a terminal or a pipe can take: colours, lines folded to its width, a reader that goes away.

Law 1: on a terminal no line is wider than it is, and no word is broken that could stay whole; what
does not fit goes on below, as far in as the text began. Elsewhere a line stays one line. Law 2: a
reader that has gone is no error of the run. What is written from then on goes nowhere; any other
trouble, such as a full disk below a log, is an error as always.
"""

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO

import click

from windlass.views.columns import hanging

BY_WORD = {
    "DONE": "32",
    "LANDED": "32",
    "START": "1",
    "RESUME": "1",
    "RETURNED": "33",
    "ANSWER": "36",
    "GO": "36",
    "CONFLICT": "33",
    "LIMIT": "33",
    "WAIT": "33",
    "WARNING": "33",
    "FAILED": "31",
    "ABANDONED": "31",
    "BLOCKED": "31",
    "NEEDS YOU": "35",
    "STOP": "33",
    "PAUSE": "33",
    "Summary": "1",
    "Next": "1",
}

BY_STYLE = {
    "title": "1",
    "you": "1;35",
    "work": "36",
    "back": "33",
    "wait": "33",
    "merge": "32",
    "dim": "2",
}


def coloured(text: str, code: str) -> str:
    """The text in that colour, and what follows in none."""
    return f"\x1b[{code}m{text}\x1b[0m" if code and text else text


_NARROW = 40
"""Columns below which folding makes nothing more legible."""


def room() -> int | None:
    """The columns of the terminal that stdout is; None where it is none, or is very narrow."""
    if not sys.stdout.isatty():
        return None
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return None
    return columns if columns >= _NARROW else None


def put(head: str, text: str = "") -> None:
    """Print a line: what stands at its beginning, and a text that may be folded beside it."""
    for line in hanging(head, text, room()):
        click.echo(line)


_NO_READER = frozenset({errno.EPIPE, errno.EIO})
"""Of a pipe and of a terminal."""


class LastingStream:
    """Writes to a stream for as long as it has a reader."""

    def __init__(self, stream: TextIO, left: Callable[[], object]) -> None:
        self._stream = stream
        self._left = left
        """Called when the reader of a pipe has gone; who had a terminal gets a signal anyway."""

    def write(self, text: str) -> int:
        """Write, with or without a reader."""
        self._lasting(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Flush, with or without a reader."""
        self._lasting(self._stream.flush)

    def __getattr__(self, name: str) -> Any:
        """All else is as the stream has it."""
        return getattr(self._stream, name)

    def _lasting(self, act: Callable[[], object]) -> None:
        try:
            act()
        except OSError as error:
            if error.errno not in _NO_READER:
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
