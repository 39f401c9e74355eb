"""Where in a spec-kit document its tasks stand: the way from Markdown to entries, in order.

A task is a list item that begins with a box and an id. A document that has no such item may have
a heading `### T001 [P] Title` for each task instead, or items with an id and no box. What stands
in code is never a task.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

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
    rf"[ \t>]*(?:[-*+]|[0-9]{{1,9}}[.)])[ \t]+\[[ xX~/-]?\][ \t]*[*_`\[(]*(?P<id>{speckit_line.ID})"
)
_ODD_BOX = re.compile(r"\A\[[^\]]?\]\s*")
_WORDS = frozenset({"paragraph", "underlined", "quote"})
_MAX_WORDS = 3_000
"""Of what a phase says, how much every one of its tasks repeats."""
_PLACES = {"fence": "a code block", "html": "HTML", "quote": "a quotation", "list": "code"}


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
    """One reading of one text."""

    def __init__(self, text: str) -> None:
        self.document: Document = markdown.parse(text)
        self.sections = {each.start: each for each in self.document.sections(lambda _text: False)}
        self.firsts = [block.first for block in self.document.blocks]
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
        self.seen: set[int] = set()
        self.asides: list[bool] = []
        self.stack: list[Block] = []
        self.walk()

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

    def hidden(self, known: Iterable[str]) -> Iterator[tuple[int, str, bool]]:
        """Lines that read like tasks and are none: where, in what, and whether that is a slip."""
        ids = {each.casefold() for each in known}
        blocks = self.document.blocks
        for number, line in enumerate(self.document.lines, 1):
            found = _LOOKS.match(line)
            if found is None or number in self.seen or found["id"].casefold() in ids:
                continue
            index = bisect_right(self.firsts, number) - 1
            kind = blocks[index].kind if index >= 0 else ""
            slip = kind == "code" and not self.asides[index]
            yield number, _PLACES.get(kind, "other text"), slip

    def walk(self) -> None:
        headed: Block | None = None
        for index, block in enumerate(self.document.blocks):
            if block.kind == "heading":
                self.enter(block)
                if headed not in self.stack:
                    headed = self.heading(index, block)
            self.asides.append(self.aside)
            if headed is not None:
                for item in markdown.items((block,)):
                    self.visit(item, self.headed[-1])
            elif block.kind == "list":
                self.listed(block)
            elif block.kind in _WORDS and self.stack:
                self.phase().parts.append(self.source(block))
            if headed is None and self.ordering:
                self.orders += self.order_lines(block)

    def enter(self, heading: Block) -> None:
        while self.stack and self.stack[-1].level >= heading.level:
            self.stack.pop()
        self.stack.append(heading)

    def listed(self, block: Block) -> None:
        before = len(self.seen)
        for item in block.children:
            self.visit(item, None)
        if len(self.seen) == before and self.stack:
            self.phase().parts.append(self.source(block))

    @property
    def below_title(self) -> list[Block]:
        return [heading for heading in self.stack if heading.level > 1]

    @property
    def aside(self) -> bool:
        texts = [heading.text for heading in self.stack]
        if any(map(PHASE.match, texts)):
            return False
        return any(_ASIDE.search(heading.text) for heading in self.below_title)

    @property
    def ordering(self) -> bool:
        return any(
            _ORDER.search(heading.text) and not PHASE.match(heading.text)
            for heading in self.below_title
        )

    def phase(self) -> Phase:
        """The phase that the headings above name: the nearest one so called, else the highest."""
        named = [heading for heading in self.stack if PHASE.match(heading.text)]
        heading = next(iter(named[-1:] or self.below_title), None)
        line = heading.first if heading else 0
        if line not in self.phases:
            name = heading.text.replace("**", "").strip() if heading else ""
            self.phases[line] = Phase(name=name, number=len(self.phases))
        return self.phases[line]

    def section(self) -> Block | None:
        last = self.stack[-1] if self.stack else None
        return None if last is None or PHASE.match(last.text) else last

    def heading(self, index: int, block: Block) -> Block | None:
        """The heading, where it names a task whose section this is."""
        line = speckit_line.plain(block.text) if block.level > 1 else None
        if line is None or line.several:
            return None
        self.stack.pop()
        found = self.sections[index + 1]
        entry = Entry(
            line=line,
            at=block.first,
            phase=self.phase(),
            section=self.section(),
            aside=self.aside,
            block=block,
            blocks=self.document.blocks[found.start : found.stop],
        )
        self.stack.append(block)
        self.headed.append(entry)
        return block

    def visit(self, item: Block, within: Entry | None) -> None:
        """Find the tasks in an item, and in the items that it holds."""
        first = next(iter(item.children), None)
        text = first.text if first is not None else ""
        line = speckit_line.boxed(text)
        if line is not None:
            self.seen.add(item.first)
            if within is not None and _part(line.id, within.line.id):
                self.parts[line.id] = (within.line.id, item.first)
                return
            entry = self.entry(item, line)
            self.boxed.append(entry)
            if within is not None:
                within.nested.append(entry)
            within = entry
        elif speckit_line.placeholder(text):
            self.placeholders.append((item.first, self.aside))
        elif speckit_line.has_box(text):
            self.unnumbered.append((item.first, within, self.aside))
        elif within is None and (line := speckit_line.plain(text)) and not line.several:
            self.plain.append(self.entry(item, line))
        for child in markdown.items(item.children):
            self.visit(child, within)

    def entry(self, item: Block, line: Line) -> Entry:
        return Entry(
            line=line,
            at=item.first,
            phase=self.phase(),
            section=self.section(),
            aside=self.aside,
            block=item,
            blocks=item.children,
        )

    def text(self, entry: Entry) -> str:
        """All that is said of the task itself, without the tasks that stand inside it."""
        block = entry.block
        if block.kind == "heading":
            index = bisect_right(self.firsts, block.first)
            return f"{block.text}\n\n{self.document.body(self.sections[index])}".strip()
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

    def source(self, block: Block) -> str:
        return "\n".join(self.document.lines[block.first - 1 : block.last]).strip()

    def order_lines(self, block: Block) -> Iterator[tuple[int, str]]:
        """The sentences of a block: each line of a paragraph, each item of a list."""
        if block.kind in ("paragraph", "underlined"):
            yield from enumerate(block.text.split("\n"), block.first)
        for item in markdown.items((block,)):
            for child in item.children:
                if child.kind == "paragraph":
                    yield child.first, child.text
                else:
                    yield from self.order_lines(child)


def _part(inner: str, outer: str) -> bool:
    """Whether an id goes on from another: T010a and T010.1 from T010, but T0101 does not."""
    rest = inner.casefold().removeprefix(outer.casefold())
    return len(rest) < len(inner) and not rest[:1].isdigit()
