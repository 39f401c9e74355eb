"""The Execution Status table in SpecFlow's `STATE.md`: one row for this spec, and no other byte.

The file is the user's. It is never created, and where it has no such table it is left alone.
"""

import re
from collections.abc import Sequence

from windlass.dialects import markdown, tables
from windlass.dialects.tables import Table

_HEADING = "execution status"
_COLUMNS = (
    frozenset({"spec id", "spec", "specification", "id"}),
    frozenset({"mode"}),
    frozenset({"progress"}),
    frozenset({"last updated", "updated"}),
)
_MAX_CHARS = 1_000_000
"""Beyond this it is no such file, and looking through it at every step would take its time."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")
_PIPE = re.compile(r"(?<!\\)\|")


def with_row(text: str, values: Sequence[str]) -> str:
    """The text with the row of this spec: its id, mode, progress and when that was so."""
    if len(text) > _MAX_CHARS or _HEADING not in text.casefold():
        return text
    found = _table(text)
    if found is None:
        return text
    table, places = found
    lines = _LINE.findall(text)
    row = next((row for row in table.rows if _is_of(row.cell(places[0]), values[0])), None)
    if row is not None:
        wanted = dict(zip(places, values, strict=True))
        lines[row.line - 1] = _changed(lines[row.line - 1], wanted)
        return "".join(lines)
    last = table.rows[-1].line if table.rows else table.line + 1
    cells = ["—"] * len(table.header)
    for place, value in zip(places, values, strict=True):
        cells[place] = value
    lines[last - 1] = _with_line_below(lines[last - 1], lines[0], f"| {' | '.join(cells)} |")
    return "".join(lines)


def _table(text: str) -> tuple[Table, list[int]] | None:
    document = markdown.parse(text)
    for section in document.sections(lambda _text: False):
        if markdown.label_of(section.heading.text) != _HEADING:
            continue
        for block in document.blocks[section.start : section.stop]:
            table = tables.table_of(block)
            places = [_place(table, names) for names in _COLUMNS] if table else [None]
            known = [place for place in places if place is not None]
            if table is not None and len(known) == len(_COLUMNS):
                return table, known
    return None


def _place(table: Table, names: frozenset[str]) -> int | None:
    return next((i for i, label in enumerate(table.columns) if label in names), None)


def _is_of(cell: str, spec_id: str) -> bool:
    return cell.strip("*_`[] ").casefold() == spec_id.casefold()


def _changed(line: str, wanted: dict[int, str]) -> str:
    """The line with these cells, where they are not so already."""
    end = line[len(line.rstrip("\r\n")) :]
    bare = line.rstrip("\r\n")
    parts = _PIPE.split(bare)
    first = 1 if not parts[0].strip() and len(parts) > 1 else 0  # before the pipe that opens it
    for place, value in list(wanted.items())[1:]:
        index = first + place
        parts += [""] * (index + 1 - len(parts))
        if parts[index].strip() != value:
            parts[index] = f" {value} "
    return "|".join(parts) + end


def _with_line_below(line: str, sample: str, new: str) -> str:
    """The line with a new one after it; the file's last line may have no end."""
    end = line[len(line.rstrip("\r\n")) :]
    if end:
        return f"{line}{new}{end}"
    return f"{line}{sample[len(sample.rstrip(chr(13) + chr(10))) :] or chr(10)}{new}"
