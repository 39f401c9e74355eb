"""How a fact is written down, and read back for as long as there are journals. Pure.

Rule 1: what does not read back as the same fact is never written. Rule 2: every record names the
schema it was written in, so that one journal may hold the records of several versions; SCHEMA goes
up with every new type or field, and an upcaster is added where an old record must change to be
read. Rule 3: the hash of a record covers all records before it.
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
"""By the schema they start from; a schema that only added something needs none."""


class _Record(Struct, frozen=True, kw_only=True):
    schema: Annotated[int, Meta(ge=0)]
    event: Raw


_encoder = msgspec.json.Encoder(order="deterministic")
_records = msgspec.json.Decoder(_Record)
_events: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode(event: Event) -> bytes:
    """The fact as bytes, always the same for the same fact."""
    try:
        raw = _encoder.encode(event)
        # JSON has no NaN and no half characters, and a struct does not check what it is given;
        # a record nobody can read would make all after it unreadable too.
        same = _events.decode(raw) == event
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise JournalError(f"{_kind(event)} cannot be written down: {error}") from error
    if not same:
        raise JournalError(f"{_kind(event)} would not read back as it was written")
    return _encoder.encode(_Record(schema=SCHEMA, event=Raw(raw)))


def decode(payload: bytes, *, upcasters: Mapping[int, Upcaster] = UPCASTERS) -> Event:
    """The fact those bytes hold; whoever knows where they lie says what is damaged."""
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
    """The refusal of something written by a newer Windlass; a flipped bit may say so as well."""
    return JournalTooNew(
        f"{what} is of version {schema} and this Windlass reads up to version {SCHEMA}",
        hint="upgrade windlass; where no newer one was ever used here it is damaged, and"
        " `windlass recover PLAN --force` rebuilds it from what git holds",
    )


def _kind(event: Event) -> str:
    return type(event).__name__


def _unchanged(fact: dict[str, Any]) -> dict[str, Any]:
    return fact
