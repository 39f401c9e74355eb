"""A state file as JSON that people can read, with nothing secret in it."""

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from windlass.dialects.dialect import Redact
from windlass.state import RunState


class Stamp(Struct, frozen=True, kw_only=True):
    """Which run a state file was made from, and how far it had come."""

    run: str
    seq: int
    stale: tuple[str, ...] | UnsetType = UNSET
    """The tasks that were merged for an older text of the plan; only there where there are any."""


STALE = "stale: merged for an older text of the plan"
"""What a state file says of such a task where it has room for an error."""


def stamp_of(state: RunState, seq: int) -> Stamp:
    """The stamp of a state file that is made from this state."""
    return Stamp(run=state.run, seq=seq, stale=state.stale or UNSET)


def rendered(told: Struct, redact: Redact) -> str:
    """The file's text. What is redacted are its values, before JSON writes quotes into them."""
    clean = _redacted(msgspec.to_builtins(told), redact)
    return msgspec.json.format(msgspec.json.encode(clean), indent=2).decode() + "\n"


def _redacted(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _redacted(each, redact) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [_redacted(each, redact) for each in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def utc(at: datetime) -> str:
    """A moment as other tools write it: 2026-01-23T14:30:00Z."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
