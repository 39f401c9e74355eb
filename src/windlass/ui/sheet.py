"""What a command that only looks prints: as it is for a program, folded where a person reads it.

Law: on a terminal no line is wider than it is and no word is broken that could stay whole; what
does not fit goes on below, as far in as the text began. Elsewhere a line stays one line.
"""

import os
import sys

import click

from windlass.views.columns import hanging

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
