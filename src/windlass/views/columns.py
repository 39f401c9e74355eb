"""Text in the columns of a terminal: what is too wide is cut or wrapped, never spilled."""

import unicodedata
from collections.abc import Iterable, Iterator

from windlass.views.words import one_line

_WIDE = frozenset({"W", "F"})
_MARKS = frozenset({"Mn", "Me"})


def columns(text: str) -> int:
    """How many columns the text takes: an ideograph two, an accent that joins a letter none."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def fitted(text: str, width: int) -> str:
    """Text by an agent or a plan as one harmless line of at most so many columns."""
    return cut(one_line(text, width + 1), width)  # no more than may matter is measured


def cut(line: str, width: int) -> str:
    """A harmless line, cut where it is too wide."""
    if columns(line) <= width:
        return line
    kept = ""
    room = width - 1
    while (room := room - _columns(line[len(kept)])) >= 0:
        kept += line[len(kept)]
    return kept.rstrip() + "…"


def wrapped(parts: Iterable[str], width: int, *, between: str = " ") -> Iterator[str]:
    """The parts on as few lines as they fit on; `between` also ends a line that goes on below."""
    end = between.rstrip()
    room = width - len(end)
    line: str | None = None
    for part in parts:
        short = fitted(part, room)
        if line is not None and columns(line + between + short) > room:
            yield line + end
            line = None
        line = short if line is None else line + between + short
    yield line or ""


def _columns(char: str) -> int:
    if unicodedata.category(char) in _MARKS:
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1
