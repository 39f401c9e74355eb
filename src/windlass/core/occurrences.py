"""Finds many needles in a text, plain or encoded. Pure, and linear in the length of the text.

The text is searched by blocks: 4 or 8 bytes at every 4th or 8th position. Each needle is indexed by
the blocks that can begin it at any such position, so the number of needles costs nothing. Rule 1: a
short needle is found whole; of a long one every fragment is found. Rule 2: escapes (JSON, shell,
URL, HTML) are undone in the text, because they can be written in many ways. Rule 3: base64 and hex
are found across line breaks, columns and quotes.
"""

import base64
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from windlass.core.escapes import Place, same, to_bytes, views

MIN_NEEDLE = 8
"""The shortest needle, in bytes; encoded it is longer."""
WHOLE = 256
"""The longest needle, in bytes, that is only found whole."""
FRAGMENT = 64
"""The shortest fragment of a longer needle that is found, in bytes."""
_WRAPPED = 40
"""From this length on, fragments of encoded needles are found: programs wrap them."""
_LETTERS_FRAGMENT = 16
"""The shortest fragment of base64 that is found: a column of a hex dump is as long."""
_DIGITS_FRAGMENT = 24
_VARIED = 8
"""The least number of different bytes in a fragment: a line of dashes is no secret."""
_GROWTH = 8
"""The most bytes that an encoding needs for one byte of a needle."""
_MOST = 8
"""How many further positions of one block are kept."""
_LEAD = 4
_MARGIN = 24
"""How far away the next line of a needle can be: programs indent or number lines."""
_HUGE = 16_384
_STEP = 7
"""Of a longer needle, every 7th position is indexed: fragments of 63 bytes are found."""
_UNIFORM = frozenset(int.from_bytes(bytes([byte]) * 8, sys.byteorder) for byte in range(256))

_OFFSET_BITS = 40
_OFFSET_MASK = (1 << _OFFSET_BITS) - 1

T = TypeVar("T")
Label: TypeAlias = tuple[int, str]
"""The length of a find and the name of its needle; the longest find gives the name."""


class Found(NamedTuple):
    """A part of a text that holds a needle."""

    start: int
    end: int
    label: Label


class Needles(NamedTuple):
    """The texts to find, each with its name."""

    plain: Mapping[str, str]
    """Found as it is, or with escapes."""
    encoded: Mapping[str, str]
    """Found as base64 and as hex."""
    base64: Mapping[str, str]
    """Base64 already; found with any line breaks."""


class Occurrences:
    """Finds where needles are in a text."""

    __slots__ = ("_base64", "_foreign", "_hex", "_plain", "reach")

    def __init__(self, needles: Needles) -> None:
        plain = _Blocks(FRAGMENT)
        wrapped, digits = _Blocks(_LETTERS_FRAGMENT), _Blocks(_DIGITS_FRAGMENT)
        reach = 0
        used = set[int]()
        for text, name in needles.plain.items():
            needle = to_bytes(text)
            used.update(needle)
            whole = len(needle) <= WHOLE
            plain.add(needle, name, whole=whole)
            bound = WHOLE if not whole and _is_varied(needle) else len(needle)
            reach = max(reach, _GROWTH * bound)
        for text, name in needles.encoded.items():
            needle = to_bytes(text)
            for form in _in_base64(needle):
                wrapped.add(form, name, whole=len(form) < _WRAPPED)
            form = needle.hex().encode()
            digits.add(form, name, whole=len(form) < _WRAPPED)
        for text, name in needles.base64.items():
            wrapped.add(to_bytes(text).translate(_TO_BASE64, _NOT_BASE64), name, whole=False)
        self._plain, self._base64, self._hex = plain, wrapped, digits
        self._foreign = bytes(byte for byte in range(256) if byte < _ASCII or byte in used)
        self.reach = reach
        """How many bytes must be seen to know whether a needle begins at the first of them."""

    def find(self, data: bytes) -> list[Found]:
        """The parts that hold a needle, in order and without overlaps.

        Overlapping needles are one part with the name of the longest.
        """
        if not self.reach or len(data) < MIN_NEEDLE:
            return []
        found: list[Found] = []
        for view in views(data):
            for spots, place in self._decodings(view.data):
                for start, end, label in spots:
                    found.append(Found(*view.place(*place(start, end)), label))
        return _merged(found)

    def _decodings(self, data: bytes) -> Iterator[tuple[Iterable[Found], Place]]:
        yield self._plain.find(data), same
        for blocks, letters, others in (
            (self._base64, _TO_BASE64, _NOT_BASE64),
            (self._hex, _TO_HEX, _NOT_HEX),
        ):
            spots = blocks.find(data.translate(letters, others))
            if spots:
                yield spots, _kept(data, others)

    def separated(self, data: bytes) -> int:
        """The position after the last byte that can be in no needle, encoded or not."""
        return len(data.rstrip(self._foreign))


class _Known(NamedTuple):
    """A needle, and the positions of a block in it."""

    needle: bytes
    name: str
    offsets: list[int]


_Table: TypeAlias = dict[int, list[_Known]]


class _Blocks:
    """Needles, indexed by their blocks."""

    __slots__ = ("_long", "_pieces", "_short")

    def __init__(self, least: int) -> None:
        self._short: _Table = {}
        self._long: _Table = {}
        self._pieces = _Pieces(least)

    def add(self, needle: bytes, name: str, *, whole: bool) -> None:
        if not whole:
            self._pieces.add(needle, name)
        elif len(needle) < 15:  # noqa: PLR2004  else it holds all of an 8th place's block
            _index(self._short, needle, name, 4)
        else:
            _index(self._long, needle, name, 8)

    def find(self, data: bytes) -> list[Found]:
        """Every occurrence, without those that only overlap others."""
        found: list[Found] = []
        if _has_any(self._short, data, 4, "I"):
            found += _wholes(self._short, data, 4, "I")
        if _has_any(self._long, data, 8, "Q"):
            found += _wholes(self._long, data, 8, "Q")
        if _has_any(self._pieces.places, data, 8, "Q"):
            found += self._pieces.find(data)
        return found


def _index(table: _Table, needle: bytes, name: str, width: int) -> None:
    for offset in range(width):
        known = table.setdefault(_block(needle[offset : offset + width]), [])
        if not known or known[-1].needle is not needle:
            known.append(_Known(needle, name, []))
        known[-1].offsets.append(offset)


class _Pieces:
    """Long needles, indexed by all their blocks."""

    __slots__ = ("_least", "_more", "_needles", "places")

    def __init__(self, least: int) -> None:
        self._least = least
        self._needles: list[tuple[bytes, str]] = []
        # One number holds needle and offset: a key of 100 KB has very many positions.
        self.places: dict[int, int] = {}
        self._more: dict[int, list[int]] = {}

    def add(self, needle: bytes, name: str) -> None:
        first, more = self.places, self._more
        base = len(self._needles) << _OFFSET_BITS
        self._needles.append((needle, name))
        # A step without a common divisor with 8 reaches every alignment in the end.
        step = 1 if len(needle) < _HUGE else _STEP
        # A row of blanks or dashes is skipped, unless the needle has nothing else.
        skipped = _UNIFORM if _is_varied(needle) else frozenset[int]()
        for offset in range(0, len(needle) - 7, step):
            block = _block(needle[offset : offset + 8])
            if block in skipped:
                continue
            if block not in first:
                first[block] = base + offset
            elif len(places := more.setdefault(block, [])) < _MOST:
                places.append(base + offset)

    def find(self, data: bytes) -> Iterator[Found]:
        """Every fragment that is long enough, and its continuation on later lines."""
        done = 0
        ended: dict[int, int] = {}
        for at, place in _hits(self.places, data, 8, "Q"):
            if at < done:
                continue
            best: dict[int, _Piece] = {}
            for each in (place, *self._more.get(_block(data[at : at + 8]), ())):
                index, offset = each >> _OFFSET_BITS, each & _OFFSET_MASK
                piece = _extended(self._needles[index][0], offset, data, at)
                best[index] = max(piece, best.get(index, piece), key=_Piece.rank)
            # Nothing is searched twice, or it would take quadratic time.
            done = max(piece.end for piece in best.values())
            for index, piece in best.items():
                needle, name = self._needles[index]
                if piece.start <= (until := ended.get(index, -1)):
                    # A needle of one letter continues where it ended: one part, not two.
                    pieces = [piece._replace(start=min(piece.start, until - 1))]
                elif piece.end - piece.start == len(needle) or self._is_significant(piece, data):
                    pieces = [piece, *_continued(needle, piece, data)]
                else:
                    continue
                ended[index] = pieces[-1].end
                done = max(done, pieces[-1].end)
                yield from (piece.found(data, name) for piece in pieces)

    def _is_significant(self, piece: "_Piece", data: bytes) -> bool:
        """Whether a fragment is too long and too varied to be there by chance."""
        enough = piece.end - piece.start >= self._least
        some = data[piece.start : min(piece.end, piece.start + 4 * FRAGMENT)]
        return enough and len(set(some)) >= _VARIED


class _Piece(NamedTuple):
    """A part of a text that is also a part of a needle, up to an offset in it."""

    start: int
    end: int
    offset: int

    def rank(self) -> tuple[int, int]:
        """The longest is best; among equals, the first."""
        return self.end - self.start, -self.start

    def found(self, data: bytes, name: str) -> Found:
        """The part without white space at its ends."""
        text = data[self.start : self.end]
        start = self.start + len(text) - len(text.lstrip())
        return Found(start, start + len(text.strip()), (len(text), name))


def _continued(needle: bytes, piece: _Piece, data: bytes) -> Iterator[_Piece]:
    """The next parts of a needle, each after a gap: the margin of a new line."""
    while True:
        lead = needle[piece.offset : piece.offset + FRAGMENT].lstrip()[:_LEAD]
        at = data.find(lead, piece.end, piece.end + _MARGIN) if len(lead) == _LEAD else -1
        if at < 0:
            return
        piece = _extended(needle, needle.index(lead, piece.offset), data, at)
        yield piece


def _block(part: bytes) -> int:
    return int.from_bytes(part, sys.byteorder)


def _wholes(table: _Table, data: bytes, width: int, code: Literal["I", "Q"]) -> Iterator[Found]:
    latest: dict[bytes, Found] = {}
    for at, known in _hits(table, data, width, code):
        for needle, name, offsets in known:
            start = _start_of(needle, offsets, data, at)
            if start is None:
                continue
            found = Found(start, start + len(needle), (len(needle), name))
            last = latest.get(needle)
            if last is not None and start < last.end:
                found = Found(last.start, found.end, found.label)
            else:
                # Several may overlap here: this is the last of them, the first may begin earlier.
                first = _start_of(needle, offsets[::-1], data, at)
                found = Found(start if first is None else first, found.end, found.label)
                if last is not None and found.start < last.end:
                    found = Found(last.start, found.end, found.label)
                elif last is not None:
                    yield last
            latest[needle] = found
    yield from latest.values()


def _start_of(needle: bytes, offsets: list[int], data: bytes, at: int) -> int | None:
    """Where the needle begins whose block is at `at`, by the first of these offsets that fits."""
    for offset in offsets:
        if at >= offset and data.startswith(needle, at - offset):
            return at - offset
    return None


def _has_any(table: Mapping[int, object], data: bytes, width: int, code: Literal["I", "Q"]) -> bool:
    """Whether any block of the text is in the table; for most texts this is all."""
    if not table or len(data) < width:
        return False
    return not table.keys().isdisjoint(memoryview(data)[: len(data) // width * width].cast(code))


def _hits(
    table: Mapping[int, T], data: bytes, width: int, code: Literal["I", "Q"]
) -> Iterator[tuple[int, T]]:
    """Every position with a block of some needle."""
    blocks = memoryview(data)[: len(data) // width * width].cast(code)
    for index, block in enumerate(blocks):
        if block in table:
            yield index * width, table[block]


def _extended(needle: bytes, offset: int, data: bytes, at: int) -> _Piece:
    """The longest part around `at` that is also in the needle around `offset`."""
    before = _shared(
        min(offset, at),
        lambda a, b: needle[offset - b : offset - a] == data[at - b : at - a],
    )
    after = _shared(
        min(len(needle) - offset, len(data) - at),
        lambda a, b: needle[offset + a : offset + b] == data[at + a : at + b],
    )
    return _Piece(at - before, at + after, offset + after)


def _shared(high: int, issame: Callable[[int, int], bool]) -> int:
    """The length of the common part, at most `high`; in growing steps."""
    low, step = 0, 64
    while low < high:
        until = min(low + step, high)
        if issame(low, until):
            low, step = until, step * 2
        else:
            high, step = until - 1, max(1, (until - low) // 2)
    return low


def _is_varied(needle: bytes) -> bool:
    """Whether every fragment of the needle has enough different bytes."""
    parts = (needle[at : at + FRAGMENT // 2] for at in range(0, len(needle), FRAGMENT // 2))
    return all(len(set(part)) >= _VARIED or len(part) < FRAGMENT // 2 for part in parts)


_ASCII = 128
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
_DIGITS = b"0123456789abcdefABCDEF"
_NOT_BASE64 = bytes(byte for byte in range(_ASCII) if byte not in _LETTERS)
_NOT_HEX = bytes(byte for byte in range(_ASCII) if byte not in _DIGITS)
# A byte beyond ASCII stays, and ends an encoded part.
_TO_BASE64 = bytes.maketrans(b"-_", b"+/")
_TO_HEX = bytes.maketrans(b"ABCDEF", b"abcdef")


def _in_base64(needle: bytes) -> Iterator[bytes]:
    """The base64 letters that depend on the needle alone, for each of its three alignments."""
    for before in range(3):
        text = base64.b64encode(bytes(before) + needle)
        first = (8 * before + 5) // 6
        last = 8 * (before + len(needle)) // 6
        yield text[first:last]


def _kept(data: bytes, others: bytes) -> Place:
    """Maps positions among the kept bytes to positions in `data`."""
    gone = frozenset(others)
    left = [at for at, byte in enumerate(data) if byte not in gone]
    return lambda start, end: (left[start], left[end - 1] + 1)


def _merged(found: list[Found]) -> list[Found]:
    found.sort()
    merged: list[Found] = []
    for each in found:
        if merged and each.start < merged[-1].end:
            last = merged.pop()
            label = max(last.label, each.label)
            merged.append(Found(last.start, max(last.end, each.end), label))
        else:
            merged.append(each)
    return merged
