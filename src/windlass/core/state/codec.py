"""How a state is written down and read back, for an engine that hands it on by reference. Pure.

Law: what is read back decides as what was written. The index says nothing that the tasks do not
say, so it is found anew. A journal never needs this: it has the facts.
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
    """The state as bytes."""
    return _encoder.encode(_Record(schema=SCHEMA, state=replace(state, index=Index())))


def decode(payload: bytes) -> RunState:
    """The state that those bytes hold."""
    try:
        record = _decoder.decode(payload)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise JournalError(f"a state that cannot be read: {error}") from error
    if record.schema != SCHEMA:
        message = f"a state of version {record.schema}, and this Windlass reads {SCHEMA}"
        raise JournalError(message, hint="run it with the Windlass that wrote it")
    state = record.state
    return replace(state, index=index_of(state.plan, Phases(state.tasks)))


def _as_plain(value: object) -> object:
    """A mapping of layers as the dict that it reads as; there is nothing else to be asked about."""
    return dict(cast("Mapping[object, object]", value))


_encoder = msgspec.msgpack.Encoder(enc_hook=_as_plain)
_decoder = msgspec.msgpack.Decoder(_Record)
