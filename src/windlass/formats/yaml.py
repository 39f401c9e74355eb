"""YAML, read from its events and written as lines.

Reading has no recursion, no aliases and no guessed types: scalars stay text as written, because
`id: 0123` is not a number. Writing uses only forms that every YAML version reads in the same way.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from windlass.errors import PlanError
from windlass.formats.state_files import utc

Data = str | None | list["Data"] | dict[str, "Data"]
"""What YAML holds: text, null, lists and mappings."""
KEYS_CURE = "write 'key: value' on lines of their own"

_MAX_CHARS = 2_000_000
_MAX_DEPTH = 20
_MAX_SEPARATORS = 100_000
"""Far more lines and commas than 2,000 tasks need, and still read in seconds. Every value needs
one, so counting them limits the time before any is spent."""
_NULL = frozenset({"", "~", "null", "Null", "NULL"})


class Keys(dict[str, Data]):
    """A mapping that knows its lines."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        """Of its first key, counted from 1 in the whole file."""
        self.lines: dict[str, int] = {}
        """The line of each key."""


def text_in(data: Mapping[str, Data], key: str) -> str:
    """The text of a key; empty for any other value."""
    value = data.get(key)
    return value.strip() if isinstance(value, str) else ""


class Reader:
    """Builds the data from YAML's events, and refuses anchors, duplicates and deep nesting.

    A subclass can override the methods for single events to record more.
    """

    def __init__(self, path: str, what: str, first: int) -> None:
        self.path = path
        self.what = what
        """The name of the text in messages."""
        self.first = first
        """The number of the text's first line in its file."""
        self.root: Keys | None = None
        self.stack: list[list[Data] | Keys] = []
        self.keys: list[str | None] = []
        """For each open mapping the key whose value comes next; for a list None."""
        self.documents = 0

    def read(self, text: str) -> None:
        """Read the whole text."""
        if text.count("\n") + text.count(",") > _MAX_SEPARATORS:
            self.refuse_at(1, f"has more than {_MAX_SEPARATORS:,} values", "shorten it")
        yaml: Any = _Yaml(typ="safe", pure=True)
        try:
            for event in yaml.parse(text):
                self.take(event)
        except MarkedYAMLError as error:
            wrong: Any = error
            line = wrong.problem_mark.line + self.first if wrong.problem_mark else 1
            self.refuse_at(line, f"is not YAML: {wrong.problem or wrong.context}", "fix this line")
        except (YAMLError, ValueError, OverflowError, AssertionError) as error:
            # ruamel raises the last three for an invalid directive or escape.
            self.refuse_at(1, f"is not YAML: {str(error).splitlines()[0]}", "fix it")

    def take(self, event: Any) -> None:
        """Take one event."""
        kind = type(event).__name__
        if kind == "AliasEvent" or getattr(event, "anchor", None) is not None:
            self.refuse(event, "has an anchor or an alias", "write the value in each place")
        if kind == "ScalarEvent":
            self.scalar(event)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            here = self.line(event)
            self.opened(event, Keys(here) if kind == "MappingStartEvent" else [])
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self.stack.pop()
            self.keys.pop()
            self.closed(event)
        else:
            self.document(event, begins=kind == "DocumentStartEvent")

    def document(self, event: Any, *, begins: bool) -> None:
        """Take the start or end of a document or of the stream."""
        self.documents += begins
        if self.documents > 1:
            self.refuse(event, "has more than one YAML document", "keep one")

    def opened(self, event: Any, value: "list[Data] | Keys") -> None:
        """Take a list or a mapping that begins."""
        if self.stack:
            self.put(event, value)
        elif isinstance(value, Keys):
            self.root = value
        else:
            self.refuse(event, "is not a list of keys", KEYS_CURE)
        if len(self.stack) == _MAX_DEPTH:
            self.refuse(event, f"is nested more than {_MAX_DEPTH} deep", "nest it less")
        self.stack.append(value)
        self.keys.append(None)

    def closed(self, event: Any) -> None:
        """Take the end of a list or a mapping."""

    def scalar(self, event: Any) -> None:
        """Take a key or a text."""
        if not self.stack:
            self.refuse(event, "has no keys", KEYS_CURE)
        inner = self.stack[-1]
        if isinstance(inner, Keys) and self.keys[-1] is None:
            self.key(event, inner)
            return
        plain = event.implicit[0] and event.style is None
        self.put(event, None if plain and event.value in _NULL else event.value)

    def key(self, event: Any, mapping: Keys) -> None:
        """Take a key; its value comes next."""
        key: str = event.value
        if key in mapping:
            self.refuse(event, f"has the key {key!r} twice", "keep one of them")
        self.keys[-1] = key
        mapping[key] = None
        mapping.lines[key] = self.line(event)

    def put(self, event: Any, value: Data) -> None:
        """Add a value to the open list or mapping."""
        inner, key = self.stack[-1], self.keys[-1]
        if isinstance(inner, list):
            inner.append(value)
        elif key is None:
            self.refuse(event, "has a key that is not text", "write 'key: value'")
        else:
            inner[key] = value
            self.keys[-1] = None

    def line(self, event: Any) -> int:
        """The line of an event in the file."""
        return event.start_mark.line + self.first

    def refuse(self, event: Any, what: str, cure: str) -> NoReturn:
        """Refuse the text because of this event."""
        self.refuse_at(self.line(event), what, cure)

    def refuse_at(self, line: int, what: str, cure: str) -> NoReturn:
        """Refuse the text because of this line."""
        raise PlanError(f"{self.what} {what}", path=self.path, line=line, hint=cure)


class _Yaml(YAML):
    """ruamel's parser, without its search for plug-ins on every use."""

    def official_plug_ins(self) -> list[str]:
        return []


def read(path: str, text: str) -> Keys:
    """The keys and values of a whole YAML file."""
    reader = Reader(path, "the file", 1)
    if len(text) > _MAX_CHARS:
        reader.refuse_at(0, f"has more than {_MAX_CHARS:,} characters", "split it")
    reader.read(text)
    if reader.root is None:
        reader.refuse_at(1, "has no keys", KEYS_CURE)
    return reader.root


Value = str | int | datetime | None | Sequence["Value"] | Mapping[str, "Value"]
"""A value that can be written."""

# Only words that no YAML version reads as a number, a boolean, null or a date.
_PLAIN = re.compile(r"[A-Za-z./][A-Za-z0-9_./-]*")
_NOT_PLAIN = re.compile(
    r"true|false|null|yes|no|on|off|y|n|\.inf|\.nan|\.+|\.[0-9e].*", re.IGNORECASE
)
# Characters that JSON writes as they are, and that YAML reads as line ends or refuses.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def lines_of(values: Mapping[str, Value]) -> list[str]:
    """The lines of these keys with their values."""
    lines: list[str] = []
    for key, value in values.items():
        if is_nested(value):
            lines += [f"{_text(key)}:", *(f"  {line}" for line in _nested(value))]
        else:
            lines.append(f"{_text(key)}: {scalar(value)}")
    return lines


def _nested(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return lines_of(value)  # pyright: ignore[reportUnknownArgumentType]
    lines: list[str] = []
    for item in value:
        first, *rest = _nested(item) if is_nested(item) else [scalar(item)]
        lines += [f"- {first}", *(f"  {line}" for line in rest)]
    return lines


def is_nested(value: Value) -> bool:
    """Whether the value needs lines of its own."""
    return isinstance(value, Mapping | Sequence) and not isinstance(value, str) and bool(value)


def scalar(value: Value) -> str:
    """A value on its key's line."""
    if isinstance(value, datetime):
        return utc(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return str(value).lower()
    return "null" if value is None else "{}" if isinstance(value, Mapping) else "[]"


def _text(value: str) -> str:
    if _PLAIN.fullmatch(value) and not _NOT_PLAIN.fullmatch(value):
        return value
    return _UNPRINTABLE.sub(
        lambda char: f"\\u{ord(char[0]):04x}", json.dumps(value, ensure_ascii=False)
    )
