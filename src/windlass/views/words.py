"""Numbers as people read them, and text that cannot move the cursor."""

import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]+")
_SHORT, _MINUTE, _HOUR = 10, 60, 3600
_KILO = 1000
_CENT = 0.01


def duration(seconds: float) -> str:
    """`0.4s`, `44s`, `6m12s`, `2h07m31s`."""
    if round(seconds, 1) < _SHORT:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m{whole % _MINUTE:02d}s"
    return f"{whole // _HOUR}h{whole % _HOUR // _MINUTE:02d}m{whole % _MINUTE:02d}s"


def tokens(count: int) -> str:
    """`950`, `4.2k`, `4.1M`."""
    if count < _KILO:
        return str(count)
    if round(count / _KILO, 1) < _KILO:
        return f"{count / _KILO:.1f}k"
    return f"{count / _KILO / _KILO:.1f}M"


def money(usd: float, *, known: bool = True) -> str:
    """`$0.61`, or `$0.61+` where some of it is unknown."""
    digits = 4 if 0 < usd < _CENT else 2
    return f"${usd:.{digits}f}{'' if known else '+'}"


def plural(count: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def one_line(text: str, width: int) -> str:
    """Text by an agent or a plan as one harmless line."""
    flat = " ".join(_CONTROL.sub(" ", text).split())
    return flat if len(flat) <= width else flat[: width - 1].rstrip() + "…"
