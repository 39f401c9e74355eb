"""What must never be written down, and the one function that takes it out. Pure.

Rule 1: a secret is the value, of 8 characters or more, of a variable whose name contains KEY,
TOKEN, SECRET, PASSWORD or WEBHOOK. Rule 2: free text is redacted; ids, hashes, words with a fixed
meaning and the plan's own text never are, or a run could no longer find what it wrote about.
"""

import codecs
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, TypeVar, cast

from msgspec import Struct, structs

MIN_LENGTH = 8
"""Shorter values would blot out ordinary words."""

MARKS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "WEBHOOK")
"""What gives a variable away as holding a secret."""

KEPT = frozenset({
    # Ids and hashes: other facts, refs and commits are found by them.
    "base", "base_branch", "base_moved_to", "branch", "coach_model", "commit", "model", "new",
    "old", "onto", "run", "stage", "start", "task", "tasks", "tip", "tree", "version",
    # Words out of a closed set: anything else could not be read back.
    "about", "absence", "absent", "answers", "cause", "checkpoint", "decision", "desktop",
    "failure", "flaky", "how", "kind", "level", "name", "on_failure", "otlp", "outcome",
    "red_base", "relation", "sandbox", "severity", "status", "network",
})  # fmt: skip
"""Fields whose words stay as they are, wherever in a fact they stand."""

PLAN = "plan"
"""The one field that stays as it is with all that is in it."""

_SETTINGS = "GIT_CONFIG_KEY_"
"""Variables that name settings of git, which fails where one of them is missing."""

S = TypeVar("S", bound=Struct)
_Label: TypeAlias = tuple[int, str]
"""How long a secret is, and the variable that holds it: the longest gives a blot its name."""


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that a program of the user's own may see which needs no key of theirs."""
    return {name: value for name, value in environment.items() if not _gives_away(name)}


def _gives_away(name: str) -> bool:
    return any(mark in name.upper() for mark in MARKS) and not name.startswith(_SETTINGS)


class Redactor:
    """Replaces the secrets of one environment; holds them, and shows them to nobody."""

    __slots__ = ("_forms",)

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._forms: dict[str, str] = {}
        for name in sorted(environment):
            # What surrounds a value in a variable is seldom with it in a text.
            value = environment[name].strip()
            if len(value) >= MIN_LENGTH and _gives_away(name):
                for form in _forms(value):
                    self._forms.setdefault(form, name)

    def text(self, text: str) -> str:
        """The text with `[redacted NAME]` wherever a secret stood."""
        parts: list[str] = []
        done = 0
        for start, end, (_, name) in self._blots(text):
            parts += (text[done:start], f"[redacted {name}]")
            done = end
        return "".join((*parts, text[done:])) if parts else text

    def event(self, event: S) -> S:
        """The fact without secrets; the very same object when it holds none."""
        return cast("S", self._clean(event, "")) if self._forms else event

    def stream(self) -> "Stream":
        """One for what comes in pieces, between which a secret may be broken."""
        return Stream(self.text, self._blots, max(map(len, self._forms), default=0))

    def _clean(self, value: object, field: str) -> object:
        if field == PLAN:
            return value
        # An enum's member is a str too, and must stay a member.
        if type(value) is str:
            return value if field in KEPT else self.text(value)
        if isinstance(value, tuple):
            items = cast("tuple[object, ...]", value)
            cleaned = tuple(self._clean(item, field) for item in items)
            return cleaned if cleaned != items else items
        if isinstance(value, Struct):
            old = structs.asdict(value)
            new = {name: self._clean(item, name) for name, item in old.items()}
            changed = {name: item for name, item in new.items() if item is not old[name]}
            return structs.replace(value, **changed) if changed else value
        return value

    def _blots(self, text: str) -> list[tuple[int, int, _Label]]:
        """The spans to cover, in order and apart from each other.

        Where secrets overlap, one blot covers them all and bears the longest one's name:
        replacing them one after the other would leave the rest of whichever came second.
        """
        found = sorted(
            (at, at + len(form), (len(form), name))
            for form, name in self._forms.items()
            for at in _occurrences(form, text)
        )
        blots: list[tuple[int, int, _Label]] = []
        for blot in found:
            start, end, label = blot
            if blots and start < blots[-1][1]:
                first, last, other = blots.pop()
                blots.append((first, max(last, end), max(label, other)))
            else:
                blots.append(blot)
        return blots


class Stream:
    """Redacts bytes as they come; holds back what could be the beginning of a secret."""

    __slots__ = ("_blots", "_decoder", "_held", "_longest", "_text")

    def __init__(
        self,
        text: Callable[[str], str],
        blots: Callable[[str], list[tuple[int, int, _Label]]],
        longest: int,
    ) -> None:
        self._text = text
        self._blots = blots
        self._longest = longest
        # What is no text comes out as it went in.
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._held = ""

    def feed(self, data: bytes) -> bytes:
        """What can be given on of all that came so far."""
        if not self._longest:
            return data
        self._held += self._decoder.decode(data)
        cut = max(0, len(self._held) - self._longest + 1)
        # A blot is not cut either, for more of it may come.
        cut = next((start for start, end, _ in self._blots(self._held) if start < cut < end), cut)
        ready, self._held = self._held[:cut], self._held[cut:]
        return _bytes(self._text(ready))

    def end(self) -> bytes:
        """The rest."""
        rest, self._held = self._held + self._decoder.decode(b"", final=True), ""
        return _bytes(self._text(rest))


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _forms(value: str) -> Iterator[str]:
    """The value as it is, and as it looks inside a JSON string of either habit."""
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]


def _occurrences(form: str, text: str) -> Iterator[int]:
    """Every place the form stands at, those that overlap an earlier one included."""
    at = text.find(form)
    while at >= 0:
        yield at
        at = text.find(form, at + 1)
