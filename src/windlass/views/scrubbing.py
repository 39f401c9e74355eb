"""What of a record strangers may read: its shape and its numbers, not its words.

Law: what is kept is listed, and all else is replaced by its length; so a field that is added later
and forgotten here is not given away. What is kept still passes the redactor, and names no person
and no place of theirs.
"""

import re
from collections.abc import Callable, Mapping
from typing import cast

from windlass.core.secrets import KEPT
from windlass.views.words import one_line

LISTED = KEPT | frozenset({
    # When, who as a part in the play, and where in the repository.
    "at", "created", "deleted", "dialect", "file", "files", "id", "path", "role", "touched", "type",
    "until", "unshown", "retry_at", "waits_for", "waits_until", "merged", "commits", "integration",
    "plan", "ts",
    # What failures say of themselves, and the commands they are about: most of what helps.
    "checks", "command", "message", "reason", "read", "env", "setup", "inputs", "keep",
    "depends_on",
})  # fmt: skip
"""Fields whose words are kept, redacted and cut to a line."""

PEOPLE = "by"
"""A field that names who asked for something: a command of ours, or a person."""

_WIDTH = 300
_WORD = re.compile(r"[\w.-]+")

Clean = Callable[[str], str]


def scrubbed(value: object, clean: Clean, *, field: str = "", texts: bool = False) -> object:
    """Plain data without what strangers need not know; with `texts`, its words are kept too."""
    if isinstance(value, str):
        return _kept(value, field, clean, texts=texts)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return {clean(key): scrubbed(item, clean, field=key, texts=texts) for key, item in items}
    if isinstance(value, list | tuple):
        each = cast("list[object]", value)
        return [scrubbed(item, clean, field=field, texts=texts) for item in each]
    return value


def _kept(text: str, field: str, clean: Clean, *, texts: bool) -> str:
    if texts:
        return clean(text)
    if field in LISTED:
        # Redacted first, for half a secret could not be told from any word. What comes after the
        # first line is quoted text.
        first = next((line for line in clean(text).splitlines() if line.strip()), "")
        return one_line(first, _WIDTH)
    if field == PEOPLE:
        return text if text.startswith("windlass ") else "a person"
    return f"[{len(text)} characters]" if text else ""


def impersonal(text: str, names: Mapping[str, str]) -> str:
    """The text with each of these names replaced, the longest first; one word as a whole word."""
    for name in sorted(names, key=len, reverse=True):
        if _WORD.fullmatch(name):
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", lambda _, n=name: names[n], text)
        else:
            text = text.replace(name, names[name])
    return text
