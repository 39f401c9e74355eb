"""Values as lines of YAML that every reader takes for the same: old or new, strict or not."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

Value = str | int | datetime | None | Sequence["Value"] | Mapping[str, "Value"]
"""What can be written."""

# Words only, and none that some YAML takes for a number, a truth, nothing or a date.
_PLAIN = re.compile(r"[A-Za-z./][A-Za-z0-9_./-]*")
_NOT_PLAIN = re.compile(
    r"true|false|null|yes|no|on|off|y|n|\.inf|\.nan|\.+|\.[0-9e].*", re.IGNORECASE
)
# What JSON leaves as it is and YAML takes for a line's end, or for nothing that can be printed.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def lines_of(values: Mapping[str, Value]) -> list[str]:
    """The lines of these keys with their values."""
    lines: list[str] = []
    for key, value in values.items():
        if is_nested(value):
            lines += [f"{_text(key)}:", *(f"  {line}" for line in _nested(value))]
        else:
            lines.append(f"{_text(key)}: {scalar(value)}")
    return lines


def _nested(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return lines_of(value)  # pyright: ignore[reportUnknownArgumentType]
    lines: list[str] = []
    for item in value:
        first, *rest = _nested(item) if is_nested(item) else [scalar(item)]
        lines += [f"- {first}", *(f"  {line}" for line in rest)]
    return lines


def is_nested(value: Value) -> bool:
    """Whether the value needs lines of its own."""
    return isinstance(value, Mapping | Sequence) and not isinstance(value, str) and bool(value)


def scalar(value: Value) -> str:
    """A value that goes beside its key."""
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return str(value).lower()
    return "null" if value is None else "{}" if isinstance(value, Mapping) else "[]"


def _text(value: str) -> str:
    if _PLAIN.fullmatch(value) and not _NOT_PLAIN.fullmatch(value):
        return value
    return _UNPRINTABLE.sub(
        lambda char: f"\\u{ord(char[0]):04x}", json.dumps(value, ensure_ascii=False)
    )
