"""What the parts of a page share: status words with their colours, texts with their bounds."""

import re
from collections.abc import Sequence

from windlass.events.model import CheckResult, Outcome
from windlass.ports import Change
from windlass.views.report.gather import lines_of
from windlass.views.report.markup import Markup, harmless, tag
from windlass.views.words import more_and_less, one_line, plural

TITLE, TEXT, LONG = 200, 4_000, 12_000
"""How many letters are shown of a title, of what somebody says, of what a program printed."""

TONES = {
    "completed": "good",
    "merging": "good",
    "verified": "good",
    "in_progress": "work",
    "verifying": "work",
    "pending": "none",
    "failed": "warn",
    "paused": "warn",
    "stopped": "warn",
    "interrupted": "warn",
    "needs_human": "you",
    "stale": "you",
    "abandoned": "bad",
    "blocked": "bad",
    "withdrawn": "none",
}
"""The colour of every status word."""

_CODE = re.compile(r"`([^`\n]{1,300})`")
_SIGNS = {"good": "✓", "work": "●", "none": "○", "warn": "↩", "you": "?", "bad": "✗"}


def pill(status: str) -> Markup:
    """A status word in its colour."""
    return tag("span", status.replace("_", " "), class_=f"pill {TONES[status]}")


def sign(status: str) -> Markup:
    """The same as one letter."""
    tone = TONES[status]
    return tag("span", _SIGNS[tone], class_=f"sign {tone}", title=status.replace("_", " "))


def name(text: str, most: int = TITLE) -> Markup:
    """A title or a path by somebody else, on one line, turned to no side but its own."""
    return tag("bdi", _with_code(harmless(one_line(text, most), most)))


def said(text: str, most: int = TEXT) -> Markup:
    """What somebody says, with its line breaks."""
    shown = _with_code(harmless(text.strip("\n"), most))
    return tag("div", shown, class_="said", dir="auto")


def _with_code(text: str) -> list[str]:
    """What stands between backticks as code; nothing else that Markdown knows means anything."""
    parts = _CODE.split(text)
    return [tag("code", part) if place % 2 else part for place, part in enumerate(parts)]


def printed(text: str, most: int = LONG) -> Markup:
    """What a program printed."""
    return tag("pre", harmless(text.strip("\n"), most), tabindex="0")


def code(text: str) -> Markup:
    """A commit, a command, a path."""
    return tag("code", harmless(one_line(text, 500), 500))


def stat(changes: Sequence[Change] | None) -> Markup | None:
    """How many files, how many lines."""
    if not changes:
        return None
    added, deleted = more_and_less(*lines_of(changes))
    return tag(
        "span",
        f"{plural(len(changes), 'file')} ",
        tag("span", added, class_="plus"),
        " ",
        tag("span", deleted, class_="minus"),
        class_="stat",
    )


def outcome(result: CheckResult) -> Markup:
    """What a check said, in its colour."""
    tone = {Outcome.PASS: "good", Outcome.FAIL: "bad", Outcome.ABSENT: "warn"}[result.outcome]
    word = (result.absence or result.outcome).replace("_", " ")
    return tag("span", word, class_=f"pill {tone}")
