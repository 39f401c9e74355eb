"""A spec's Markdown: which of its sections say what to do, and which only what was done.

Audits, runs and reviews append to the file they are about. What they wrote tells what was; read as
part of the plan, a proposal of an audit would be a second plan, and a report of success a claim.
"""

import re
from collections.abc import Iterable, Iterator

from windlass.dialects import markdown, spec_groups, tables
from windlass.dialects.markdown import Block, Section
from windlass.dialects.tables import Table

_HISTORY = frozenset({
    "audit history", "review history", "verification history", "revision history",
    "execution summary", "implementation summary", "completion", "completion summary",
})  # fmt: skip
_HISTORY_LEVEL = 2
"""Deeper ones may be requirements: of what is to happen at completion, say."""
_PLANNED = frozenset({"task groups", "implementation tasks"})
_FILLER = re.compile(r"[ \t]*(?:-[ \t]*){3,}|\s*")
_WHERE = {"fence": "code block", "code": "indented code", "quote": "quotation", "list": "list"}


class SpecDocument:
    """One text, without its frontmatter."""

    def __init__(self, text: str) -> None:
        self.document = markdown.parse(text)
        self.blocks = self.document.blocks
        sections = self.document.sections(lambda _text: False)
        self.history = outermost(each for each in sections if _is_history(each))
        past = indices(self.history)
        self.sections = [each for each in sections if each.start - 1 not in past]
        self.present = [(i, block) for i, block in enumerate(self.blocks) if i not in past]
        """The blocks that are the spec's own, each with its index."""
        planned = indices(each for each in self.sections if label(each) in _PLANNED)
        found = [(index, table) for index, block in self.present if (table := _groups(block))]
        full = [table for _, table in found if _has_dependencies(table)]
        self.groups = full or [table for index, table in found if index in planned]
        """The tables of its groups: all that say who waits for whom, else those in their place."""
        self.ignored = [table for _, table in found if table not in self.groups]

    def under(self, section: Section) -> tuple[Block, ...]:
        """What stands under a heading."""
        return self.blocks[section.start : section.stop]

    def span(self, section: Section) -> range:
        """The lines of a section, its heading among them."""
        ended = section.stop < len(self.blocks)
        after = self.blocks[section.stop].first if ended else len(self.document.lines) + 1
        return range(section.heading.first, after)

    def without(self, spans: Iterable[range]) -> str:
        """The spec's own text but for these lines."""
        cut = {number for each in self.history for number in self.span(each)}
        cut.update(number for span in spans for number in span)
        lines = [line for number, line in enumerate(self.document.lines, 1) if number not in cut]
        while lines and _FILLER.fullmatch(lines[-1]):
            lines.pop()
        return "\n".join(lines).lstrip("\n")

    def proposed(self) -> Table | None:
        """The newest groups that an audit has proposed."""
        past = (self.under(each) for each in self.history)
        found = (table for blocks in past for block in blocks if (table := _groups(block)))
        full = [table for table in found if _has_dependencies(table)]
        return full[-1] if full else None

    def hidden(self) -> Iterator[tuple[int, str]]:
        """The lines that would begin a table of groups, each with what they stand in instead."""
        for _, block in self.present:
            if block.kind not in _WHERE:
                continue
            for number in range(block.first, block.last + 1):
                line = self.document.lines[number - 1].strip("> \t")
                if "|" not in line or "group" not in line.casefold():
                    continue
                found = spec_groups.columns_of(tables.labels(tables.cells(line)))
                if found is not None and found.dependencies is not None:
                    yield number, f"the {_WHERE[block.kind]} that begins on line {block.first}"


def label(section: Section) -> str:
    """A heading as it is compared; it may be numbered."""
    return markdown.label_of(markdown.unnumbered(section.heading.text))


def indices(sections: Iterable[Section]) -> frozenset[int]:
    """The blocks that stand in these sections, headings included, by their indices."""
    return frozenset(index for each in sections for index in range(each.start - 1, each.stop))


def outermost(sections: Iterable[Section]) -> list[Section]:
    """Those that stand in none of the others."""
    found: list[Section] = []
    for each in sections:
        if not found or each.start > found[-1].stop:
            found.append(each)
    return found


def _is_history(section: Section) -> bool:
    return section.level <= _HISTORY_LEVEL and label(section) in _HISTORY


def _groups(block: Block) -> Table | None:
    table = tables.table_of(block)
    return table if table and spec_groups.columns_of(table.columns) else None


def _has_dependencies(table: Table) -> bool:
    columns = spec_groups.columns_of(table.columns)
    return columns is not None and columns.dependencies is not None
