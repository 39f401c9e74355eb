"""Secrets, and the one function that removes them from text and facts. Pure.

Rule 1: a secret is the value, of 8 characters or more, of a variable with a telling name, and any
login in a URL, whatever the name of the variable. Rule 2: in a secret of several lines each line of
16 characters or more is a secret too, and so is a password inside it. Rule 3: free text is
redacted. Ids, hashes, words with a fixed meaning and the plan's own text are not, or a run could no
longer find the things that its facts are about. Rule 4: a setting that is marked as secret is
masked everywhere in a fact.
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
from windlass.core.plan.model import Plan, Task
from windlass.core.settings import Settings, masked

MIN_LENGTH = MIN_NEEDLE
"""Shorter values would redact ordinary words."""

MIN_LINE = 16
"""Shorter lines of a secret would too."""

MARKS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "WEBHOOK", "HOOK_URL")
"""A variable holds a secret if its name contains one of these."""

WORDS = frozenset(
    {"AUTH", "AUTHORIZATION", "BEARER", "CRED", "CREDS", "DSN", "JWT", "OAUTH", "PAT"}
)
"""The same for these words in a name, unless the value is a path or an address."""

BEGINNINGS = ("CREDENTIAL", "PASSPHRASE", "PRIVATE")
"""The same for words that begin like this."""

_DOUBTFUL = ("AUTH", "OAUTH", "PRIVATE")
"""Of these, words that also name a method: `MYSQL_AUTH_METHOD=password` is no secret."""

ENDS = frozenset({"PASS", "PASSWD", "PWD"})
"""The same for these words at the end of a longer name; PWD itself is a folder."""

KEPT = frozenset({
    # Ids and hashes: other facts, refs and commits are found by them.
    "base", "base_branch", "base_moved_to", "branch", "coach_model", "commit", "model", "new",
    "old", "onto", "run", "stage", "start", "task", "tasks", "tip", "tree", "version",
    # Words of a closed set: any other word could not be decoded.
    "about", "absence", "absent", "answers", "cause", "checkpoint", "decision", "desktop",
    "failure", "flaky", "how", "kind", "level", "on_failure", "otlp", "outcome",
    "red_base", "relation", "sandbox", "severity", "sign", "status", "network",
})  # fmt: skip
"""Fields that are never redacted, wherever in a fact they are."""

_SETTINGS = "GIT_CONFIG_KEY_"
"""Variables with the names of git settings; git fails if one is missing."""

_ALSO = frozenset({"APPRISE_URLS"})
"""Variables that hold a secret and that a notice program needs."""

_WORD = re.compile(r"[A-Z0-9]+")
_LINE = re.compile(r"\r\n?|\n|\\r\\n|\\n|\\r")
"""The end of a line, also as an escape, which some programs expect in a variable."""
_CHOICE = re.compile(r"(?!.{16})[A-Za-z]+(?:[-_ ][A-Za-z]+)*")
"""A short word or two, such as the name of a choice."""
_PATH = re.compile(r"(?:~|\.{0,2})/[^\s:]*")
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://[^\s@?#]*")
_LOGIN = re.compile(r"(?<![\w+.-])[A-Za-z][\w+.-]{0,31}://([^\s/?#\"'<>]+)@")
_SIGNED = 16
"""How long a user name must be to count as a secret, as in `https://TOKEN@host`."""
_ASSIGNMENT = re.compile(
    r"""(?<![\w.-])([\w.-]{1,64})["']?[ \t]{0,9}[=:][ \t]{0,9}"""
    r"""(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"';,&]+))"""
)
"""A name and its value in a settings file, a connection string, a query or JSON."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{32,}={0,2}")
_BASE64_END = re.compile(r"[A-Za-z0-9+/_-]{4,}={0,2}")
_PIECE = 1024
_VARIED = 10
"""The least number of different characters in a line of a key."""

S = TypeVar("S", bound=Struct)


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for one of the user's own programs that needs no secret."""
    return {
        name: value for name, value in environment.items() if not _is_secret_by_name(name, value)
    }


def names_secret(name: str) -> bool:
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
    return name in _ALSO or _is_secret_by_name(name, value) or any(_logins(value))


def _is_secret_by_name(name: str, value: str) -> bool:
    """Whether the name makes it a secret; for a path or an address the name must be certain."""
    if not names_secret(name) or any(mark in name.upper() for mark in MARKS):
        return names_secret(name)
    value = value.strip()
    words = ("X" if it.startswith(_DOUBTFUL) else it for it in _WORD.findall(name.upper()))
    is_choice = _CHOICE.fullmatch(value) is not None and not names_secret("_".join(words))
    return not (is_choice or _PATH.fullmatch(value) or _ADDRESS.fullmatch(value))


class Redactor:
    """Replaces the secrets of one environment, and never shows them."""

    __slots__ = ("_occurrences",)

    def __init__(
        self, environment: Mapping[str, str], named: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Collect the secrets of an environment; the values in `named` are always secrets."""
        plain, encoded, base64 = dict[str, str](), dict[str, str](), dict[str, str]()
        values = {n: value for n, value in environment.items() if _is_secret(n, value)}
        for name, value in (*sorted(named), *sorted(values.items())):
            for secret in _secrets_in(value):
                encoded.setdefault(secret, name)
                for text in (*_spellings(secret), *_lines(secret)):
                    plain.setdefault(text, name)
                if body := _body(secret):
                    base64.setdefault(body, name)
        self._occurrences = Occurrences(Needles(plain, encoded, base64))

    def text(self, text: str) -> str:
        """The text with `[redacted NAME]` in place of each secret."""
        if not self._occurrences.reach:
            return text
        data = to_bytes(text)
        found = self._occurrences.find(data)
        return to_text(_redacted(data, found, 0, len(data))) if found else text

    def event(self, event: S) -> S:
        """The fact without secrets; the same object if it has none."""
        masks = isinstance(event, Settings) or isinstance(
            getattr(event, "settings", None), Settings
        )
        return redacted(event, self.text) if masks or self._occurrences.reach else event

    def stream(self) -> "Stream":
        """A redactor for bytes that come in pieces; a secret may span several."""
        return Stream(self._occurrences)


def redacted(fact: S, text: Callable[[str], str], *, kept: tuple[type, ...] = (Plan, Task)) -> S:
    """A fact, or an agent's report, with its free text redacted and its settings masked.

    Values of the types in `kept` stay as they are: a run finds its tasks by the plan's text.
    """
    return cast("S", _clean(fact, "", text, kept))


def _clean(value: object, field: str, text: Callable[[str], str], kept: tuple[type, ...]) -> object:
    # An enum's member is a str too, and must stay a member.
    if type(value) is str:
        return value if field in KEPT else text(value)
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        cleaned = tuple(_clean(item, field, text, kept) for item in items)
        return cleaned if cleaned != items else items
    if not isinstance(value, Struct) or isinstance(value, kept):
        return value
    whole = masked(value) if isinstance(value, Settings) else value
    old = structs.asdict(whole)
    new = {name: _clean(item, name, text, kept) for name, item in old.items()}
    changed = {name: item for name, item in new.items() if item is not old[name]}
    return structs.replace(whole, **changed) if changed else whole


class Stream:
    """Redacts a stream of bytes; holds back bytes that may begin a secret."""

    __slots__ = ("_covered", "_held", "_occurrences")

    def __init__(self, occurrences: Occurrences) -> None:
        self._occurrences = occurrences
        self._held = b""
        self._covered = 0
        """How many of the held bytes belong to a secret that is already replaced."""

    def feed(self, data: bytes) -> bytes:
        """Add bytes; returns those that can be passed on now."""
        reach = self._occurrences.reach
        if not reach:
            return data
        self._held += data
        # Searching few bytes takes as long as many, and each is searched twice.
        if len(self._held) < reach + max(reach, _PIECE):
            return b""
        cut = max(len(self._held) - reach + 1, self._occurrences.separated(self._held))
        # An escape must not be cut: its rest would mean something else.
        return self._redact_until(len(self._held[:cut].rstrip(b"\\")) or cut)

    def end(self) -> bytes:
        """The rest of the stream."""
        return self._redact_until(len(self._held))

    def _redact_until(self, cut: int) -> bytes:
        """The held bytes before `cut`, redacted; a secret may extend beyond it."""
        found = list[Found]()
        covered = self._covered
        for each in self._occurrences.find(self._held):
            if each.start < covered:
                covered = max(covered, each.end)
            elif each.start < cut:
                found.append(each)
        given = _redacted(self._held, found, min(covered, cut), cut)
        reached = max([covered, *(each.end for each in found)])
        self._held, self._covered = self._held[cut:], max(0, reached - cut)
        return given


def _redacted(data: bytes, found: list[Found], start: int, end: int) -> bytes:
    """The bytes from `start` to `end`, with names in place of secrets."""
    parts: list[bytes] = []
    for each in found:
        parts += (data[start : each.start], f"[redacted {each.label[1]}]".encode())
        start = each.end
    return b"".join((*parts, data[start:end]))


def _secrets_in(value: str) -> Iterator[str]:
    """The value, and the secrets inside it: passwords, keys, tokens."""
    # White space around the value of a variable seldom appears in a text.
    value = value.strip()
    inner = [*_logins(value), *_assigned(value), *_json_secrets(value)]
    for secret in (value, *inner):
        if len(secret) >= MIN_LENGTH:
            yield secret


def _logins(value: str) -> Iterator[str]:
    """The logins in the URLs of a value, as written and decoded."""
    for match in _LOGIN.finditer(value):
        login = match[1]
        user, colon, password = login.partition(":")
        if not password and (colon or len(user) < _SIGNED):
            continue
        for part in (login, password or user):
            yield part
            yield unquote(part)


def _assigned(value: str) -> Iterator[str]:
    """The secrets in a text of names and values."""
    for match in _ASSIGNMENT.finditer(value):
        name, given = match[1], next(filter(None, match.groups()[1:]), "")
        if names_secret(name) and not _PATH.fullmatch(given) and not _ADDRESS.fullmatch(given):
            yield given
            yield unquote(given)


def _json_secrets(value: str) -> Iterator[str]:
    if value.startswith(("{", "[")):
        try:
            yield from _leaves(json.loads(value), "")
        except (ValueError, RecursionError):
            return


def _leaves(value: Any, name: str) -> Iterator[str]:
    """The secrets in a JSON value, by the names of its fields."""
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield from _leaves(item, key)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _leaves(item, name)
    elif isinstance(value, str) and names_secret(name) and not _ADDRESS.fullmatch(value):
        yield value.strip()


def _spellings(secret: str) -> Iterator[str]:
    """A secret as it is, and as a shell or a web form writes it."""
    yield secret
    if "'" in secret:
        yield shlex.quote(secret)[1:-1]
        yield secret.replace("'", "'\\''")
    if " " in secret:
        yield secret.replace(" ", "+")


def _lines(secret: str) -> Iterator[str]:
    """The long lines of a secret of several lines."""
    lines = [line.strip() for line in _LINE.split(secret)]
    if len(lines) > 1:
        for line in lines:
            if len(line) >= MIN_LINE:
                yield from _spellings(line)


def _body(secret: str) -> str:
    """The base64 lines of a secret, joined: a key in PEM form."""
    lines = [line.strip() for line in _LINE.split(secret)]
    taken = list[str]()
    in_body = False
    for line in lines if len(lines) > 1 else ():
        starts = _BASE64.fullmatch(line) is not None and len(set(line)) >= _VARIED
        in_body = starts or (in_body and _BASE64_END.fullmatch(line) is not None)
        if in_body:
            taken.append(line)
    return "".join(taken)
