"""YAML frontmatter of a Markdown text: read without guessing, changed without touching the rest.

Scalars stay text as written, for `id: 0123` is no number to whoever wrote it. What is written
replaces the lines of its own keys only; every other byte of the text is as it was.
"""

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from msgspec import Struct
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from windlass.dialects.yaml_lines import Value, is_nested, lines_of, scalar
from windlass.errors import PlanError

Data = str | None | list["Data"] | dict[str, "Data"]
"""What stands in a frontmatter: text, nothing, lists and mappings."""

_BOM = "\ufeff"
_MAX_CHARS = 500_000
_MAX_DEPTH = 20

_LINE = re.compile(r"(?P<text>[^\r\n]*)(?P<end>\r\n?|\n|\Z)")
_FENCE = re.compile(r"---[ \t]*")
_NULL = frozenset({"", "~", "null", "Null", "NULL"})


class Entry(Struct, kw_only=True):
    """One top-level key, and where it stands in the frontmatter's own text."""

    key: str
    line: int
    """Counted from 1 in the whole file."""
    value: Data = None
    start: int
    """Where its line begins."""
    scalar: tuple[int, int] | None = None
    """From where to where its value goes, where that is text on one line."""
    content: int
    """No line before this is free of its value."""
    ends_in_block: bool = False
    """Its last text is a block scalar, in which a comment is no comment."""


class Frontmatter(Struct, frozen=True, kw_only=True):
    """The frontmatter of a text."""

    start: int
    """Where in the text its YAML begins."""
    stop: int
    """Where the line that closes it begins."""
    body: int
    """Where what follows it begins."""
    newline: str
    indent: int
    entries: tuple[Entry, ...]

    @property
    def data(self) -> dict[str, Data]:
        """The values by their keys."""
        return {entry.key: entry.value for entry in self.entries}

    def line(self, key: str) -> int:
        """The line of a key that is there."""
        return next(entry.line for entry in self.entries if entry.key == key)


def read(path: str, text: str) -> Frontmatter | None:
    """The text's frontmatter, or None where it has none; the path stands in messages."""
    bounds = _bounds(text)
    if bounds is None:
        return None
    start, stop, body, newline = bounds
    inside = text[start:stop]
    if len(inside) > _MAX_CHARS:
        _refuse(path, 1, f"has more than {_MAX_CHARS:,} characters", "shorten it")
    reader = _Reader(path, inside)
    yaml: Any = YAML(typ="safe", pure=True)
    try:
        for event in yaml.parse(inside):
            reader.take(event)
    except MarkedYAMLError as error:
        wrong: Any = error
        line = wrong.problem_mark.line + 2 if wrong.problem_mark else 1
        _refuse(path, line, f"is not YAML: {wrong.problem or wrong.context}", "mend this line")
    except (YAMLError, ValueError, OverflowError, AssertionError) as error:
        # The last three are how ruamel takes a directive or an escape that makes no sense.
        _refuse(path, 1, f"is not YAML: {str(error).splitlines()[0]}", "mend it")
    return Frontmatter(
        start=start,
        stop=stop,
        body=body,
        newline=newline,
        indent=reader.indent,
        entries=tuple(reader.entries),
    )


def body(text: str) -> str:
    """What follows the frontmatter; all of the text where there is none."""
    bounds = _bounds(text)
    return text.removeprefix(_BOM) if bounds is None else text[bounds[2] :]


def spliced(path: str, text: str, owned: Mapping[str, Value]) -> str:
    """The text with these keys' values; nothing else in it is changed by a byte."""
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
    read(path, result)  # an odd file had better raise here than be spoilt
    return result


class _Reader:
    """Builds the data from YAML's events, which come without recursion however deep they nest."""

    def __init__(self, path: str, inside: str) -> None:
        self.path = path
        self.inside = inside
        self.indent = 0
        self.entries: list[Entry] = []
        self.stack: list[list[Data] | dict[str, Data]] = []
        self.keys: list[str | None] = []
        """For each mapping that is open the key that waits for its value; for a list None."""

    def take(self, event: Any) -> None:
        kind = type(event).__name__
        if kind == "AliasEvent" or getattr(event, "anchor", None) is not None:
            self.refuse(event, "has an anchor or an alias", "write the value out in each place")
        if getattr(event, "explicit", None):  # what is appended would be a document of its own
            self.refuse(event, "has more than one YAML document", "keep one")
        if kind == "ScalarEvent":
            self.scalar(event)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self.open(event, {} if kind == "MappingStartEvent" else [])
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self.stack.pop()
            self.keys.pop()
            if self.stack and event.end_mark.index > event.start_mark.index:  # a bracket's
                self.entries[-1].content = event.end_mark.index
                self.entries[-1].ends_in_block = False

    def open(self, event: Any, value: list[Data] | dict[str, Data]) -> None:
        if not self.stack:
            if isinstance(value, list) or event.flow_style:
                self.refuse(event, "is no list of keys", "write 'key: value' on lines of their own")
        else:
            self.put(event, value)
        if len(self.stack) == _MAX_DEPTH:
            self.refuse(event, f"is nested more than {_MAX_DEPTH} deep", "make it flatter")
        self.stack.append(value)
        self.keys.append(None)

    def scalar(self, event: Any) -> None:
        if not self.stack:
            self.refuse(event, "has no keys", "write 'key: value' on lines of their own")
        if isinstance(self.stack[-1], dict) and self.keys[-1] is None:
            self.key(event, self.stack[-1])
            return
        plain = event.implicit[0] and event.style is None
        self.put(event, None if plain and event.value in _NULL else event.value)
        first, last = event.start_mark.index, event.end_mark.index
        if first == last:  # nothing at all, and its place is that of what follows
            return
        entry = self.entries[-1]
        entry.ends_in_block = event.style in ("|", ">")
        entry.content = first if entry.ends_in_block else last
        if len(self.stack) == 1:
            one_line = not re.search(r"[\r\n]", self.inside[first:last])
            entry.scalar = (first, last) if one_line else None

    def key(self, event: Any, mapping: dict[str, Data]) -> None:
        key: str = event.value
        if key in mapping:
            self.refuse(event, f"has the key {key!r} twice", "keep one of them")
        self.keys[-1] = key
        mapping[key] = None
        if len(self.stack) > 1:
            return
        at, after = event.start_mark.index, event.end_mark.index
        start = max(self.inside.rfind("\n", 0, at), self.inside.rfind("\r", 0, at)) + 1
        colon = re.compile(r"[ \t]*:").match(self.inside, after)
        if self.inside[start:at].strip(" ") or colon is None:
            self.refuse(event, f"has the key {key!r} in an odd place", "write 'key: value'")
        self.indent = at - start
        end = colon.end()
        line = event.start_mark.line + 2
        self.entries.append(Entry(key=key, line=line, start=start, content=end, scalar=(end, end)))

    def put(self, event: Any, value: Data) -> None:
        inner, key = self.stack[-1], self.keys[-1]
        if isinstance(inner, list):
            inner.append(value)
        elif key is None:
            self.refuse(event, "has a key that is no text", "write 'key: value'")
        else:
            inner[key] = value
            self.keys[-1] = None
        if len(self.stack) == 1:
            entry = self.entries[-1]
            entry.value = value
            if isinstance(value, list | dict):
                entry.scalar = None

    def refuse(self, event: Any, what: str, cure: str) -> NoReturn:
        _refuse(self.path, event.start_mark.line + 2, what, cure)


def _bounds(text: str) -> tuple[int, int, int, str] | None:
    """Where the YAML begins and ends, where the body begins, and how lines end."""
    first = _LINE.match(text, len(_BOM) if text.startswith(_BOM) else 0)
    if first is None or not _FENCE.fullmatch(first["text"]) or not first["end"]:
        return None
    # An indented line, as of a block scalar, and one with more on it than dashes close nothing.
    for line in _LINE.finditer(text, first.end()):
        if _FENCE.fullmatch(line["text"]):
            return first.end(), line.start(), line.end(), first["end"]
    return None


def _end(inside: str, entry: Entry, limit: int, indent: int) -> int:
    """Where the lines of an entry end: blank lines and comments that follow are not its own."""
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


def _refuse(path: str, line: int, what: str, cure: str) -> NoReturn:
    raise PlanError(f"the frontmatter {what}", path=path, line=line, hint=cure)
