"""Output to a terminal or a pipe: colours, folded lines, and a reader that goes away.

Law 1: on a terminal no line is wider than the screen; it is folded between words, and the rest is
indented below. Elsewhere a line stays one line. Law 2: a reader that closes the pipe is no error of
the run; later output goes nowhere. Any other failure, such as a full disk, is an error.
"""

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, tzinfo
from typing import Any, TextIO

import click

from windlass.app.wiring import LOCAL_TIME
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
    "RED": "31",
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
    return f"\x1b[{code}m{text}\x1b[0m" if code and text else text


_NARROW = 40
"""Columns below which lines are not folded."""


def room() -> int | None:
    """The columns of the terminal on stdout; None without a terminal, or on a very narrow one."""
    if not sys.stdout.isatty():
        return None
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return None
    return columns if columns >= _NARROW else None


def zone() -> tzinfo:
    """The time zone for stdout: the person's on a terminal, elsewhere UTC."""
    return LOCAL_TIME if sys.stdout.isatty() else UTC


def put(head: str, text: str = "") -> None:
    """Print a line: a fixed head, and a text that is folded next to it."""
    for line in hanging(head, text, room()):
        click.echo(line)


_NO_READER = frozenset({errno.EPIPE, errno.EIO})
"""The errors of a pipe and of a terminal without a reader."""


class LastingStream:
    """A stream that discards what is written after its reader has gone."""

    def __init__(self, stream: TextIO, left: Callable[[], object]) -> None:
        self._stream = stream
        self._left = left
        """Called when the reader of a pipe has gone; a closed terminal sends a signal itself."""

    def write(self, text: str) -> int:
        self._lasting(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._lasting(self._stream.flush)

    def __getattr__(self, name: str) -> Any:
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
    """Discard what is buffered in the stream, and all that is written later."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
