"""The encoding of a fact as a record of the journal. Pure.

Rule 1: a fact that would not decode to itself is never written. Rule 2: every record names the
schema it was written in, so one journal may hold records of several versions. SCHEMA goes up with
every new type or field; add an upcaster where an old record must change to be read. Rule 3: the
hash of a record covers all records before it.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from windlass.core.events.model import Event
from windlass.errors import JournalError, JournalTooNew

SCHEMA = 1
"""The version of what `encode` writes."""

GENESIS = bytes(hashlib.sha256().digest_size)
"""What the first record is chained to."""

Upcaster: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Turns a fact as JSON of one schema into the same fact of the next."""

UPCASTERS: Mapping[int, Upcaster] = {}
"""By the schema they start from; a schema that only adds types or fields needs none."""


class _Record(Struct, frozen=True, kw_only=True):
    schema: Annotated[int, Meta(ge=0)]
    event: Raw


_encoder = msgspec.json.Encoder(order="deterministic")
_records = msgspec.json.Decoder(_Record)
_events: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode(event: Event) -> bytes:
    """The fact as bytes; the same fact always gives the same bytes."""
    try:
        raw = _encoder.encode(event)
        # JSON has no NaN and no lone surrogates, and a struct does not validate its values.
        # One unreadable record would make all records after it unreadable.
        same = _events.decode(raw) == event
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise JournalError(f"{_kind(event)} cannot be encoded: {error}") from error
    if not same:
        raise JournalError(f"{_kind(event)} would not read back as it was written")
    return _encoder.encode(_Record(schema=SCHEMA, event=Raw(raw)))


def decode(payload: bytes, *, upcasters: Mapping[int, Upcaster] = UPCASTERS) -> Event:
    """The fact in these bytes. The caller, which knows their position, reports the damage."""
    try:
        record = _records.decode(payload)
        if record.schema > SCHEMA:
            raise too_new("a record", record.schema)
        if record.schema == SCHEMA:
            return _events.decode(record.event)
        fact = msgspec.json.decode(record.event, type=dict[str, Any])
        for schema in range(record.schema, SCHEMA):
            fact = upcasters.get(schema, _unchanged)(fact)
        return msgspec.convert(fact, Event)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise JournalError(f"a record that cannot be read: {error}") from error


def chain(previous_hash: bytes, payload: bytes) -> bytes:
    """The hash of a record that follows the one of `previous_hash`."""
    return hashlib.sha256(previous_hash + payload).digest()


def too_new(what: str, schema: int) -> JournalTooNew:
    """The error for data of a newer Windlass; a flipped bit can look the same."""
    return JournalTooNew(
        f"{what} is of version {schema} and this Windlass reads up to version {SCHEMA}",
        hint="upgrade windlass; if no newer version was ever used here, it is damaged and"
        " `windlass recover PLAN --force` rebuilds it from what git holds",
    )


def _kind(event: Event) -> str:
    return type(event).__name__


def _unchanged(fact: dict[str, Any]) -> dict[str, Any]:
    return fact
