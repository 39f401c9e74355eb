"""The text in which records of a journal are kept in git: a line each, and a line that proves them.

Rule 1: the records are the very bytes of the journal, so that a journal that is read back is the
same journal. Rule 2: a segment ends with its last position and the journal's hash there, so that a
beginning of the mirror proves itself and a segment that is missing or was changed is noticed. Pure.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from windlass.core.events import codec
from windlass.errors import JournalDamaged, JournalError

SEAL_BYTES = 16 * 1024
"""A segment that has reached this size is sealed, and the next one begins."""
FAN = 16
"""So many sealed segments of one level are joined into one of the next."""
LEVELS = 3
"""Levels 0, 1 and 2: segments of about 16 KiB, 256 KiB and 4 MiB."""

_END = b"#"


class Mark(NamedTuple):
    """A position in a journal, and the hash of everything up to it."""

    seq: int = 0
    hash: bytes = codec.GENESIS

    def after(self, payloads: Iterable[bytes]) -> "Mark":
        """The mark that these records lead to."""
        mark = self
        for payload in payloads:
            mark = Mark(mark.seq + 1, codec.chain(mark.hash, payload))
        return mark


class Segment(NamedTuple):
    """A sealed segment: which records it holds, and the object that holds them."""

    first: int
    last: int
    level: int
    blob: str

    @property
    def name(self) -> str:
        """Its name in the tree; in the order of names the segments are in the order of records."""
        return f"{self.first:09d}-{self.last:09d}.{self.level}"


def segment_named(name: str, blob: str) -> Segment:
    """The segment of that name. Raises JournalError where the name is none."""
    try:
        records, level = name.split(".")
        first, last = records.split("-")
        return Segment(int(first), int(last), int(level), blob)
    except ValueError as error:
        raise JournalError(f"{name!r} is no segment of a journal") from error


def write(payloads: Sequence[bytes], end: Mark) -> bytes:
    """The text of these records; `end` is the mark they lead to."""
    proof = b"%s %d %s" % (_END, end.seq, end.hash.hex().encode())
    return b"".join(line + b"\n" for line in (*payloads, proof))


def read(text: bytes, begin: Mark) -> tuple[list[bytes], Mark]:
    """The records of a segment that follows a mark, and the mark they lead to.

    Raises JournalError where they do not prove themselves.
    """
    *payloads, proof = text.split(b"\n")[:-1] or [b""]
    end = begin.after(payloads)
    if proof != b"%s %d %s" % (_END, end.seq, end.hash.hex().encode()):
        raise JournalError(f"the records after {begin.seq} are not what their hash says")
    return payloads, end


def end_of(text: bytes) -> Mark:
    """The mark that a segment ends with, as it says itself. Raises JournalError."""
    proof = text.rstrip(b"\n").rpartition(b"\n")[2]
    try:
        seq, digest = proof.removeprefix(_END + b" ").split(b" ")
        return Mark(int(seq), bytes.fromhex(digest.decode()))
    except ValueError as error:
        raise JournalError("a segment without its hash") from error


def joined(texts: Sequence[bytes]) -> bytes:
    """One segment made of several that follow each other."""
    inner = [text[: text.rstrip(b"\n").rfind(b"\n") + 1] for text in texts[:-1]]
    return b"".join((*inner, *texts[-1:]))


def full_level(segments: Sequence[Segment]) -> int | None:
    """The level whose newest segments are to be joined now, if any."""
    level = segments[-1].level if segments else LEVELS
    of_level = [segment for segment in segments[-FAN:] if segment.level == level]
    return level if len(of_level) == FAN and level + 1 < LEVELS else None


def behind(plan_id: str, last: int, until: int) -> JournalDamaged:
    """The refusal of a journal that ends before its mirror does."""
    return JournalDamaged(
        f"the journal of {plan_id!r} is behind: it ends at {last}, its mirror in git at {until}",
        position=last + 1,
        why="it was cut short or restored from an old copy",
    )


def refuse_other(plan_id: str, records: Sequence[bytes], mirror: Mark) -> None:
    """A journal that is behind its mirror has lost its end (a cut log opens clean)."""
    if mirror.seq > len(records):
        raise behind(plan_id, len(records), mirror.seq)
    if Mark().after(records[: mirror.seq]) != mirror:
        raise JournalDamaged(
            f"the journal of {plan_id!r} is not the one that git has a mirror of",
            position=0,
            why="it was put in the place of another",
        )
