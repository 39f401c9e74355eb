"""File names, made safe for prompts, screens and lists. Pure.

A file name can be anything, also a paragraph of instructions or a sequence that moves the cursor.
Law: a name is shown as one line of visible characters. Characters that people do write, such as the
joiners of some languages, stay.
"""

import re
from collections.abc import Sequence

FORMATS = (
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
"""Characters that reverse others, end a line or are invisible, for a regex class.

All text for screens, pages and messages is cleaned of these, and of no shorter list.
"""

JOINERS = "\u200c\u200d"
"""Invisible too, but some languages are written with them: names keep them."""

_INVISIBLE = re.compile(f"[\x00-\x1f\x7f-\x9f{FORMATS}\ud800-\udfff]")
"""Characters that end a line, move the cursor, reverse others, or are invisible."""
_TERMINAL = re.compile(
    r"\x9b[0-?]*[ -/]*[@-~]?|\x1b(?:\[[0-?]*[ -/]*[@-~]?|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?"
    r"|[PX^_][^\x1b]{0,4096}(?:\x1b\\)?|[ -/]*[0-~]?)"
)
"""Sequences that a program sends to a terminal: colours, titles, cursor moves."""
CONTROLS = f"\x7f-\x9f{FORMATS}{JOINERS}"
"""Characters that no screen may receive, for a regex class; add `\\x00-\\x1f`."""
_CALLS = re.compile(r"@(?=[\w-])|#(?=\d)|gh(?=-\d)|:(?=//)|:(?=[\w+-]+:)|www(?=\.)", re.IGNORECASE)
"""What a forge turns into a mention, a reference, a link or an emoji after rendering."""
_CONTROLS = re.compile(f"[\x00-\x08\x0b-\x1f{CONTROLS}\ud800-\udfff]")


def escaped(name: str) -> str:
    """The name with its invisible characters escaped: a line break becomes a backslash and an n."""
    return _INVISIBLE.sub(_escape, name)


def escaped_text(text: str) -> str:
    """The text with its invisible characters escaped; line ends and tabs stay."""
    return _CONTROLS.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def without_terminal_codes(text: str) -> str:
    """The text without terminal sequences."""
    return _TERMINAL.sub("", text)


def without_controls(text: str, instead: str = "") -> str:
    """The text without terminal sequences and invisible characters; line ends and tabs stay."""
    return _CONTROLS.sub(instead, without_terminal_codes(text))


def without_calls(text: str) -> str:
    """The text in which a forge finds no person to call and no issue to link or close.

    A zero-width space breaks what would be a mention or a reference.
    """
    return _CALLS.sub(lambda found: f"{found[0]}\u200b", text)


def some(names: Sequence[str], most: int) -> str:
    """The first `most` names, and how many more there are."""
    named = ", ".join(names[:most])
    return named if len(names) <= most else f"{named} and {len(names) - most:,} more"
