"""Names as the least careful file system reads them: two names here may be one elsewhere.

A commit is made on one machine and checked out on others, of which some tell no case apart, leave
out marks that nobody sees, or drop a dot at the end.
"""

import unicodedata

OWN = ".windlass"
"""Where Windlass keeps its own, at the root of the user's checkout."""

_UNSEEN = frozenset("\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\ufeff") | {
    chr(code) for code in range(0x206A, 0x2070)
}
"""What some file systems pass over in a name; git's own list."""


def folded(name: str) -> str:
    """The same for all names that could be one to some file system."""
    if not name.isascii():
        decomposed = unicodedata.normalize("NFD", name)
        name = "".join(mark for mark in decomposed if mark not in _UNSEEN)
    return name.casefold().rstrip(". ")
