"""State files as JSON: written readably and without secrets, and read as claims.

Law: a file has the fields of its own tool and no others, because a strict reader refuses more. The
journal position that it was made from is noted beside the run (`adapters/projections.py`).

What a state file says is only a claim. Windlass never reads its own files back, and `adopt`
verifies the claims of other tools in git.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

Redact: TypeAlias = Callable[[str], str]

STALE = "stale: merged for an older text of the plan"
"""What a state file says of a stale task where it has room for an error."""


class Claim(Struct, frozen=True, kw_only=True):
    """What a file says about one task."""

    status: str
    """In the other tool's own words."""
    done: bool
    commits: tuple[str, ...] = ()
    """The commits that it names for the work."""


class Claims(Struct, frozen=True, kw_only=True):
    """What a state file says."""

    plan: str
    """Where the plan lies, as the file says; empty where it does not."""
    tasks: Mapping[str, Claim]


def rendered(file: Struct, redact: Redact) -> str:
    """The file's text. Values are redacted before JSON adds escapes to them."""
    clean = _redacted(msgspec.to_builtins(file), redact)
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
    """A time as other tools write it: 2026-01-23T14:30:00Z."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def workspaces_of(plan: str) -> str:
    """The folder of a plan's workspaces, below the repository."""
    return f".windlass/plans/{plan}/workspaces"


def json_object(text: str) -> dict[str, Any] | None:
    """The JSON object in the text; None where it is none, or is nested too deep."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return found if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType]


def as_list(value: object) -> list[Any]:
    """A list; empty for any other value."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def as_texts(value: object) -> tuple[str, ...]:
    """The texts of a list, without its other values."""
    return tuple(item for item in as_list(value) if isinstance(item, str))


def as_mapping(value: object) -> dict[str, Any]:
    """A mapping; empty for any other value."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def as_text(value: object) -> str:
    """A text; empty for any other value."""
    return value if isinstance(value, str) else ""
