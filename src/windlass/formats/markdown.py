"""Markdown as blocks that know their source lines. This module knows no dialect.

A real parser finds headings, lists and code blocks. Nothing is rendered: every text is cut from the
source by line numbers, and only line ends are normalised. Each function takes linear time.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec import Struct, field

Kind = Literal[
    "frontmatter", "heading", "underlined", "paragraph", "list", "item",
    "fence", "code", "html", "quote", "rule",
]  # fmt: skip

_KINDS: dict[str, Kind] = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "list_item_open": "item",
    "fence": "fence",
    "code_block": "code",
    "html_block": "html",
    "blockquote_open": "quote",
    "hr": "rule",
}

# Inline markup is kept as source, so parsing it would waste time; link definitions must stay
# visible text, or a task would lose lines.
_BLOCKS = MarkdownIt("commonmark").disable(["inline", "text_join", "reference"])
_SPANS = MarkdownIt("zero").enable("backticks")

_NEWLINE = re.compile(r"\r\n?|\n")
_YAML_KEY = re.compile(r"[\w.-]+[ \t]*:(?:[ \t]|$)")
_RULE = re.compile(r"[ \t]*([-*_])[ \t]*(?:\1[ \t]*){2,}")
_MARKER = re.compile(r"(?P<bare>[ \t]*(?:[-*+]|[0-9]{1,9}[.)])?)[ \t]*")
_CHECKBOX = re.compile(r"\A\[[ xX~]?\](?:\s+|\Z)")
_LABEL = re.compile(
    r"(?P<mark>\*\*|__)(?P<label>[^*:：]+?)"  # noqa: RUF001
    r"(?:[:：](?P<inside>[^*]*?)(?P=mark)|(?P=mark)[ \t]*(?:\([^()]*\))?[ \t]*[:：])(?P<rest>.*)"  # noqa: RUF001
)
_NUMBERING = re.compile(r"\A[0-9]+(?:\.[0-9]+)*[.)]?\s+(?=\S)")
_ASIDE = re.compile(r"\([^()]*\)[\s:]*$")


class Block(Struct, frozen=True, kw_only=True):
    """A part of a document, with its kind and its lines."""

    kind: Kind
    """`underlined` is a paragraph above a line of dashes. Markdown calls it a heading, but most
    authors mean a separator, so the dialect decides."""
    first: int
    """Its first line, counted from 1."""
    last: int
    """Its last line; trailing blank lines may be among its own."""
    level: int = 0
    """Of a heading, 1 to 6."""
    text: str = ""
    """Of a heading or paragraph: its source without indentation, line for line."""
    children: tuple["Block", ...] = ()
    """A list's items, an item's or a quotation's blocks."""


class Section(Struct, frozen=True, kw_only=True):
    """A top-level heading, and the range of the blocks under it."""

    heading: Block
    level: int
    start: int
    """The index of the first block under it."""
    stop: int
    """The index of the heading that ends it, or how many blocks there are."""


class Document(Struct, frozen=True, kw_only=True):
    """A parsed text: its lines, and its top-level blocks in order."""

    lines: list[str]
    blocks: tuple[Block, ...]

    def sections(self, ends_all: Callable[[str], object] = lambda _text: False) -> list[Section]:
        """Every heading with its section, which ends at a heading of its level or a higher one.

        A heading whose text `ends_all` accepts ends all sections, and may be underlined.
        """
        found: list[Section] = []
        ends = [len(self.blocks)] * 7  # where a section of each level would end
        for index in reversed(range(len(self.blocks))):
            block = self.blocks[index]
            known = block.kind in ("heading", "underlined") and ends_all(block.text)
            if known or block.kind == "heading":
                level = block.level or 2  # Markdown's level for a line of dashes
                stop = ends[level]
                found.append(Section(heading=block, level=level, start=index + 1, stop=stop))
                first = 0 if known else level
                ends[first:] = [index] * (7 - first)
        return found[::-1]

    def body(self, section: Section) -> str:
        """The source under the heading, without blank lines and separators around it."""
        first = section.heading.last + 1
        ended = section.stop < len(self.blocks)
        last = self.blocks[section.stop].first - 1 if ended else len(self.lines)
        while first <= last and not self.lines[first - 1].strip():
            first += 1
        while last >= first and _is_filler(self.lines[last - 1]):
            last -= 1
        return "\n".join(self.lines[first - 1 : last])

    def item(self, block: Block) -> str:
        """A list item's text: its source without marker, checkbox and the indentation of both."""
        head, *rest = self.lines[block.first - 1 : block.last]
        marker = next(_MARKER.finditer(head))  # which also matches nothing, so there is one
        width = _width(marker.group(), marker.group("bare"))
        text = "\n".join([head[marker.end() :], *(_outdented(line, width) for line in rest)])
        return _CHECKBOX.sub("", text).strip()

    def listed(self, blocks: Iterable[Block]) -> list[str]:
        """The texts of the list items among these blocks, without empty ones."""
        return [text for item in items(blocks) if (text := self.item(item))]

    def source(self, blocks: Sequence[Block]) -> str:
        """The lines from the first of these blocks to the last, as written."""
        return "\n".join(self.lines[blocks[0].first - 1 : blocks[-1].last]) if blocks else ""


class Field(Struct, kw_only=True):
    """The text under a label: a bold `**Label:**`, a heading, or no label at all."""

    label: str
    """Lower case, single spaces, without an aside in parentheses; "" before the first label."""
    line: int
    level: int = 0
    """Of the heading that is the label; 0 for a bold one."""
    text: list[str] = field(default_factory=list[str])
    """The rest of the label's line, then the lines below it in the same paragraph."""
    below: list[Block] = field(default_factory=list[Block])
    """The blocks that follow, up to the next label."""

    def value(self) -> list[str]:
        """The label's own line, and the lines that follow a comma at the end of a line.

        Where the label's line is empty, the lines below it in the same paragraph.
        """
        if not any(self.text[:1]):
            return self.text[1:]
        count = 1
        while count < len(self.text) and self.text[count - 1].endswith(","):
            count += 1
        return self.text[:count]


def split_lines(text: str) -> list[str]:
    """The text's lines as Markdown counts them; other Unicode separators end no line."""
    return _NEWLINE.split(text)


@lru_cache(maxsize=2)
def parse(text: str) -> Document:
    """The text's blocks. Frontmatter and a byte order mark are not Markdown.

    Cached, because several dialects parse a text to see whether they recognise it.
    """
    lines = split_lines(text.removeprefix("\ufeff"))
    skipped = _frontmatter(lines)
    tokens = _BLOCKS.parse("\n".join([""] * skipped + lines[skipped:]))
    blocks = _nested(tokens)
    if skipped:
        blocks.insert(0, Block(kind="frontmatter", first=1, last=skipped))
    return Document(lines=lines, blocks=tuple(blocks))


def fields(blocks: Iterable[Block]) -> list[Field]:
    """The blocks by their labels, in order."""
    found = [Field(label="", line=0)]
    for block in blocks:
        here = found[-1]
        if block.kind == "heading":
            # A deeper heading divides the text under a heading; it does not end it.
            if not 0 < here.level < block.level:
                label = label_of(block.text)
                found.append(Field(label=label, line=block.first, level=block.level))
        elif block.kind == "rule":
            found.append(Field(label="", line=block.first))
        elif block.kind in ("paragraph", "underlined"):
            found.extend(_labelled(block, here))
        else:
            here.below.append(block)
    return found


def label_of(text: str) -> str:
    """A label in the spelling that is compared: `File(s)`, `depends_on` and `Depends On:`."""
    words = _ASIDE.sub("", text).replace("_", " ").replace("-", " ").rstrip(":： ").casefold()  # noqa: RUF001
    return " ".join(words.split())


def unnumbered(text: str) -> str:
    """A heading's text without its leading number, as in '2.1 Scope'."""
    return _NUMBERING.sub("", text)


def items(blocks: Iterable[Block]) -> Iterator[Block]:
    """The items of every list among these blocks."""
    return (item for block in blocks if block.kind == "list" for item in block.children)


def parts(line: str) -> Iterator[tuple[list[str], str]]:
    """The parts between commas: the code and the prose of each, without asides."""
    spans: list[str] = []
    prose: list[str] = []
    depth = 0
    for is_code, text in segments(line):
        if is_code:
            spans += [] if depth else [text.strip()]
            continue
        for char in text:
            depth = max(0, depth + (char == "(") - (char == ")"))
            if char in ",;" and not depth:
                yield spans, "".join(prose).strip()
                spans, prose = [], []
            elif char != ")" and not depth:
                prose.append(char)
    yield spans, "".join(prose).strip()


def segments(line: str) -> Iterator[tuple[bool, str]]:
    """The line's parts, each with whether it is code (in backticks, which are dropped)."""
    if "``" not in line and line.count("`") % 2 == 0:
        # The backticks of nearly every line pair up one by one, which takes a tenth of the time.
        for number, text in enumerate(line.split("`")):
            if text:
                yield number % 2 == 1, text.replace("\n", " ") if number % 2 else text
        return
    for token in _SPANS.parseInline(line):
        for child in token.children or ():
            yield child.type == "code_inline", child.content


def code_spans(line: str) -> list[str]:
    """The texts in backticks on the line."""
    return [text.strip() for is_code, text in segments(line) if is_code and text.strip()]


def _labelled(paragraph: Block, here: Field) -> Iterator[Field]:
    """The fields that begin in this paragraph; lines before the first label stay with `here`."""
    current: Field | None = None
    for line_number, raw in enumerate(paragraph.text.split("\n"), paragraph.first):
        line = raw.strip()
        if found := _LABEL.match(line):
            value = f"{found['inside'] or ''}{found['rest']}".strip()
            current = Field(label=label_of(found["label"]), line=line_number, text=[value])
            yield current
        elif current is not None:
            current.text.append(line)
        elif line_number == paragraph.first:
            here.below.append(paragraph)


def _nested(tokens: Sequence[Token]) -> list[Block]:
    """The flat tokens as blocks within blocks."""
    open_tokens: list[Token] = []
    levels: list[list[Block]] = [[]]
    text = ""
    for token in tokens:
        if token.type == "inline":
            text = token.content
        elif token.nesting > 0:
            open_tokens.append(token)
            levels.append([])
        elif token.nesting < 0:
            children = levels.pop()
            levels[-1].append(_block(open_tokens.pop(), text, children))
        else:
            levels[-1].append(_block(token, "", []))
    return levels[0]


def _block(token: Token, text: str, children: list[Block]) -> Block:
    first, last = token.map or (0, 0)
    kind = _KINDS[token.type]
    if kind == "heading" and token.markup == "-":
        kind = "underlined"
    return Block(
        kind=kind,
        first=first + 1,
        last=last,
        level=int(token.tag[1]) if kind == "heading" else 0,
        text=text if kind in ("heading", "underlined", "paragraph") else "",
        children=tuple(children),
    )


def _frontmatter(lines: Sequence[str]) -> int:
    """The number of lines at the top that are YAML between two `---`, with a key at once.

    A file may also begin with a separator; the tasks below it are not YAML.
    """
    if lines[0].rstrip() != "---":
        return 0
    has_key = False
    for count, line in enumerate(lines[1:], 2):
        if line.rstrip() in ("---", "..."):
            return count if has_key else 0
        if not has_key and not line.startswith("#"):
            if not _YAML_KEY.match(line):
                return 0
            has_key = True
    return 0


def _is_filler(line: str) -> bool:
    return not line.strip() or _RULE.fullmatch(line) is not None


def _width(marker: str, bare: str) -> int:
    """The indentation of an item's text, in columns (more than 4 after a marker is code)."""
    after = len(bare.expandtabs(4))
    gap = len(marker.expandtabs(4)) - after
    return after + (gap if 1 <= gap <= 4 else 1)  # noqa: PLR2004  # CommonMark's own number


def _outdented(line: str, width: int) -> str:
    rest = line.lstrip(" \t")
    return line[: len(line) - len(rest)].expandtabs(4)[width:] + rest
