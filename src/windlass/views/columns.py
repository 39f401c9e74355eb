"""Text in the columns of a terminal; what is too wide is cut or wrapped."""

import unicodedata
from collections.abc import Iterable, Iterator

from windlass.views.words import one_line

_WIDE = frozenset({"W", "F"})
_MARKS = frozenset({"Mn", "Me"})
_NARROWEST = 16
"""Columns that a text is folded into, at least."""
_STAND_INS = {"─": "-", "●": "*", "↩": "<", "◷": "o", "⇡": "^", "·": "-", "…": "~", "→": ">"}


def columns(text: str) -> int:
    """The columns that the text takes: two for an ideograph, none for a combining accent."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def fitted(text: str, width: int) -> str:
    """Text of an agent or a plan as one safe line of at most so many columns."""
    return cut(one_line(text, width + 1), width)  # no more than may matter is measured


def cut(line: str, width: int) -> str:
    """A safe line, cut to the width."""
    if columns(line) <= width:
        return line
    return _head(line, width - 1).rstrip() + "…" if width > 0 else ""


def _head(line: str, width: int) -> str:
    """The part of a too wide line that fits."""
    taken = place = 0
    while (taken := taken + _columns(line[place])) <= width:
        place += 1
    return line[:place]


def padded(line: str, width: int) -> str:
    """A safe line, padded with spaces to the width."""
    return line + " " * (width - columns(line))


def folded(line: str, width: int) -> list[str]:
    """A safe line folded to the width, between words if possible; its indentation stays."""
    text = line.lstrip(" ")
    indent = line[: len(line) - len(text)]
    if indent and width - len(indent) >= _NARROWEST:
        return [indent + part for part in folded(text, width - len(indent))]
    lines = [""]
    for word in line.split(" "):
        rest = word
        if lines[-1] and columns(lines[-1]) + 1 + columns(rest) <= width:
            lines[-1] += " " + rest
            continue
        lines += [""] if lines[-1] else []
        while columns(rest) > width:
            head = _head(rest, width) or rest[0]
            lines[-1], rest = head, rest[len(head) :]
            lines.append("")
        lines[-1] = rest
    return lines


def hanging(head: str, line: str, width: int | None) -> list[str]:
    """A line after its head; where it is too wide, the rest is indented below."""
    indent = columns(head)
    if width is None or indent + columns(line) <= width:
        return [(head + line).rstrip()]
    first, *more = folded(line, max(_NARROWEST, width - indent))
    return [(head + first).rstrip(), *(f"{'':{indent}}{each}".rstrip() for each in more)]


def ascii_only(line: str) -> str:
    """A safe line for a terminal without Unicode; the width stays the same."""
    if line.isascii():
        return line
    return "".join(char if char.isascii() else _stand_in(char) for char in line)


def wrapped(parts: Iterable[str], width: int, *, between: str = " ") -> Iterator[str]:
    """The parts on as few lines as possible; `between` also ends a line that is continued."""
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


def _stand_in(char: str) -> str:
    return _STAND_INS.get(char, "?" * _columns(char))
