"""The messages of the commits that Windlass writes. Pure.

Law: what git reads from a message is written by Windlass alone. The trailers are the last
paragraph. What agents say stands before it, wrapped and of limited length: no line of it looks like
a trailer or ends the message for git, and a forge finds no person to call and no issue to close.

A snapshot says what its own turn's Player said: that is what this commit changes. A merge says what
was said in all turns of the task, and so does the squashed commit that is made of it.
"""

import re
import textwrap
from collections.abc import Iterator

from windlass.core.exchange import Authorship
from windlass.core.plan.names import without_calls, without_controls

MERGE = "Windlass-Merge"
"""The trailer of a squashed commit: the merge that it stands for."""

_SUBJECT, _WIDTH = 72, 72
_MOST_LINES, _MOST = 60, 4000
"""Lines, and characters, of what agents said."""
_CUT = "… the rest is in the run's log"
_ITEM = re.compile(r"^\s*(?:(?:[-*+•]|\d+[.)])\s+)?")
_FENCE = "```"
_READ_BY_GIT = re.compile(r"\s*\w+(?:-\w+)+\s*:|---|diff |index |commit [0-9a-f]{7}", re.IGNORECASE)
"""How lines begin that a program could take for a trailer, or for the end of the message."""
_MERGING = re.compile(r"(?<=: )merge ")


def commit_message(author: Authorship, run: str, *, merging: bool, co_author: str = "") -> str:
    """The message of a snapshot or a merge; `co_author` is the agent's name with its address."""
    # Git refuses some control characters, and a terminal obeys others.
    title = " ".join("".join(c if c.isprintable() else " " for c in author.title).split())
    about = f"{author.task}: " if author.task else ""
    subject = f"{about}{'merge ' if merging else ''}{title}"
    if len(subject) > _SUBJECT:
        subject = subject[: _SUBJECT - 1].rstrip() + "…"
    if not author.task:
        return f"{subject[0].upper()}{subject[1:]}\n\nWindlass-Run: {run}\n"
    trailers = {
        "Windlass-Run": run,
        "Windlass-Task": author.task,
        "Windlass-Turn": str(author.turn),
        "Windlass-Text": author.text if merging else "",
        "Co-Authored-By": co_author if author.by_agent else "",
    }
    lines = [f"{name}: {value}" for name, value in trailers.items() if value]
    body = said(author.summary)
    return "\n\n".join(filter(None, (subject, body, "\n".join(lines)))) + "\n"


def squashed_message(message: str, merge: str, *, note: str = "") -> str:
    """The message of the commit that stands for a merge, from the merge's own message."""
    subject, _, rest = message.rstrip("\n").partition("\n\n")
    body, _, trailers = rest.rpartition("\n\n")
    parts = (_MERGING.sub("", subject, count=1), body, note, f"{trailers}\n{MERGE}: {merge}")
    return "\n\n".join(filter(None, parts)) + "\n"


def said(text: str) -> str:
    """What agents said, as the body of a commit; empty if they said nothing."""
    text = without_controls(text.replace("\r\n", "\n").replace("\r", "\n")).expandtabs(4)
    lines = list(_wrapped(text[: _MOST * 2]))
    room, kept = _MOST, list[str]()
    for line in lines[:_MOST_LINES]:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    if len(kept) < len(lines):
        kept = [*"\n".join(kept).rstrip("\n").split("\n"), _CUT]
    return "\n".join(kept)


def _wrapped(text: str) -> Iterator[str]:
    """The lines, wrapped outside of code; never two empty ones in a row."""
    in_code, last = False, ""
    for line in text.strip("\n ").split("\n"):
        in_code ^= line.lstrip().startswith(_FENCE)
        for part in [line.rstrip()[:_MOST]] if in_code else _folded(line):
            shown = without_calls(f"> {part}" if _READ_BY_GIT.match(part) else part)
            if shown or last:
                yield shown
            last = shown


def _folded(line: str) -> list[str]:
    """A line as lines of at most 72 characters; the item of a list stays indented."""
    indent = " " * min(len(line) - len(_ITEM.sub("", line, count=1)), _WIDTH // 2)
    return textwrap.wrap(
        line,
        _WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]
