"""Segments of the journal's mirror in git: one line for each record, and a last line with a hash.

Rule 1: the records are the exact bytes of the journal, so a restored journal is the same journal.
Rule 2: a segment ends with its last position and the journal's hash there, so any prefix of the
mirror can be verified and a missing or changed segment is detected. Pure.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from windlass.core.events import codec
from windlass.errors import JournalDamaged, JournalError

SEGMENT_BYTES = 256 * 1024
"""A segment ends at this size, so that no git object grows with the journal."""

_END = b"#"


class Mark(NamedTuple):
    """A position in a journal, and the hash of all records up to it."""

    seq: int = 0
    hash: bytes = codec.GENESIS

    def after(self, payloads: Iterable[bytes]) -> "Mark":
        """The mark after these records."""
        mark = self
        for payload in payloads:
            mark = Mark(mark.seq + 1, codec.chain(mark.hash, payload))
        return mark


def write(plan_id: str, payloads: Sequence[bytes], begin: Mark) -> tuple[bytes, Mark]:
    """The text of the records that follow a mark, and the mark after them."""
    end = begin.after(payloads)
    title = f"{_title(plan_id)}{begin.seq + 1} to {end.seq}\n".encode()
    return b"\n".join((title, *payloads, _proof(end), b"")), end


def read(text: bytes, begin: Mark) -> tuple[list[bytes], Mark]:
    """The records of a segment that follows a mark, and the mark after them.

    Raises JournalError if the hash does not match.
    """
    *payloads, proof = text.partition(b"\n\n")[2].split(b"\n")[:-1] or [b""]
    end = begin.after(payloads)
    if proof != _proof(end):
        raise JournalError(f"the records after {begin.seq} do not match their hash")
    return payloads, end


def assemble(plan_id: str, texts: Iterable[bytes]) -> tuple[list[bytes], Mark]:
    """The longest verified journal that these segments of a plan make up.

    They may be in any order; other texts among them are skipped.
    """
    title = _title(plan_id).encode()
    starts: dict[bytes, list[bytes]] = {}
    for text in texts:
        if text.startswith(title):
            starts.setdefault(text[len(title) :].partition(b" ")[0], []).append(text)
    payloads, mark = list[bytes](), Mark()
    while found := list(_following(starts.pop(b"%d" % (mark.seq + 1), []), mark)):
        more, mark = max(found, key=lambda one: one[1].seq)
        payloads += more
    return payloads, mark


def _following(texts: Iterable[bytes], begin: Mark) -> Iterator[tuple[list[bytes], Mark]]:
    for text in texts:
        with suppress(JournalError):
            yield read(text, begin)


def _title(plan_id: str) -> str:
    return f"Journal of {plan_id}: records "


def _proof(end: Mark) -> bytes:
    return b"%s %d %s" % (_END, end.seq, end.hash.hex().encode())


def end_of(text: bytes) -> Mark:
    """The mark that a segment claims to end with. Raises JournalError."""
    proof = text.rstrip(b"\n").rpartition(b"\n")[2]
    try:
        seq, digest = proof.removeprefix(_END + b" ").split(b" ")
        return Mark(int(seq), bytes.fromhex(digest.decode()))
    except ValueError as error:
        raise JournalError("a segment without its hash") from error


def split(payloads: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """The records in segments of a bounded size; a single record may be larger."""
    start = size = 0
    for at, payload in enumerate(payloads, start=1):
        size += len(payload)
        if size >= SEGMENT_BYTES or at == len(payloads):
            yield payloads[start:at]
            start, size = at, 0


def behind(plan_id: str, last: int, until: int) -> JournalDamaged:
    """The error for a journal that ends before its mirror does."""
    return JournalDamaged(
        f"the journal of {plan_id!r} is behind: it ends at {last}, its mirror in git at {until}",
        position=last + 1,
        why="it was cut short or restored from an old copy",
    )


def refuse_other(plan_id: str, records: Sequence[bytes], mirror: Mark) -> None:
    """Refuse a journal that is behind its mirror or differs from it; a cut log opens cleanly."""
    if mirror.seq > len(records):
        raise behind(plan_id, len(records), mirror.seq)
    if Mark().after(records[: mirror.seq]) != mirror:
        raise JournalDamaged(
            f"the journal of {plan_id!r} is not the one that is mirrored in git",
            position=0,
            why="another journal was put in its place",
        )
