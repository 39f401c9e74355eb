"""Numbers as people read them, and text that cannot control a terminal or a forge."""

import re

from windlass.core.plan.names import CONTROLS, without_calls, without_terminal_codes

_CONTROL = re.compile(f"[\x00-\x1f{CONTROLS}]+")
_SHORT, _MINUTE, _HOUR, _DAY = 10, 60, 3600, 86400
_KILO = 1000
_CENT = 0.01
_SPARSE = 8
"""How many characters are read for each that is shown: blanks are dropped."""
_ODD = re.compile(f"[\x00-\x08\x0b-\x1f{CONTROLS}\ufe00-\ufe0e\ud800-\udfff\U000e0080-\U000e01ef]")
"""Characters that are invisible, that reorder others, or that are invalid."""
_SIGNS = re.compile(r"([\\`*_{}\[\]<>|#~&!$^])")
_AT_START = re.compile(r"^(\d*)([-+=:.)])")
"""What begins a list or a rule; elsewhere these characters mean nothing."""


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
    """`0m44s`, `12m04s`, `2h07m`, `3d04h`: a running time in whole seconds and few columns."""
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
    """Lines added and deleted, as signed numbers."""
    return f"+{added}", f"\N{MINUS SIGN}{deleted}"


def plural(count: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def one_line(text: str, width: int) -> str:
    """Text of an agent or a plan as one line without control characters."""
    head = text[: _SPARSE * width + _KILO]  # do not read ten megabytes to show a line
    flat = " ".join(_CONTROL.sub(" ", head).split())
    whole = len(flat) <= width and len(head) == len(text)
    return flat if whole else flat[: width - 1].rstrip() + "…"


def harmless(text: str, most: int | None = None) -> str:
    """The text with line breaks but no control characters, cut in the middle if too long."""
    kept = text
    if most is not None and len(text) > most:
        head, tail = most * 2 // 3, most // 3
        left = len(text) - head - tail
        kept = f"{text[:head]}\n… {left:,} characters are left out here …\n{text[-tail:]}"
    plain = without_terminal_codes(kept.replace("\r\n", "\n").replace("\r", "\n"))
    return _ODD.sub(lambda odd: f"\\u{ord(odd[0]):04x}", plain)


def markdown_text(text: str, width: int) -> str:
    """One line of an agent or a plan as Markdown that a forge shows literally.

    It cannot mention a person, close or link an issue, link elsewhere, or make a heading, a cell or
    a tag. A backslash escapes Markdown; a forge looks for mentions and issues in the rendered text,
    so there a zero-width space breaks the word.
    """
    escaped = _SIGNS.sub(r"\\\1", without_mentions(text, width))
    return _AT_START.sub(r"\1\\\2", escaped)


def without_mentions(text: str, width: int) -> str:
    """One line without mentions, for a title, where Markdown is not read."""
    return without_calls(one_line(text, width))


def code_span(text: str, width: int) -> str:
    """One line as code in Markdown; not for a table's cell, where a bar would end it."""
    flat = one_line(text, width)
    runs = (len(run) for run in re.findall("`+", flat))
    fence = "`" * (max(runs, default=0) + 1)
    # Markdown strips one space on both sides; it keeps a backtick off the fence.
    edge = " " if flat.startswith("`") or flat.endswith("`") or not flat else ""
    return f"{fence}{edge}{flat}{edge}{fence}"
