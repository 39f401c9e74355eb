"""GitHub's Markdown tables, as rows that know their source lines. This module knows no dialect.

Only the text of a paragraph can be a table, never a line inside code.
"""

import re

from msgspec import Struct

from windlass.formats import markdown
from windlass.formats.markdown import Block

PIPE = re.compile(r"(?<!\\)\|")
_DELIMITER = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_SPAN = re.compile(r"`[^`]*`")
_EMPHASIS = "*_` "


class Row(Struct, frozen=True, kw_only=True):
    """One row under the header."""

    line: int
    """Counted from 1 in the whole file."""
    cells: tuple[str, ...]
    """As many as were written; the table may have more or fewer columns."""

    def cell(self, index: int | None) -> str:
        """The text of a cell; empty where the row ends before it, or there is no such column."""
        return self.cells[index] if index is not None and index < len(self.cells) else ""


class Table(Struct, frozen=True, kw_only=True):
    """A header with its rows."""

    line: int
    """Of the header."""
    header: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The header's cells as labels in the spelling that is compared."""
        return labels(self.header)


def labels(header: tuple[str, ...]) -> tuple[str, ...]:
    """A header's cells in the spelling that is compared."""
    return tuple(markdown.label_of(cell.strip(_EMPHASIS)) for cell in header)


def table_of(block: Block) -> Table | None:
    """The table that the block is or contains; a line without a pipe ends it."""
    lines = block.text.split("\n") if "|" in block.text else []
    for index in range(1, len(lines)):
        if not _DELIMITER.fullmatch(lines[index]) or "|" not in lines[index - 1]:
            continue
        header = cells(lines[index - 1])
        if len(header) != len(cells(lines[index])):
            continue
        rows: list[Row] = []
        for number, line in enumerate(lines[index + 1 :], block.first + index + 1):
            if "|" not in line:
                break
            rows.append(Row(line=number, cells=_fitting(line, len(header))))
        return Table(line=block.first + index - 1, header=header, rows=tuple(rows))
    return None


def cells(line: str) -> tuple[str, ...]:
    """The texts between the pipes of a line; an escaped pipe separates nothing."""
    bare = line.strip().removeprefix("|")
    parts = PIPE.split(bare)
    if len(parts) > 1 and not parts[-1].strip():
        parts.pop()  # after the pipe that closes the row
    return tuple(part.strip().replace("\\|", "|") for part in parts)


def _fitting(line: str, width: int) -> tuple[str, ...]:
    """The row's cells; where there are too many, pipes in code do not separate cells."""
    found = cells(line)
    if len(found) <= width:
        return found
    guarded = cells(_SPAN.sub(lambda span: span.group().replace("|", "\\|"), line))
    return guarded if len(guarded) == width else found
