"""What must never be written down, and the one function that takes it out. Pure.

Rule 1: a secret is the value, of 8 characters or more, of a variable whose name gives it away, and
whatever signs in inside a URL, whatever the variable is called. Rule 2: a secret of several lines
is also each of its lines of 16 characters or more; a password inside it is one of its own. Rule 3:
free text is redacted; ids, hashes, words with a fixed meaning and the plan's own text never are, or
a run could no longer find what it wrote about. Rule 4: a setting that is marked as secret is masked
wherever it stands in a fact.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, cast
from urllib.parse import unquote

from msgspec import Struct, structs

from windlass.core.escapes import to_bytes, to_text
from windlass.core.occurrences import MIN_NEEDLE, Found, Needles, Occurrences
from windlass.core.settings import Settings, masked

MIN_LENGTH = MIN_NEEDLE
"""Shorter values would blot out ordinary words."""

MIN_LINE = 16
"""Shorter lines of a secret would, too."""

MARKS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "WEBHOOK", "HOOK_URL")
"""What gives a variable away as holding a secret, wherever it stands in the name."""

WORDS = frozenset(
    {"AUTH", "AUTHORIZATION", "BEARER", "CRED", "CREDS", "DSN", "JWT", "OAUTH", "PAT"}
)
"""Words of a name that do so too, unless the value is a path or an address."""

BEGINNINGS = ("CREDENTIAL", "PASSPHRASE", "PRIVATE")
"""Beginnings of such words."""

_DOUBTFUL = ("AUTH", "OAUTH", "PRIVATE")
"""Of these, what names a way or a choice too: `MYSQL_AUTH_METHOD=password` keeps nothing secret."""

ENDS = frozenset({"PASS", "PASSWD", "PWD"})
"""Words that do so at the end of a longer name; PWD itself is a folder."""

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

_ALSO = frozenset({"APPRISE_URLS"})
"""Variables that hold a secret, and that the program needs which is told of a run."""

_WORD = re.compile(r"[A-Z0-9]+")
_LINE = re.compile(r"\r\n?|\n|\\r\\n|\\n|\\r")
"""The end of a line, also as some programs want it in a variable."""
_CHOICE = re.compile(r"(?!.{16})[A-Za-z]+(?:[-_ ][A-Za-z]+)*")
"""A word or two, as choices are called."""
_PATH = re.compile(r"(?:~|\.{0,2})/[^\s:]*")
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://[^\s@?#]*")
_LOGIN = re.compile(r"(?<![\w+.-])[A-Za-z][\w+.-]{0,31}://([^\s/?#\"'<>]+)@")
_SIGNED = 16
"""How long a user's name must be to be a secret by itself, as in `https://TOKEN@host`."""
_GIVEN = re.compile(
    r"""(?<![\w.-])([\w.-]{1,64})["']?[ \t]{0,9}[=:][ \t]{0,9}"""
    r"""(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"';,&]+))"""
)
"""A name and its value in a file of settings, a connection string, a query or JSON."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{32,}={0,2}")
_BASE64_END = re.compile(r"[A-Za-z0-9+/_-]{4,}={0,2}")
_PIECE = 1024
_VARIED = 10
"""How many different letters a line of a key has at least."""

S = TypeVar("S", bound=Struct)


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that a program of the user's own may see which needs no key of theirs."""
    return {name: value for name, value in environment.items() if not _is_named_so(name, value)}


def gives_away(name: str) -> bool:
    """Whether a variable of this name holds a secret, or a path to one."""
    upper = name.upper()
    if upper.startswith(_SETTINGS):
        return False
    words = _WORD.findall(upper)
    return (
        any(mark in upper for mark in MARKS)
        or not WORDS.isdisjoint(words)
        or any(word.startswith(BEGINNINGS) for word in words)
        or (len(words) > 1 and words[-1] in ENDS)
    )


def _is_secret(name: str, value: str) -> bool:
    return name in _ALSO or _is_named_so(name, value) or any(_logins(value))


def _is_named_so(name: str, value: str) -> bool:
    """Whether it is a secret by its name; a path or an address is only by a name that is sure."""
    if not gives_away(name) or any(mark in name.upper() for mark in MARKS):
        return gives_away(name)
    value = value.strip()
    words = ("X" if it.startswith(_DOUBTFUL) else it for it in _WORD.findall(name.upper()))
    is_choice = _CHOICE.fullmatch(value) is not None and not gives_away("_".join(words))
    return not (is_choice or _PATH.fullmatch(value) or _ADDRESS.fullmatch(value))


class Redactor:
    """Replaces the secrets of one environment; holds them, and shows them to nobody."""

    __slots__ = ("_occurrences",)

    def __init__(
        self, environment: Mapping[str, str], named: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Know what is secret in an environment, and these values, whatever they are called."""
        plain, encoded, base64 = dict[str, str](), dict[str, str](), dict[str, str]()
        values = {n: value for n, value in environment.items() if _is_secret(n, value)}
        for name, value in (*sorted(named), *sorted(values.items())):
            for secret in _secrets_in(value):
                encoded.setdefault(secret, name)
                for text in (*_written(secret), *_lines(secret)):
                    plain.setdefault(text, name)
                if body := _body(secret):
                    base64.setdefault(body, name)
        self._occurrences = Occurrences(Needles(plain, encoded, base64))

    def text(self, text: str) -> str:
        """The text with `[redacted NAME]` wherever a secret stood."""
        if not self._occurrences.reach:
            return text
        data = to_bytes(text)
        found = self._occurrences.find(data)
        return to_text(_blotted(data, found, 0, len(data))) if found else text

    def event(self, event: S) -> S:
        """The fact without secrets; the very same object when it holds none."""
        told = isinstance(event, Settings) or isinstance(getattr(event, "settings", None), Settings)
        return redacted(event, self.text) if told or self._occurrences.reach else event

    def stream(self) -> "Stream":
        """One for what comes in pieces, between which a secret may be broken."""
        return Stream(self._occurrences)


def redacted(fact: S, text: Callable[[str], str]) -> S:
    """A fact, or what an agent reports, with its free text redacted and its settings masked."""
    return cast("S", _clean(fact, "", text))


def _clean(value: object, field: str, text: Callable[[str], str]) -> object:
    if field == PLAN:
        return value
    # An enum's member is a str too, and must stay a member.
    if type(value) is str:
        return value if field in KEPT else text(value)
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        cleaned = tuple(_clean(item, field, text) for item in items)
        return cleaned if cleaned != items else items
    if not isinstance(value, Struct):
        return value
    whole = masked(value) if isinstance(value, Settings) else value
    old = structs.asdict(whole)
    new = {name: _clean(item, name, text) for name, item in old.items()}
    changed = {name: item for name, item in new.items() if item is not old[name]}
    return structs.replace(whole, **changed) if changed else whole


class Stream:
    """Redacts bytes as they come; holds back what could be the beginning of a secret."""

    __slots__ = ("_covered", "_held", "_occurrences")

    def __init__(self, occurrences: Occurrences) -> None:
        self._occurrences = occurrences
        self._held = b""
        self._covered = 0
        """How many of the bytes that are held belong to a secret that was replaced already."""

    def feed(self, data: bytes) -> bytes:
        """What can be given on of all that came so far."""
        reach = self._occurrences.reach
        if not reach:
            return data
        self._held += data
        # Looking at few bytes takes as long as at many, and each is looked at twice.
        if len(self._held) < reach + max(reach, _PIECE):
            return b""
        cut = max(len(self._held) - reach + 1, self._occurrences.separated(self._held))
        # Nor is an escape cut, for what is left of it would mean something else.
        return self._given(len(self._held[:cut].rstrip(b"\\")) or cut)

    def end(self) -> bytes:
        """The rest."""
        return self._given(len(self._held))

    def _given(self, cut: int) -> bytes:
        """What is held up to there; what begins there goes on after it."""
        found = list[Found]()
        covered = self._covered
        for each in self._occurrences.find(self._held):
            if each.start < covered:
                covered = max(covered, each.end)
            elif each.start < cut:
                found.append(each)
        given = _blotted(self._held, found, min(covered, cut), cut)
        reached = max([covered, *(each.end for each in found)])
        self._held, self._covered = self._held[cut:], max(0, reached - cut)
        return given


def _blotted(data: bytes, found: list[Found], start: int, end: int) -> bytes:
    """The bytes between those places, with a name in place of all that was found."""
    parts: list[bytes] = []
    for each in found:
        parts += (data[start : each.start], f"[redacted {each.label[1]}]".encode())
        start = each.end
    return b"".join((*parts, data[start:end]))


def _secrets_in(value: str) -> Iterator[str]:
    """The value, and what is a secret of its own in it: passwords, keys, tokens."""
    # What surrounds a value in a variable is seldom with it in a text.
    value = value.strip()
    inner = [*_logins(value), *_given(value), *_json_secrets(value)]
    for secret in (value, *inner):
        if len(secret) >= MIN_LENGTH:
            yield secret


def _logins(value: str) -> Iterator[str]:
    """What signs in, in the URLs of a value: as it is there, and as it is meant."""
    for match in _LOGIN.finditer(value):
        login = match[1]
        user, colon, password = login.partition(":")
        if not password and (colon or len(user) < _SIGNED):
            continue
        for part in (login, password or user):
            yield part
            yield unquote(part)


def _given(value: str) -> Iterator[str]:
    """The values in a text of names and values whose names give them away."""
    for match in _GIVEN.finditer(value):
        name, given = match[1], next(filter(None, match.groups()[1:]), "")
        if gives_away(name) and not _PATH.fullmatch(given) and not _ADDRESS.fullmatch(given):
            yield given
            yield unquote(given)


def _json_secrets(value: str) -> Iterator[str]:
    if value.startswith(("{", "[")):
        try:
            yield from _leaves(json.loads(value), "")
        except (ValueError, RecursionError):
            return


def _leaves(value: Any, name: str) -> Iterator[str]:
    """The texts in JSON whose names give them away."""
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield from _leaves(item, key)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _leaves(item, name)
    elif isinstance(value, str) and gives_away(name) and not _ADDRESS.fullmatch(value):
        yield value.strip()


def _written(secret: str) -> Iterator[str]:
    """A secret as it is, and as a shell or a form of a web page has it."""
    yield secret
    if "'" in secret:
        yield shlex.quote(secret)[1:-1]
        yield secret.replace("'", "'\\''")
    if " " in secret:
        yield secret.replace(" ", "+")


def _lines(secret: str) -> Iterator[str]:
    """The lines of a secret that has several."""
    lines = [line.strip() for line in _LINE.split(secret)]
    if len(lines) > 1:
        for line in lines:
            if len(line) >= MIN_LINE:
                yield from _written(line)


def _body(secret: str) -> str:
    """What is base64 of a secret's lines, in one piece: a key as PEM has it."""
    lines = [line.strip() for line in _LINE.split(secret)]
    taken = list[str]()
    going_on = False
    for line in lines if len(lines) > 1 else ():
        starts = _BASE64.fullmatch(line) is not None and len(set(line)) >= _VARIED
        going_on = starts or (going_on and _BASE64_END.fullmatch(line) is not None)
        if going_on:
            taken.append(line)
    return "".join(taken)
