"""Names as the least careful file system reads them: two names here may be one elsewhere.

A commit is made on one machine and checked out on others, of which some tell no case apart, leave
out marks that nobody sees, or drop a dot at the end.
"""

import re
import unicodedata

OWN = ".windlass"
"""Where Windlass keeps its own, at the root of the user's checkout."""

_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0") | {
    chr(code) for code in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
}
"""Unseen marks, beside those that Unicode calls formats: git's own list is among both."""

_SHORT = re.compile(r"(git|gitmod|gitatt|gitign|windla)~[1-9][0-9]*")
_LONG = {
    "git": ".git",
    "gitmod": ".gitmodules",
    "gitatt": ".gitattributes",
    "gitign": ".gitignore",
    "windla": OWN,
}
"""Windows knows a file under a short name as well, in which its dot is left out."""


def folded(name: str) -> str:
    """The same for all names that could be one to some file system."""
    if not name.isascii():
        decomposed = unicodedata.normalize("NFD", name)
        name = "".join(mark for mark in decomposed if not _is_unseen(mark))
    # Windows takes a colon for the begin of a stream of the file, and a backslash for a slash.
    name = re.split(r"[:\\]", name, maxsplit=1)[0].casefold().rstrip(". ")
    short = _SHORT.fullmatch(name)
    return _LONG[short[1]] if short is not None else name


def _is_unseen(mark: str) -> bool:
    return mark in _UNSEEN or unicodedata.category(mark) == "Cf"
