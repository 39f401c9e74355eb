"""The encoding of a state, for an engine that passes it on as bytes. Pure.

Law: a decoded state leads to the same decisions. The index is not encoded, since it follows from
the tasks. A journal never needs this: it has the facts.
"""

from collections.abc import Mapping
from typing import cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from windlass.core.state.index import Index, index_of
from windlass.core.state.model import Phases, RunState
from windlass.errors import JournalError

SCHEMA = 1
"""The version of what `encode` writes."""


class _Record(Struct, frozen=True, kw_only=True):
    schema: int
    state: RunState


def encode(state: RunState) -> bytes:
    return _encoder.encode(_Record(schema=SCHEMA, state=replace(state, index=Index())))


def decode(payload: bytes) -> RunState:
    try:
        record = _decoder.decode(payload)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise JournalError(f"a state that cannot be read: {error}") from error
    if record.schema != SCHEMA:
        message = f"a state of version {record.schema}; this Windlass reads version {SCHEMA}"
        raise JournalError(message, hint="use the version of Windlass that wrote it")
    state = record.state
    return replace(state, index=index_of(state.plan, Phases(state.tasks)))


def _as_plain(value: object) -> object:
    """A Layered mapping as a dict; the encoder asks about no other type."""
    return dict(cast("Mapping[object, object]", value))


_encoder = msgspec.msgpack.Encoder(enc_hook=_as_plain)
_decoder = msgspec.msgpack.Decoder(_Record)
