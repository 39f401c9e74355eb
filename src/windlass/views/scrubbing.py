"""The part of a record that strangers may read: its structure and its numbers, not its texts.

Law: kept fields are listed, and every other text is replaced by its length. So a field that is
added later and forgotten here is not disclosed. Kept texts still pass the redactor, and name no
person and no folder of theirs.
"""

import re
from collections.abc import Callable, Mapping
from typing import cast

from windlass.core.secrets import KEPT
from windlass.views.words import one_line

LISTED = KEPT | frozenset({
    # Times, roles, and places in the repository.
    "at", "created", "deleted", "dialect", "file", "files", "id", "path", "role", "touched", "type",
    "until", "unshown", "retry_at", "waits_for", "waits_until", "merged", "commits", "integration",
    "plan", "ts",
    # The messages of failures and their commands, which help most.
    "checks", "command", "message", "reason", "read", "env", "setup", "inputs", "keep",
    "depends_on",
})  # fmt: skip
"""Fields whose texts are kept, redacted and cut to a line."""

PEOPLE = "by"
"""A field that names who asked for something: a command of Windlass, or a person."""

_WIDTH = 300
_WORD = re.compile(r"[\w.-]+")

Clean = Callable[[str], str]


def scrubbed(value: object, clean: Clean, *, field: str = "", texts: bool = False) -> object:
    """Plain data without private texts; with `texts`, all texts are kept."""
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
        # Redacted before it is cut: half a secret cannot be recognised. Text after the first line
        # is quoted.
        first = next((line for line in clean(text).splitlines() if line.strip()), "")
        return one_line(first, _WIDTH)
    if field == PEOPLE:
        return text if text.startswith("windlass ") else "a person"
    return f"[{len(text)} characters]" if text else ""


def impersonal(text: str, names: Mapping[str, str]) -> str:
    """The text with these names replaced, the longest first; a single word only as a whole."""
    for name in sorted(names, key=len, reverse=True):
        if _WORD.fullmatch(name):
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", lambda _, n=name: names[n], text)
        else:
            text = text.replace(name, names[name])
    return text
