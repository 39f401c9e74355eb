"""Markdown as blocks that know their source lines. No word of any dialect stands in this file.

A real parser says what is a heading, a list or a code block; the source says what it reads. So
nothing is ever rendered: every text handed out is the author's own, cut by line numbers (line
ends alone are made equal). Each function takes time in proportion to the text it is given.
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

# Inline markup is kept as source, so parsing it would be time for nothing; link definitions must
# stay visible text, or a task's lines would vanish from its blocks.
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
    """A part of a document: what Markdown takes it for, and where it stands."""

    kind: Kind
    """`underlined` is a paragraph that runs into a line of dashes: a heading to Markdown, but most
    who write it mean a separator, so that it is left to the dialect to decide."""
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
    """A top-level heading, and which of the document's blocks stand under it."""

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

    def sections(self, ends_all: Callable[[str], object]) -> list[Section]:
        """Every heading with its section, which a heading of its level or a higher one ends.

        So does one whose text `ends_all` knows, whatever its level; it may be underlined.
        """
        found: list[Section] = []
        ends = [len(self.blocks)] * 7  # where a section of each level would end
        for index in reversed(range(len(self.blocks))):
            block = self.blocks[index]
            known = block.kind in ("heading", "underlined") and ends_all(block.text)
            if known or block.kind == "heading":
                level = block.level or 2  # what Markdown makes of a line of dashes
                stop = ends[level]
                found.append(Section(heading=block, level=level, start=index + 1, stop=stop))
                first = 0 if known else level
                ends[first:] = [index] * (7 - first)
        return found[::-1]

    def body(self, section: Section) -> str:
        """What stands under the heading, as written, without blank lines and separators around."""
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


class Field(Struct, kw_only=True):
    """What stands under a label: a bold `**Label:**`, a heading, or none at all."""

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
        """The lines that are its value: the label's own, and those that a comma leads on to.

        Where nothing stands beside the label, the lines below it in the same paragraph.
        """
        if not any(self.text[:1]):
            return self.text[1:]
        count = 1
        while count < len(self.text) and self.text[count - 1].endswith(","):
            count += 1
        return self.text[:count]


def split_lines(text: str) -> list[str]:
    """The text's lines as Markdown counts them; other separators of Unicode end no line."""
    return _NEWLINE.split(text)


@lru_cache(maxsize=2)
def parse(text: str) -> Document:
    """The text's blocks. Frontmatter and a byte order mark are no Markdown.

    Remembered for a while, because every dialect that is asked whether it knows a text parses it.
    """
    lines = split_lines(text.removeprefix("\ufeff"))
    skipped = _frontmatter(lines)
    tokens = _BLOCKS.parse("\n".join([""] * skipped + lines[skipped:]))
    blocks = _nested(tokens)
    if skipped:
        blocks.insert(0, Block(kind="frontmatter", first=1, last=skipped))
    return Document(lines=lines, blocks=tuple(blocks))


def fields(blocks: Iterable[Block]) -> list[Field]:
    """The blocks by the labels they stand under, in order."""
    found = [Field(label="", line=0)]
    for block in blocks:
        here = found[-1]
        if block.kind == "heading":
            # A deeper heading divides what stands under a heading; it does not end it.
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
    """A label in the one spelling that is compared: `File(s)`, `depends_on` and `Depends On:`."""
    words = _ASIDE.sub("", text).replace("_", " ").replace("-", " ").rstrip(":： ").casefold()  # noqa: RUF001
    return " ".join(words.split())


def unnumbered(text: str) -> str:
    """A heading's text without the number it begins with, as in '2.1 Scope'."""
    return _NUMBERING.sub("", text)


def items(blocks: Iterable[Block]) -> Iterator[Block]:
    """The items of every list among these blocks."""
    return (item for block in blocks if block.kind == "list" for item in block.children)


def parts(line: str) -> Iterator[tuple[list[str], str]]:
    """What commas separate: of each part the code in it and its prose, asides in neither."""
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
        # Nearly every line is so plain that its backticks pair up one by one, a tenth of the work.
        for number, text in enumerate(line.split("`")):
            if text:
                yield number % 2 == 1, text.replace("\n", " ") if number % 2 else text
        return
    for token in _SPANS.parseInline(line):
        for child in token.children or ():
            yield child.type == "code_inline", child.content


def code_spans(line: str) -> list[str]:
    """What stands in backticks on the line."""
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
    """How many lines at the top are YAML between two `---`: keys from the very next line on.

    A separator may also stand at the top, and the tasks below it must not be taken for YAML.
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
    """How far an item's text is indented, in columns (more than 4 after a marker is code)."""
    after = len(bare.expandtabs(4))
    gap = len(marker.expandtabs(4)) - after
    return after + (gap if 1 <= gap <= 4 else 1)  # noqa: PLR2004  # CommonMark's own number


def _outdented(line: str, width: int) -> str:
    rest = line.lstrip(" \t")
    return line[: len(line) - len(rest)].expandtabs(4)[width:] + rest
