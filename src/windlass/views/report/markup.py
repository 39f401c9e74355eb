"""HTML that cannot be broken by what it shows.

Law: what is not made by `tag` is text, and is escaped. Text by an agent, a plan or a check is first
made harmless: what moves a cursor or turns letters around is shown as what it is, not obeyed.
"""

import html
import re
from collections.abc import Iterable

from windlass.plan.names import FORMATS, JOINERS

_TERMINAL = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?"
    r"|[PX^_][^\x1b]{0,4096}(?:\x1b\\)?|[ -/]*[0-~]?)"
)
"""What a program tells a terminal: colours, titles, places to go."""
_ODD = re.compile(
    f"[\x00-\x08\x0b-\x1f\x7f-\x9f{FORMATS}{JOINERS}\ufe00-\ufe0e\ud800-\udfff\U000e0080-\U000e01ef]"
)
"""Letters that are not seen, that turn others around, or that are none at all."""

_VOID = frozenset({"meta"})
"""Elements that have no end."""


class Markup(str):
    """A piece of HTML."""

    __slots__ = ()


Content = str | Iterable["Content"] | None
"""Pieces of HTML, text, and nothing, in any order."""

Value = str | float | bool | None


def harmless(text: str, most: int) -> str:
    """The text with line breaks and no other power, cut in its middle where it is too long."""
    kept = text
    if len(text) > most:
        head, tail = most * 2 // 3, most // 3
        left = len(text) - head - tail
        kept = f"{text[:head]}\n… {left:,} characters are left out here …\n{text[-tail:]}"
    plain = _TERMINAL.sub("", kept.replace("\r\n", "\n").replace("\r", "\n"))
    return _ODD.sub(lambda odd: f"\\u{ord(odd[0]):04x}", plain)


def tag(name: str, /, *content: Content, **attributes: Value) -> Markup:
    """An element; `class_` is the attribute `class`, and `data_x` is `data-x`.

    An attribute that is None or False is left out, one that is True has no value.
    """
    told = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{told}>")
    return Markup(f"<{name}{told}>{flat(content)}</{name}>")


def raw(text: str) -> Markup:
    """Text of our own that is HTML already."""
    return Markup(text)


def flat(content: Content) -> Markup:
    """All of it in one piece."""
    if content is None:
        return Markup()
    if isinstance(content, Markup):
        return content
    if isinstance(content, str):
        return Markup(html.escape(harmless(content, len(content)), quote=False))
    return Markup("".join(flat(each) for each in content))


def _attribute(key: str, value: Value) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    told = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return f' {name}="{html.escape(harmless(told, len(told)), quote=True)}"'
