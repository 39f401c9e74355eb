"""Text of agents and plans in Markdown that a forge renders: shown as it is, and obeyed nowhere.

Law: what is quoted cannot mention anybody, close or link an issue, lead elsewhere, forge a heading,
a table's cell or a tag. A backslash keeps Markdown from reading a sign; but a forge looks for
mentions and issues in what was rendered, so there a space of no width breaks the word.
"""

import re

from windlass.views.words import one_line

_APART = "\u200b"
_SIGNS = re.compile(r"([\\`*_{}\[\]()<>#+\-!|~&$=^:])")
_NUMBER = re.compile(r"^(\d+)\.")
_CALLS = re.compile(r"@(?=[\w-])|#(?=\d)|gh(?=-\d)|:(?=//)|www(?=\.)", re.IGNORECASE)


def plain(text: str, width: int) -> str:
    """One line of it, which reads as it was said."""
    return _NUMBER.sub(r"\1\\.", _SIGNS.sub(r"\\\1", apart(text, width)))


def apart(text: str, width: int) -> str:
    """One line of it that calls nobody, for where no Markdown is read: a title."""
    return _CALLS.sub(lambda found: f"{found[0]}{_APART}", one_line(text, width))


def code(text: str, width: int) -> str:
    """One line of it as code; not for a table's cell, where a bar would end it."""
    flat = one_line(text, width)
    runs = (len(run) for run in re.findall("`+", flat))
    fence = "`" * (max(runs, default=0) + 1)
    # A space on both sides is taken off again; without it a backtick at the edge would count.
    edge = " " if flat.startswith("`") or flat.endswith("`") or not flat else ""
    return f"{fence}{edge}{flat}{edge}{fence}"
