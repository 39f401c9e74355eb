"""Undoes the escapes of JSON, C, Python, shells, URLs and HTML in a text. Pure.

Rule: an escape can be written in many ways, and nested escapes in still more. So Windlass undoes
them in the text, and maps every part of the result to its position in the text.
"""

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple, TypeAlias

_DEPTH = 3
"""How many levels of nested escapes are undone."""

Place: TypeAlias = Callable[[int, int], tuple[int, int]]
"""Maps a part of a changed text to its position in the original."""


def to_bytes(text: str) -> bytes:
    """Any text as bytes; bytes that were no valid text when they were read come back unchanged."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")


def to_text(data: bytes) -> str:
    """The reverse of `to_bytes`."""
    try:
        return data.decode(errors="surrogatepass")
    except UnicodeDecodeError:
        return data.decode(errors="surrogateescape")


def same(start: int, end: int) -> tuple[int, int]:
    return start, end


class View(NamedTuple):
    """A text with escapes undone, and a map to the original positions."""

    data: bytes
    place: Place


def views(data: bytes) -> Iterator[View]:
    """The text itself, then with its escapes undone, then with those in the result, and so on."""
    latest = [View(data, same)]
    if not any(sign in data for sign, _, _ in _ESCAPES):
        yield from latest
        return
    seen = {data}
    for _ in range(_DEPTH):
        yield from latest
        unescaped = (_unescaped(view, *kind) for view in latest for kind in _ESCAPES)
        latest = list[View]()
        for view in unescaped:
            if view is not None and view.data not in seen:
                seen.add(view.data)
                latest.append(view)
    yield from latest


def _unescaped(
    view: View, sign: bytes, pattern: re.Pattern[bytes], meant: Callable[[bytes], bytes]
) -> View | None:
    """The view with one kind of escape undone; None if it has none."""
    if sign not in view.data:
        return None
    data = pattern.sub(lambda match: meant(match[0]), view.data)
    if data == view.data:
        return None
    # Hardly any text holds a secret, so positions are computed only when needed.
    sources = cache(lambda: _sources(view.data, pattern, meant))

    def place(start: int, end: int) -> tuple[int, int]:
        return view.place(sources().of(start)[0], sources().of(end - 1)[1])

    return View(data, place)


class _Sources(NamedTuple):
    """Where each escape begins and ends, in the text with escapes and in the one without."""

    begins: list[int]
    ends: list[int]
    spans: list[tuple[int, int]]

    def of(self, at: int) -> tuple[int, int]:
        """The start and end in the original of what became this byte."""
        index = bisect_right(self.begins, at) - 1
        if index < 0:
            return at, at + 1
        start, end = self.spans[index]
        if at < self.ends[index]:
            return start, end
        return end + at - self.ends[index], end + at - self.ends[index] + 1


def _sources(data: bytes, pattern: re.Pattern[bytes], meant: Callable[[bytes], bytes]) -> _Sources:
    begins, ends, spans = list[int](), list[int](), list[tuple[int, int]]()
    length = done = 0
    for match in pattern.finditer(data):
        start, end = match.span()
        begins.append(length + start - done)
        length = begins[-1] + len(meant(match[0]))
        ends.append(length)
        spans.append((start, end))
        done = end
    return _Sources(begins, ends, spans)


_PAIR = rb"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_BACKSLASH = re.compile(
    rb"\\(?:" + _PAIR + rb"|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[0-7]{3}|[\s\S])"
)
_PERCENT = re.compile(rb"%[0-9a-fA-F]{2}")
_ENTITY = re.compile(rb"&(?:amp|lt|gt|quot|apos|nbsp|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
_SHORT = {b"\\" + bytes([key]): bytes([value]) for key, value in zip(
    b"abfnrtv0", b"\a\b\f\n\r\t\v\0", strict=True
)} | {b"\\\n": b""}  # fmt: skip
_OCTAL = 4
_HIGHEST = 0x10FFFF


@lru_cache(maxsize=4096)
def _backslash(escape: bytes) -> bytes:
    """The meaning of a backslash escape in JSON, C, Python or a shell."""
    if escape in _SHORT:
        return _SHORT[escape]
    kind, digits = escape[1:2], escape[2:].decode(errors="replace")
    if kind == b"x" and digits:
        return bytes([int(digits, 16)])
    if kind in b"uU" and digits:
        numbers = [int(part, 16) for part in digits.split("\\u")]
        if len(numbers) > 1:
            high, low = numbers
            numbers = [0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF)]
        return _character(numbers[0])
    if len(escape) == _OCTAL:
        return bytes([int(escape[1:], 8) & 0xFF])
    return escape[1:]


@lru_cache(maxsize=4096)
def _percent(escape: bytes) -> bytes:
    return bytes([int(escape[1:], 16)])


@lru_cache(maxsize=4096)
def _entity(escape: bytes) -> bytes:
    return html.unescape(escape.decode()).encode(errors="replace")


def _character(number: int) -> bytes:
    return chr(min(number, _HIGHEST)).encode(errors="surrogatepass")


_ESCAPES = (
    (b"\\", _BACKSLASH, _backslash),
    (b"%", _PERCENT, _percent),
    (b"&", _ENTITY, _entity),
)
