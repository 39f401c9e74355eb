"""Numbers as people read them, and text that cannot move the cursor."""

import re

from windlass.plan.names import FORMATS, JOINERS

_CONTROL = re.compile(f"[\x00-\x1f\x7f-\x9f{FORMATS}{JOINERS}]+")
_SHORT, _MINUTE, _HOUR, _DAY = 10, 60, 3600, 86400
_KILO = 1000
_CENT = 0.01
_SPARSE = 8
"""How much of a text may be blank before less of it is shown than there is room for."""
_MARKS = re.compile(r"([\\`*_{}\[\]<>|#~&!])")
_CALLS = re.compile(r"([@#]|GH-|://)(?=[\w/])", re.IGNORECASE)
"""What a forge makes a mention, a reference or a link of, which may tell people or close issues."""


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


def clock(seconds: float) -> str:
    """`0m44s`, `12m04s`, `2h07m`, `3d04h`: what goes on, in whole seconds and few columns."""
    whole = int(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE}m{whole % _MINUTE:02d}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h{whole % _HOUR // _MINUTE:02d}m"
    return f"{whole // _DAY}d{whole % _DAY // _HOUR:02d}h"


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


def more_and_less(added: int, deleted: int) -> tuple[str, str]:
    """Lines that came and lines that went, as signed numbers."""
    return f"+{added}", f"\N{MINUS SIGN}{deleted}"


def plural(count: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def one_line(text: str, width: int) -> str:
    """Text by an agent or a plan as one harmless line."""
    head = text[: _SPARSE * width + _KILO]  # of ten megabytes no more than may be shown is read
    flat = " ".join(_CONTROL.sub(" ", head).split())
    whole = len(flat) <= width and len(head) == len(text)
    return flat if whole else flat[: width - 1].rstrip() + "…"


def markdown_line(text: str, width: int) -> str:
    """Text by an agent or a plan as a line that Markdown shows as it is, and that calls nobody."""
    apart = _CALLS.sub("\\1\u200b", one_line(text, width))
    return _MARKS.sub(r"\\\1", apart).replace("\u200b", "&#8203;")
