"""YAML from its events: no recursion however deep it nests, no aliases, no guesses about types.

Scalars stay text as written, for `id: 0123` is no number to whoever wrote it. Whoever must know
where things stand extends `Reader` and looks on while the events pass.
"""

from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from windlass.errors import PlanError

Data = str | None | list["Data"] | dict[str, "Data"]
"""What stands in YAML: text, nothing, lists and mappings."""

_MAX_CHARS = 2_000_000
_MAX_DEPTH = 20
_MAX_SEPARATORS = 100_000
"""Far more lines and commas than 2,000 tasks need, and still read in seconds: no value is without
one, so that counting them bounds the time before any is spent."""
_NULL = frozenset({"", "~", "null", "Null", "NULL"})


class Keys(dict[str, Data]):
    """A mapping that knows where it stands."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        """Of its first key, counted from 1 in the whole file."""
        self.lines: dict[str, int] = {}
        """The line of each key."""


class Reader:
    """Builds the data from YAML's events, and refuses what cannot be trusted."""

    def __init__(self, path: str, what: str, first: int) -> None:
        self.path = path
        self.what = what
        """What is read, for messages."""
        self.first = first
        """The number of the text's first line in its file."""
        self.root: Keys | None = None
        self.stack: list[list[Data] | Keys] = []
        self.keys: list[str | None] = []
        """For each mapping that is open the key that waits for its value; for a list None."""
        self.documents = 0

    def read(self, text: str) -> None:
        """Take all of the text's events."""
        if text.count("\n") + text.count(",") > _MAX_SEPARATORS:
            self.refuse_at(1, f"has more than {_MAX_SEPARATORS:,} values", "shorten it")
        yaml: Any = _Yaml(typ="safe", pure=True)
        try:
            for event in yaml.parse(text):
                self.take(event)
        except MarkedYAMLError as error:
            wrong: Any = error
            line = wrong.problem_mark.line + self.first if wrong.problem_mark else 1
            self.refuse_at(line, f"is not YAML: {wrong.problem or wrong.context}", "mend this line")
        except (YAMLError, ValueError, OverflowError, AssertionError) as error:
            # The last three are how ruamel takes a directive or an escape that makes no sense.
            self.refuse_at(1, f"is not YAML: {str(error).splitlines()[0]}", "mend it")

    def take(self, event: Any) -> None:
        """Take one event."""
        kind = type(event).__name__
        if kind == "AliasEvent" or getattr(event, "anchor", None) is not None:
            self.refuse(event, "has an anchor or an alias", "write the value out in each place")
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
        """Take the begin or end of a document or of the stream."""
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
            self.refuse(event, "is no list of keys", "write 'key: value' on lines of their own")
        if len(self.stack) == _MAX_DEPTH:
            self.refuse(event, f"is nested more than {_MAX_DEPTH} deep", "make it flatter")
        self.stack.append(value)
        self.keys.append(None)

    def closed(self, event: Any) -> None:
        """Look at a list or a mapping that has ended."""

    def scalar(self, event: Any) -> None:
        """Take a key or a text."""
        if not self.stack:
            self.refuse(event, "has no keys", "write 'key: value' on lines of their own")
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
        """Put a value where it belongs."""
        inner, key = self.stack[-1], self.keys[-1]
        if isinstance(inner, list):
            inner.append(value)
        elif key is None:
            self.refuse(event, "has a key that is no text", "write 'key: value'")
        else:
            inner[key] = value
            self.keys[-1] = None

    def line(self, event: Any) -> int:
        """The line of an event in the file."""
        return event.start_mark.line + self.first

    def refuse(self, event: Any, what: str, cure: str) -> NoReturn:
        """Refuse the text for what stands at this event."""
        self.refuse_at(self.line(event), what, cure)

    def refuse_at(self, line: int, what: str, cure: str) -> NoReturn:
        """Refuse the text for what stands on this line."""
        raise PlanError(f"{self.what} {what}", path=self.path, line=line, hint=cure)


class _Yaml(YAML):
    """ruamel's own, but that it does not look through its folder for plug-ins each time."""

    def official_plug_ins(self) -> list[str]:
        return []


def read(path: str, text: str) -> Keys:
    """The keys and values of a file that is YAML from its first line to its last."""
    reader = Reader(path, "the file", 1)
    if len(text) > _MAX_CHARS:
        reader.refuse_at(0, f"has more than {_MAX_CHARS:,} characters", "make several of it")
    reader.read(text)
    if reader.root is None:
        reader.refuse_at(1, "has no keys", "write 'key: value' on lines of their own")
    return reader.root
