"""Names as they may be told. Pure.

A file may be called anything, a paragraph of instructions or what moves a cursor among it, and its
name is told in prompts, on screens and in lists. Law: a name that is told is one line of what can
be seen. What people do write, joined letters of their languages for one, stays as it is.
"""

import re
from collections.abc import Sequence

FORMATS = (
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
"""Letters that turn others around, end a line or are not seen, for a class of a pattern.

All text that is made safe for screens, pages and messages is rid of these, and of no shorter list.
"""

JOINERS = "\u200c\u200d"
"""Unseen as well, but part of how some languages are written: names keep them."""

_UNSEEN = re.compile(f"[\x00-\x1f\x7f-\x9f{FORMATS}\ud800-\udfff]")
"""What ends a line, moves a cursor, turns letters around, or is not seen at all."""
_TERMINAL = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?"
    r"|[PX^_][^\x1b]{0,4096}(?:\x1b\\)?|[ -/]*[0-~]?)"
)
"""Sequences that a program sends to a terminal: colours, titles, cursor moves."""
CONTROLS = f"\x7f-\x9f{FORMATS}{JOINERS}"
"""Characters that no screen may receive, for a class of a pattern; `\\x00-\\x1f` come on top."""
_CONTROLS = re.compile(f"[\x00-\x08\x0b-\x1f{CONTROLS}]")


def told(name: str) -> str:
    """The name with its unseen characters written out, a line break as a backslash and an n."""
    return _UNSEEN.sub(lambda unseen: unseen[0].encode("unicode_escape").decode(), name)


def without_terminal_codes(text: str) -> str:
    """The text without the sequences that a program sends to a terminal."""
    return _TERMINAL.sub("", text) if "\x1b" in text else text


def without_controls(text: str, instead: str = "") -> str:
    """The text without terminal sequences and unseen characters; line ends and tabs stay."""
    return _CONTROLS.sub(instead, without_terminal_codes(text))


def some(names: Sequence[str], most: int) -> str:
    """So many of them, and how many more there are."""
    named = ", ".join(names[:most])
    return named if len(names) <= most else f"{named} and {len(names) - most:,} more"
