"""What another tool's state file claims about tasks. Claims only: git has the last word on them."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct


class Claim(Struct, frozen=True, kw_only=True):
    """What is said of one task."""

    status: str
    """In the other tool's own words."""
    done: bool
    commits: tuple[str, ...] = ()
    """The commits that are said to hold its work."""


class Claims(Struct, frozen=True, kw_only=True):
    """What a state file says."""

    plan: str
    """Where the plan lies, as the file says; empty where it does not."""
    tasks: Mapping[str, Claim]


def json_object(text: str) -> dict[str, Any] | None:
    """The object that the text is; None where it is none, or nested beyond reason."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return found if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType]


def as_texts(value: object) -> tuple[str, ...]:
    """The texts of a list, whatever else may stand in it."""
    items: list[Any] = value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]
    return tuple(item for item in items if isinstance(item, str))


def as_mapping(value: object) -> dict[str, Any]:
    """A mapping, or none."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def as_text(value: object) -> str:
    """A text, or none."""
    return value if isinstance(value, str) else ""
