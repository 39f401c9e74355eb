"""The tasks in a spec-kit document: from Markdown to entries, in order.

A task is a list item that begins with a box and an id, such as
`[ ] T012 [P] [US1] Create the model in src/models/user.py`. Bold ids, ids in brackets, and marks in
any order or at the end are common. A document without such items may have a heading
`### T001 [P] Title` for each task, or items with an id and no box. Code is never a task.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import islice

from msgspec import Struct, field

from windlass.formats import markdown
from windlass.formats.markdown import Block, Document
from windlass.formats.words import TICKS

ID = (
    r"T[-_]?[0-9]+[A-Za-z]?"
    r"(?:\.[0-9]+[A-Za-z]?|_[A-Za-z0-9]+|-[0-9]+[A-Za-z]?){0,4}(?![A-Za-z0-9])"
)
"""`T012`, `T012a`, `T-012`, `T012.1`, `T012_new`; not `T012-T015`, which is a range."""
TO = r"(?:-|–|—|\.{2,3}|\bto\b|\bthrough\b)"  # noqa: RUF001

_BOX = re.compile(r"\[(?P<box>[ xX~/!?>✓✔✅-]?)\][ \t]*(?P<rest>.*)", re.DOTALL)
_HEAD = re.compile(
    rf"(?P<open>[*_`~\[(]*)(?:✅[ \t]*)?(?P<id>{ID})(?P<to>[ \t]*{TO}[ \t]*{ID})?"
    rf"[*_`~\])]*[.:]?(?P<rest>.*)",
    re.DOTALL,
)
_PLACEHOLDER = re.compile(r"[*_`\[(]*T(?:X{2,}|N{2,}|#{1,}|\?{2,})\b")
_MARK = re.compile(r"[\s:*_`—–-]*\[(?P<mark>[^\[\]\n]{1,60})\](?!\()[*_`:]*")  # noqa: RUF001
_LAST_MARK = re.compile(r"\[P\][\s.*_`]*\Z")
_STORY = re.compile(r"(?:US[-_ ]?[0-9]+|Story[- ]?[0-9]*)", re.IGNORECASE)
_MAX_MARKS = 12
_MARK_WORDS = re.compile(r"[\s,/|&+]+")
_DROPPED = "-"
"""The box `[-]` usually means skipped, deferred or superseded."""
_MAX_TITLE = 100
_SENTENCE = re.compile(r"(?<=[^.][.;])\s|\s[—–]\s")  # noqa: RUF001

_SEGMENT = r"(?:\([\w.-]+\)|[\w.@+\[\]{},*$=-]+)"
_PATH = re.compile(rf"(?![/~-]|\.\.){_SEGMENT}(?:/{_SEGMENT})*/?")
_EXTENSION = re.compile(r"[^/]\.[A-Za-z][A-Za-z0-9]{0,7}\Z")
_WEB = re.compile(r"\A(?:www\.|[\w-]+(?:\.[\w-]+)*\.(?:com|org|io|dev|net)/)", re.IGNORECASE)
# 'Node.js' and 'React.FC' are words; a name without a folder is a file only with these endings.
_NAME = re.compile(
    r"[\w.-]+\.(?:md|toml|json|ya?ml|cfg|ini|lock|txt|py|tsx?|jsx|mjs|cjs|go|rs|java|kts?|rb|php|cs"
    r"|sh|sql|s?css|html|xml|vue|svelte|swift|dart|cpp|hpp|proto|prisma|tf|gradle|mod|sum)"
)
_MAY_BE_FOLDER = 2
"""The slashes that a folder such as `a/b/c` needs; `and/or` has one."""
_SPACE = re.compile(r"[\s（）：，、；。「」]+|,(?![^{}\s]{0,80}\})")  # noqa: RUF001
_LIKE_PATH = re.compile(r"[/.]")
_MAX_PROSE = 20_000
"""Characters of a paragraph that are searched for paths."""
_TRIM = "\"'“”‘’<>,;:!?"  # noqa: RUF001

PHASE = re.compile(r"\W*(?:Final[- ])?Phase\b", re.IGNORECASE)
_ORDER = re.compile(r"dependenc|execution order|task order", re.IGNORECASE)
_ASIDE = re.compile(
    r"dependenc|\bparallel|\bexecution\b|\bstrateg|\bnotes?\b|\bsummary\b|\bformat\b|\bconventions?"
    r"|\bchecklist\b|\bprogress\b|\blegend\b|\bnext steps\b|\bgeneration\b|\bcoverage\b|\bmetrics\b"
    r"|\bexamples?\b|\bstatus\b|\boverview\b|\bcriteria\b|\bgates?\b",
    re.IGNORECASE,
)
_LOOKS = re.compile(
    rf"[ \t>]*(?:[-*+]|[0-9]{{1,9}}[.)])[ \t]*\[[ xX~/-]?\][ \t]*[*_`\[(]*(?P<id>{ID})"
)
_LOOK_LINES = re.compile(rf"^{_LOOKS.pattern}", re.MULTILINE)
_ODD_BOX = re.compile(r"\A\[[^\]]?\]\s*")
_WORDS = frozenset({"paragraph", "underlined", "quote", "list"})
_MAX_WORDS = 3_000
"""Characters of a phase's own text that each of its tasks repeats."""
_PLACES = {
    "fence": "a code block",
    "html": "HTML",
    "quote": "a quotation",
    "frontmatter": "frontmatter",
}


class Line(Struct, frozen=True, kw_only=True):
    """A line that names a task."""

    id: str
    title: str
    parallel: bool
    box: str | None
    """The text in the box, which may be empty; None where there is no box."""
    struck: bool
    """Whether it is struck through, or its box says that it was dropped."""
    several: bool
    """Whether it names a range of tasks."""

    @property
    def done(self) -> bool:
        """Whether the box is ticked."""
        return bool(self.box) and self.box.casefold() in TICKS


def boxed(text: str) -> Line | None:
    """The task in a paragraph that begins with a box and an id."""
    found = _BOX.match(text)
    return None if found is None else _line(found["rest"], found["box"])


def plain(text: str) -> Line | None:
    """The task in a text that begins with an id."""
    return _line(text, None)


def has_box(text: str) -> bool:
    """Whether the text begins with a box."""
    return _BOX.match(text) is not None


def placeholder(text: str) -> bool:
    """Whether the text begins with a box and a template's placeholder for an id."""
    found = _BOX.match(text)
    return found is not None and _PLACEHOLDER.match(found["rest"]) is not None


def paths(text: str) -> Iterator[str]:
    """The paths in a text: in backticks, or as words that can only be paths."""
    for is_code, segment in markdown.segments(text[:_MAX_PROSE]):
        for word in filter(_LIKE_PATH.search, _SPACE.split(segment)):
            path = word.strip(_TRIM) if is_code else _bare(word)
            path = path.removeprefix("./")
            if _PATH.fullmatch(path) and _is_path(path, is_code=is_code):
                yield path


def _bare(word: str) -> str:
    """A word of prose without the punctuation around it."""
    word = word.strip(_TRIM + "*_")
    if word.startswith("(") or word.count("(") < word.count(")"):
        word = word.strip("()" + _TRIM)
    return word.rstrip(".")


def _is_path(path: str, *, is_code: bool) -> bool:
    if _WEB.match(path) or "..." in path or not any(char.isalnum() for char in path):
        return False
    if "/" not in path:
        return _NAME.fullmatch(path) is not None
    if path.endswith("/") or _EXTENSION.search(path):
        return True
    return is_code and path.count("/") >= _MAY_BE_FOLDER


def _line(text: str, box: str | None) -> Line | None:
    found = _HEAD.match(text)
    if found is None:
        return None
    rest, parallel = _marks(found["rest"])
    return Line(
        id=found["id"],
        title=_title(rest) or found["id"],
        parallel=parallel,
        box=box,
        struck="~~" in found["open"] or box == _DROPPED,
        several=found["to"] is not None,
    )


def _marks(text: str) -> tuple[str, bool]:
    """The text after the marks, and whether a mark says that the task may run in parallel."""
    parallel = False
    at = 0
    kept: list[str] = []
    for _ in range(_MAX_MARKS):
        found = _MARK.match(text, at)
        if found is None:
            break
        words = _MARK_WORDS.split(found["mark"])
        parallel = parallel or "P" in words or "parallel" in found["mark"].casefold()
        at = found.end()
        if not all(word in ("P", "P?") or _STORY.fullmatch(word) for word in words):
            kept.append(f"[{found['mark']}]")
    rest = text[at:]
    if last := _LAST_MARK.search(rest[-20:]):
        parallel = True
        rest = rest[: len(rest) - len(last.group())]
    return " ".join([*kept, rest]), parallel


def _title(text: str) -> str:
    """The text as one line; a long one is cut at the end of a sentence."""
    words = " ".join(text.replace("**", "").split()).lstrip(":—–- ")  # noqa: RUF001
    if len(words) <= _MAX_TITLE:
        return words
    first = _SENTENCE.split(words, maxsplit=1)[0].rstrip(".;")
    if len(first) <= _MAX_TITLE:
        return first
    return words[:_MAX_TITLE].rsplit(" ", 1)[0] + " …"


def many(text: str, limit: int) -> bool:
    """Whether more lines than this look like tasks."""
    return sum(1 for _ in islice(_LOOK_LINES.finditer(text), limit + 1)) > limit


class Phase(Struct, kw_only=True):
    """A part of the list; its tasks are done before those of the next part."""

    name: str
    number: int
    parts: list[str] = field(default_factory=list[str])

    def words(self) -> str:
        """Its text besides its tasks: purpose, goal, independent test, checkpoint."""
        text = "\n\n".join(self.parts)
        if len(text) <= _MAX_WORDS:
            return text
        return text[:_MAX_WORDS].rsplit(" ", 1)[0] + " …"


class Entry(Struct, kw_only=True, eq=False):
    """A line that names a task, and its content."""

    line: Line
    at: int
    phase: Phase
    section: Block | None
    """The nearest heading above it, inside its phase."""
    aside: bool
    """Whether it is in a summary, an example or a section on order."""
    block: Block
    """The item or the heading."""
    blocks: tuple[Block, ...]
    """The content of an item, or the blocks under a heading."""
    nested: list["Entry"] = field(default_factory=list["Entry"])
    """Tasks inside it."""

    @property
    def counts(self) -> bool:
        """Whether it is one task, and was not dropped."""
        return not self.line.struck and not self.line.several


class Listing:
    """The entries of one text. It is cached, so it must not be changed."""

    def __init__(self, text: str) -> None:
        self.document: Document = markdown.parse(text)
        self._sections = {each.start: each for each in self.document.sections()}
        self._firsts = [block.first for block in self.document.blocks]
        self.phases: dict[int, Phase] = {}
        self.boxed: list[Entry] = []
        self.headed: list[Entry] = []
        self.plain: list[Entry] = []
        self.parts: dict[str, tuple[str, int]] = {}
        """The ids of parts of tasks, each with the id of its task and its line."""
        self.unnumbered: list[tuple[int, Entry | None, bool]] = []
        """Boxes without an id: the line, the task around it, and whether it is an aside."""
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
        """The text above the first section of the document."""
        headings = (b.first for b in self.document.blocks if b.kind == "heading" and b.level > 1)
        return "\n".join(self.document.lines[: next(headings, 1) - 1])

    def entries(self) -> list[Entry]:
        """The entries that may be tasks: boxes and headings, else items without a box."""
        ids = {entry.line.id.casefold() for entry in self.boxed}
        headed = [
            entry
            for entry in self.headed
            if entry.line.id.casefold() not in ids and not entry.aside and not entry.line.several
        ]
        found = sorted([*self.boxed, *headed], key=lambda entry: entry.at)
        return found or [entry for entry in self.plain if not entry.aside]

    def chosen(self) -> tuple[list[Entry], list[Entry]]:
        """The tasks, and the other entries: dropped tasks, ranges, repetitions."""
        entries = self.entries()
        named = {each.line.id.casefold() for each in entries if each.counts and not each.aside}
        found: list[Entry] = []
        left: list[Entry] = []
        for entry in entries:
            again = entry.aside and entry.line.id.casefold() in named
            (left if again or not entry.counts else found).append(entry)
        return found, left

    def hidden(self, known: Collection[str]) -> Iterator[tuple[int, str, bool]]:
        """Lines that look like tasks and are not: line, place, and whether it is a mistake."""
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
        """Take a block outside the sections of tasks."""
        if self._ordering:
            self.orders += self._order_lines(block)
        before = len(self._seen)
        for item in markdown.items((block,)):
            self._visit(item, None)
        if block.kind in _WORDS and len(self._seen) == before and self._stack:
            self._phase().parts.append(self.document.source((block,)).strip())

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
        """The phase above: the nearest heading that names a phase, else the highest heading."""
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
        """The heading, where it names a task."""
        line = plain(block.text) if block.level > 1 else None
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
        """Find the tasks in an item and in its nested items."""
        first = next(iter(item.children), None)
        text = first.text if first is not None else ""
        line = boxed(text)
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
        elif placeholder(text):
            self.placeholders.append((item.first, self._aside))
        elif has_box(text):
            self.unnumbered.append((item.first, within, self._aside))
        elif within is None and (line := plain(text)) and not line.several:
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
        """The text of the task, without the tasks inside it."""
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

    def _order_lines(self, block: Block) -> Iterator[tuple[int, str]]:
        """The sentences of a block: each line of a paragraph, each item of a list."""
        if block.kind in ("paragraph", "underlined"):
            yield from enumerate(block.text.split("\n"), block.first)
        for item in markdown.items((block,)):
            for child in item.children:
                if child.kind != "paragraph":
                    yield from self._order_lines(child)
                elif not has_box(child.text):
                    yield child.first, child.text


def _part(inner: str, outer: str) -> bool:
    """Whether an id extends another: T010a and T010.1 extend T010, but T0101 does not."""
    rest = inner.casefold().removeprefix(outer.casefold())
    return len(rest) < len(inner) and not rest[:1].isdigit()


def _kind_at(block: Block, number: int) -> str:
    """The kind of the innermost block on the line."""
    inner: Block | None = block
    while inner is not None and block.kind != "quote":
        block = inner
        inner = next((each for each in block.children if each.first <= number <= each.last), None)
    return block.kind


@lru_cache(maxsize=1)
def read(text: str) -> Listing:
    """The entries of a text, cached because a text is recognised before it is parsed."""
    return Listing(text)
