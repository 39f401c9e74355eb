"""YAML frontmatter of a Markdown text: read without guessing types, changed without other edits.

Scalars stay text as written, because `id: 0123` is not a number. Writing replaces only the lines of
the keys that Windlass owns; no other byte changes.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from windlass.errors import PlanError
from windlass.formats import markdown, yaml
from windlass.formats.markdown import Document
from windlass.formats.yaml import KEYS_CURE, Data, Keys, Value, is_nested, lines_of, scalar

_BOM = "\ufeff"
_WHAT = "the frontmatter"
_MAX_CHARS = 500_000

_LINE = re.compile(r"(?P<text>[^\r\n]*)(?P<end>\r\n?|\n|\Z)")
_FENCE = re.compile(r"---[ \t]*")


class Entry(Struct, kw_only=True):
    """The place of one top-level key in the frontmatter's text."""

    key: str
    start: int
    """Where its line begins."""
    scalar: tuple[int, int] | None = None
    """The start and end of its value, where that is text on one line."""
    content: int
    """Every line before this offset belongs to its value."""
    ends_in_block: bool = False
    """Its last text is a block scalar, in which '#' does not begin a comment."""


class Frontmatter(Struct, frozen=True, kw_only=True):
    data: Keys
    start: int
    """The offset of its YAML."""
    stop: int
    """The offset of the line that closes it."""
    body: int
    """The offset of the text that follows it."""
    newline: str
    indent: int
    entries: tuple[Entry, ...]


def read(path: str, text: str) -> Frontmatter | None:
    """The text's frontmatter, or None where it has none; the path appears in messages."""
    found = _outcome(path, text)
    if isinstance(found, PlanError):
        raise found
    return found


def keys(path: str, text: str) -> Keys | None:
    """The keys of the frontmatter; None where there is none, or it cannot be read."""
    found = _outcome(path, text)
    return found.data if isinstance(found, Frontmatter) else None


@lru_cache(maxsize=2)
def _outcome(path: str, text: str) -> Frontmatter | PlanError | None:
    """The result of one reading, cached: several dialects ask for the same text."""
    try:
        return _read(path, text)
    except PlanError as error:
        return error


def _read(path: str, text: str) -> Frontmatter | None:
    bounds = _bounds(text)
    if bounds is None:
        return None
    start, stop, body, newline = bounds
    inside = text[start:stop]
    reader = _Reader(path, inside)
    if len(inside) > _MAX_CHARS:
        reader.refuse_at(1, f"has more than {_MAX_CHARS:,} characters", "shorten it")
    reader.read(inside)
    return Frontmatter(
        data=reader.root or Keys(1),
        start=start,
        stop=stop,
        body=body,
        newline=newline,
        indent=reader.indent,
        entries=tuple(reader.entries),
    )


def body(text: str) -> str:
    """The text after the frontmatter; all of the text where there is none."""
    bounds = _bounds(text)
    return text.removeprefix(_BOM) if bounds is None else text[bounds[2] :]


def parse_body(text: str) -> tuple[str, Document]:
    """The text after the frontmatter, and its Markdown with line numbers of the whole file."""
    below = body(text)
    above = len(markdown.split_lines(text.removesuffix(below))) - 1
    return below, markdown.parse("\n" * above + below)


def spliced(path: str, text: str, owned: Mapping[str, Value]) -> str:
    """The text with these values for these keys; no other byte is changed."""
    found = read(path, text)
    if found is None:
        return _with_new(text, owned) if owned else text
    inside = text[found.start : found.stop]
    by_key = {entry.key: index for index, entry in enumerate(found.entries)}
    edits: list[tuple[int, int, str]] = []
    new: dict[str, Value] = {}
    for key, value in owned.items():
        index = by_key.get(key)
        if index is None:
            new[key] = value
            continue
        entry = found.entries[index]
        if entry.scalar is not None and not is_nested(value):
            gap = " " if entry.scalar[0] == entry.scalar[1] else ""
            edits.append((*entry.scalar, gap + scalar(value)))
        else:
            rest = found.entries[index + 1 :]
            limit = rest[0].start if rest else len(inside)
            stop = _end(inside, entry, limit, found.indent)
            edits.append((entry.start, stop, _block({key: value}, found)))
    edits.append((len(inside), len(inside), _block(new, found)))
    for start, stop, replacement in sorted(edits, reverse=True):
        inside = inside[:start] + replacement + inside[stop:]
    result = text[: found.start] + inside + text[found.stop :]
    read(path, result)  # raise rather than write a file that cannot be read back
    return result


class _Reader(yaml.Reader):
    """Records the place of each top-level key and its value while the data is built."""

    def __init__(self, path: str, inside: str) -> None:
        super().__init__(path, _WHAT, 2)
        self.inside = inside
        self.indent = 0
        self.entries: list[Entry] = []

    def document(self, event: Any, *, begins: bool) -> None:
        if getattr(event, "explicit", None):  # an appended key would be in another document
            self.refuse(event, "has more than one YAML document", "keep one")
        super().document(event, begins=begins)

    def opened(self, event: Any, value: list[Data] | Keys) -> None:
        if not self.stack and event.flow_style:
            self.refuse(event, "is not a list of keys", KEYS_CURE)
        super().opened(event, value)

    def closed(self, event: Any) -> None:
        if self.stack and event.end_mark.index > event.start_mark.index:  # a bracket's
            self.entries[-1].content = event.end_mark.index
            self.entries[-1].ends_in_block = False

    def key(self, event: Any, mapping: Keys) -> None:
        super().key(event, mapping)
        if len(self.stack) > 1:
            return
        key: str = event.value
        at, after = event.start_mark.index, event.end_mark.index
        start = max(self.inside.rfind("\n", 0, at), self.inside.rfind("\r", 0, at)) + 1
        colon = re.compile(r"[ \t]*:").match(self.inside, after)
        if self.inside[start:at].strip(" ") or colon is None:
            self.refuse(event, f"has the key {key!r} in an unexpected place", "write 'key: value'")
        self.indent = at - start
        end = colon.end()
        self.entries.append(Entry(key=key, start=start, content=end, scalar=(end, end)))

    def put(self, event: Any, value: Data) -> None:
        super().put(event, value)
        entry = self.entries[-1]
        if isinstance(value, list | dict):
            entry.scalar = None if len(self.stack) == 1 else entry.scalar
            return
        first, last = event.start_mark.index, event.end_mark.index
        if first == last:  # an empty value has the place of the next event
            return
        entry.ends_in_block = event.style in ("|", ">")
        entry.content = first if entry.ends_in_block else last
        if len(self.stack) == 1:
            one_line = not re.search(r"[\r\n]", self.inside[first:last])
            entry.scalar = (first, last) if one_line else None


def _bounds(text: str) -> tuple[int, int, int, str] | None:
    """The offsets of the YAML's start and end and of the body, and the line ending."""
    first = _LINE.match(text, len(_BOM) if text.startswith(_BOM) else 0)
    if first is None or not _FENCE.fullmatch(first["text"]) or not first["end"]:
        return None
    # Neither an indented line nor a line with more than dashes closes it.
    for line in _LINE.finditer(text, first.end()):
        if _FENCE.fullmatch(line["text"]):
            return first.end(), line.start(), line.end(), first["end"]
    return None


def _end(inside: str, entry: Entry, limit: int, indent: int) -> int:
    """The end of an entry's lines, without the blank lines and comments that follow."""
    lines = [line for line in _LINE.finditer(inside, entry.start, limit) if line.group()]
    while lines[-1].start() > entry.content:
        text = lines[-1]["text"]
        comment = text.lstrip(" \t")
        deep = entry.ends_in_block and len(text) - len(comment) > indent
        if comment and (deep or not comment.startswith("#")):
            break
        lines.pop()
    return lines[-1].end()


def _with_new(text: str, owned: Mapping[str, Value]) -> str:
    first = _LINE.search(text)
    newline = (first["end"] if first else "") or "\n"
    mark = _BOM if text.startswith(_BOM) else ""
    block = "".join(f"{line}{newline}" for line in lines_of(owned))
    return f"{mark}---{newline}{block}---{newline}{text.removeprefix(_BOM)}"


def _block(values: Mapping[str, Value], found: Frontmatter) -> str:
    return "".join(f"{' ' * found.indent}{line}{found.newline}" for line in lines_of(values))
