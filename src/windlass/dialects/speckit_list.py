"""Where in a spec-kit document its tasks stand: the way from Markdown to entries, in order.

A task is a list item that begins with a box and an id. A document that has no such item may have
a heading `### T001 [P] Title` for each task instead, or items with an id and no box. What stands
in code is never a task.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import islice

from msgspec import Struct, field

from windlass.dialects import markdown, speckit_line
from windlass.dialects.markdown import Block, Document
from windlass.dialects.speckit_line import Line

PHASE = re.compile(r"\W*(?:Final[- ])?Phase\b", re.IGNORECASE)
_ORDER = re.compile(r"dependenc|execution order|task order", re.IGNORECASE)
_ASIDE = re.compile(
    r"dependenc|\bparallel|\bexecution\b|\bstrateg|\bnotes?\b|\bsummary\b|\bformat\b|\bconventions?"
    r"|\bchecklist\b|\bprogress\b|\blegend\b|\bnext steps\b|\bgeneration\b|\bcoverage\b|\bmetrics\b"
    r"|\bexamples?\b|\bstatus\b|\boverview\b|\bcriteria\b|\bgates?\b",
    re.IGNORECASE,
)
_LOOKS = re.compile(
    rf"[ \t>]*(?:[-*+]|[0-9]{{1,9}}[.)])[ \t]*\[[ xX~/-]?\][ \t]*[*_`\[(]*(?P<id>{speckit_line.ID})"
)
_LOOK_LINES = re.compile(rf"^{_LOOKS.pattern}", re.MULTILINE)
_ODD_BOX = re.compile(r"\A\[[^\]]?\]\s*")
_WORDS = frozenset({"paragraph", "underlined", "quote", "list"})
_MAX_WORDS = 3_000
"""Of what a phase says, how much every one of its tasks repeats."""
_PLACES = {
    "fence": "a code block",
    "html": "HTML",
    "quote": "a quotation",
    "frontmatter": "frontmatter",
}


def many(text: str, limit: int) -> bool:
    """Whether more lines than this read like tasks."""
    return sum(1 for _ in islice(_LOOK_LINES.finditer(text), limit + 1)) > limit


class Phase(Struct, kw_only=True):
    """A part of the list whose tasks are done before the next part's are begun."""

    name: str
    number: int
    parts: list[str] = field(default_factory=list[str])

    def words(self) -> str:
        """What it says beside its tasks: purpose, goal, independent test, checkpoint."""
        text = "\n\n".join(self.parts)
        if len(text) <= _MAX_WORDS:
            return text
        return text[:_MAX_WORDS].rsplit(" ", 1)[0] + " …"


class Entry(Struct, kw_only=True, eq=False):
    """A line that names a task, and what belongs to it."""

    line: Line
    at: int
    phase: Phase
    section: Block | None
    """The nearest heading above it, inside its phase."""
    aside: bool
    """It stands where others are spoken of: in a summary, an example, a section on order."""
    block: Block
    """The item or the heading."""
    blocks: tuple[Block, ...]
    """What an item holds, or what stands under a heading."""
    nested: list["Entry"] = field(default_factory=list["Entry"])
    """Tasks of their own that stand inside it."""

    @property
    def counts(self) -> bool:
        """Whether it is one task that is to be done."""
        return not self.line.struck and not self.line.several


class Listing:
    """One reading of one text; once made, nobody changes it."""

    def __init__(self, text: str) -> None:
        self.document: Document = markdown.parse(text)
        self._sections = {each.start: each for each in self.document.sections(lambda _text: False)}
        self._firsts = [block.first for block in self.document.blocks]
        self.phases: dict[int, Phase] = {}
        self.boxed: list[Entry] = []
        self.headed: list[Entry] = []
        self.plain: list[Entry] = []
        self.parts: dict[str, tuple[str, int]] = {}
        """The ids of parts, each with the id of the task that holds it, and where."""
        self.unnumbered: list[tuple[int, Entry | None, bool]] = []
        """Boxes without an id: where, and whether beside the point."""
        self.placeholders: list[tuple[int, bool]] = []
        self.orders: list[tuple[int, str]] = []
        """The lines of sections about the order of tasks."""
        self._seen: set[int] = set()
        self._asides: list[bool] = []
        self._stack: list[Block] = []
        self._walk()

    @property
    def title(self) -> str:
        """The document's first heading of the highest level."""
        headings = (block for block in self.document.blocks if block.kind == "heading")
        return next((block.text for block in headings if block.level == 1), "")

    @property
    def phased(self) -> bool:
        """Whether a heading names a phase."""
        return any(map(PHASE.match, (b.text for b in self.document.blocks if b.kind == "heading")))

    def top(self) -> str:
        """What stands above the first part of the document: where it came from, what it needs."""
        headings = (b.first for b in self.document.blocks if b.kind == "heading" and b.level > 1)
        return "\n".join(self.document.lines[: next(headings, 1) - 1])

    def entries(self) -> list[Entry]:
        """The entries that may be tasks: those with boxes and headings, else those without."""
        ids = {entry.line.id.casefold() for entry in self.boxed}
        headed = [
            entry
            for entry in self.headed
            if entry.line.id.casefold() not in ids and not entry.aside and not entry.line.several
        ]
        found = sorted([*self.boxed, *headed], key=lambda entry: entry.at)
        return found or [entry for entry in self.plain if not entry.aside]

    def chosen(self) -> tuple[list[Entry], list[Entry]]:
        """The tasks, and the entries that are none: dropped ones, ranges, repetitions."""
        entries = self.entries()
        told = {each.line.id.casefold() for each in entries if each.counts and not each.aside}
        found: list[Entry] = []
        left: list[Entry] = []
        for entry in entries:
            again = entry.aside and entry.line.id.casefold() in told
            (left if again or not entry.counts else found).append(entry)
        return found, left

    def hidden(self, known: Collection[str]) -> Iterator[tuple[int, str, bool]]:
        """Lines that read like tasks and are none: where, in what, and whether that is a slip."""
        for number, line in enumerate(self.document.lines, 1):
            found = _LOOKS.match(line)
            if found is None or number in self._seen or found["id"].casefold() in known:
                continue
            index = bisect_right(self._firsts, number) - 1
            kind = _kind_at(self.document.blocks[index], number)
            slip = kind not in _PLACES and not self._asides[index]
            yield number, _PLACES.get(kind, "other text"), slip

    def _walk(self) -> None:
        headed: Block | None = None
        for index, block in enumerate(self.document.blocks):
            if block.kind == "heading":
                self._enter(block)
                if headed not in self._stack:
                    headed = self._heading(index, block)
            self._asides.append(self._aside)
            if headed is None:
                self._read(block)
                continue
            for item in markdown.items((block,)):
                self._visit(item, self.headed[-1])

    def _read(self, block: Block) -> None:
        """Take in a block that stands in no task's own section."""
        if self._ordering:
            self.orders += self._order_lines(block)
        before = len(self._seen)
        for item in markdown.items((block,)):
            self._visit(item, None)
        if block.kind in _WORDS and len(self._seen) == before and self._stack:
            self._phase().parts.append(self._source(block))

    def _enter(self, heading: Block) -> None:
        while self._stack and self._stack[-1].level >= heading.level:
            self._stack.pop()
        self._stack.append(heading)

    @property
    def _below_title(self) -> list[Block]:
        return [heading for heading in self._stack if heading.level > 1]

    @property
    def _aside(self) -> bool:
        texts = [heading.text for heading in self._stack]
        if any(map(PHASE.match, texts)):
            return False
        return any(_ASIDE.search(heading.text) for heading in self._below_title)

    @property
    def _ordering(self) -> bool:
        return any(
            _ORDER.search(heading.text) and not PHASE.match(heading.text)
            for heading in self._below_title
        )

    def _phase(self) -> Phase:
        """The phase that the headings above name: the nearest one so called, else the highest."""
        named = [heading for heading in self._stack if PHASE.match(heading.text)]
        heading = next(iter(named[-1:] or self._below_title), None)
        line = heading.first if heading else 0
        if line not in self.phases:
            name = heading.text.replace("**", "").strip() if heading else ""
            self.phases[line] = Phase(name=name, number=len(self.phases))
        return self.phases[line]

    def _section(self) -> Block | None:
        last = self._stack[-1] if self._stack else None
        return None if last is None or PHASE.match(last.text) else last

    def _heading(self, index: int, block: Block) -> Block | None:
        """The heading, where it names a task whose section this is."""
        line = speckit_line.plain(block.text) if block.level > 1 else None
        if line is None or line.several:
            return None
        self._stack.pop()
        found = self._sections[index + 1]
        entry = Entry(
            line=line,
            at=block.first,
            phase=self._phase(),
            section=self._section(),
            aside=self._aside,
            block=block,
            blocks=self.document.blocks[found.start : found.stop],
        )
        self._stack.append(block)
        self.headed.append(entry)
        return block

    def _visit(self, item: Block, within: Entry | None) -> None:
        """Find the tasks in an item, and in the items that it holds."""
        first = next(iter(item.children), None)
        text = first.text if first is not None else ""
        line = speckit_line.boxed(text)
        if line is not None:
            self._seen.add(item.first)
            if within is not None and _part(line.id, within.line.id):
                self.parts[line.id] = (within.line.id, item.first)
                return
            entry = self._entry(item, line)
            self.boxed.append(entry)
            if within is not None:
                within.nested.append(entry)
            within = entry
        elif speckit_line.placeholder(text):
            self.placeholders.append((item.first, self._aside))
        elif speckit_line.has_box(text):
            self.unnumbered.append((item.first, within, self._aside))
        elif within is None and (line := speckit_line.plain(text)) and not line.several:
            self._seen.add(item.first)
            self.plain.append(self._entry(item, line))
        for child in markdown.items(item.children):
            self._visit(child, within)

    def _entry(self, item: Block, line: Line) -> Entry:
        return Entry(
            line=line,
            at=item.first,
            phase=self._phase(),
            section=self._section(),
            aside=self._aside,
            block=item,
            blocks=item.children,
        )

    def text(self, entry: Entry) -> str:
        """All that is said of the task itself, without the tasks that stand inside it."""
        block = entry.block
        if block.kind == "heading":
            index = bisect_right(self._firsts, block.first)
            return f"{block.text}\n\n{self.document.body(self._sections[index])}".strip()
        lines = self.document.lines
        kept: list[str] = []
        start = block.first - 1
        for inner in entry.nested:
            kept += lines[start : inner.at - 1]
            start = inner.block.last
        kept += lines[start : block.last]
        whole = Block(kind="item", first=1, last=len(kept))
        text = Document(lines=kept, blocks=()).item(whole)
        return _ODD_BOX.sub("", text).strip()

    def _source(self, block: Block) -> str:
        return "\n".join(self.document.lines[block.first - 1 : block.last]).strip()

    def _order_lines(self, block: Block) -> Iterator[tuple[int, str]]:
        """The sentences of a block: each line of a paragraph, each item of a list."""
        if block.kind in ("paragraph", "underlined"):
            yield from enumerate(block.text.split("\n"), block.first)
        for item in markdown.items((block,)):
            for child in item.children:
                if child.kind != "paragraph":
                    yield from self._order_lines(child)
                elif not speckit_line.has_box(child.text):
                    yield child.first, child.text


def _part(inner: str, outer: str) -> bool:
    """Whether an id goes on from another: T010a and T010.1 from T010, but T0101 does not."""
    rest = inner.casefold().removeprefix(outer.casefold())
    return len(rest) < len(inner) and not rest[:1].isdigit()


def _kind_at(block: Block, number: int) -> str:
    """What the line is to Markdown, as deep as lists go."""
    inner: Block | None = block
    while inner is not None and block.kind != "quote":
        block = inner
        inner = next((each for each in block.children if each.first <= number <= each.last), None)
    return block.kind


@lru_cache(maxsize=1)
def read(text: str) -> Listing:
    """The reading of a text. Who recognises it is about to parse it, and reading takes its time."""
    return Listing(text)
