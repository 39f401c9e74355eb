"""Where a spec says what it is: its frontmatter, at the top of the file or below its title.

SpecFlow has written it in three ways: between two lines of dashes at the top, the same below the
title, and as a code block of YAML below the title.
"""

import re

from msgspec import Struct

from windlass.dialects import frontmatter, markdown
from windlass.dialects.frontmatter import Data
from windlass.errors import PlanError

PREFIX = "SPEC-"

_ABOVE = re.compile(r"\s*(?:#{1,6}[ \t].*|>.*)?")
"""What may stand above it: blank lines, headings, and the quotation that says it was split."""
_DASHES = re.compile(r"---[ \t]*")
_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})[ \t]*(?:ya?ml)?[ \t]*", re.IGNORECASE)
_ID_LINE = re.compile(rf"id[ \t]*:[ \t]*[\"']?{PREFIX}")


class Head(Struct, frozen=True, kw_only=True):
    """A spec's frontmatter."""

    data: dict[str, Data]
    lines: dict[str, int]
    """Where each key stands."""
    first: int
    """Its first line, dashes included, counted from 1."""
    last: int

    def word(self, key: str) -> str:
        """A value that is text; nothing where it is none."""
        value = self.data.get(key)
        return " ".join(value.split()) if isinstance(value, str) else ""


def has_head(text: str) -> bool:
    """Whether there is a frontmatter with a spec's id; it may be broken elsewhere."""
    lines = markdown.split_lines(text.removeprefix("\ufeff"))
    found = bounds(lines)
    return found is not None and any(map(_ID_LINE.match, lines[found[0] : found[1] - 1]))


def read(path: str, text: str) -> Head:
    """The spec's frontmatter; raises for one that is not there or cannot be read."""
    lines = markdown.split_lines(text.removeprefix("\ufeff"))
    where = bounds(lines)
    if where is None:
        cure = f"begin the file with '---', 'id: {PREFIX}…' and '---'"
        raise PlanError("there is no frontmatter", path=path, line=1, hint=cure)
    first, last = where
    # Blank lines for what stands above, so that lines count as in the file.
    inside = ["---", *[""] * (first - 1), *lines[first : last - 1], "---", ""]
    found = frontmatter.read(path, "\n".join(inside))
    entries = found.entries if found else ()
    return Head(
        data={entry.key: entry.value for entry in entries},
        lines={entry.key: entry.line for entry in entries},
        first=first,
        last=last,
    )


def without(text: str) -> str:
    """The text with blank lines where its frontmatter was, so that lines count as in the file."""
    lines = markdown.split_lines(text.removeprefix("\ufeff"))
    first, last = bounds(lines) or (1, 0)
    lines[first - 1 : last] = [""] * (last - first + 1)
    return "\n".join(lines)


def bounds(lines: list[str]) -> tuple[int, int] | None:
    """The lines that open and close the frontmatter, counted from 1."""
    first = next((n for n, line in enumerate(lines, 1) if not _ABOVE.fullmatch(line)), None)
    if first is None:
        return None
    opening = lines[first - 1]
    fence = _FENCE.fullmatch(opening)
    if not fence and not _DASHES.fullmatch(opening):
        return None
    closing = re.compile(rf"{re.escape(fence['fence'])}[ \t]*") if fence else _DASHES
    for number, line in enumerate(lines[first:], first + 1):
        if closing.fullmatch(line):
            return first, number
    return None
