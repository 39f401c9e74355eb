"""The words that plans and other tools use, each list in one place for every format."""

import re
from collections.abc import Iterable

DONE = frozenset(
    {"complete", "completed", "done", "finished", "merged", "closed", "review_complete"}
)
"""Words that mark a task as done."""
TICKS = frozenset({"x", "✓", "✔", "✅", "☑"})
"""Marks that say the same, in a box, a heading or a cell."""
NOTHING = frozenset({"none", "nothing", "n/a", "na", "-", "--", "---", "–", "—"})  # noqa: RUF001
"""Words that say that a value is empty on purpose."""
MAX_COMPLEXITY = 10
FILES_TO_CREATE = re.compile(
    r"(?:new\s+files|files?\s+to\s+(?:be\s+created?|create|add))", re.IGNORECASE
)
"""The title of a list of files to create, and of no other list."""

_COMPLEXITY_WORDS = {
    "trivial": 1, "simple": 2, "low": 2, "small": 2, "medium": 5, "moderate": 5,
    "high": 8, "large": 8, "complex": 8,
}  # fmt: skip
"""The middle of GuardKit's bands: 1 to 3, 4 to 6, and 7 or more, where a person is asked first."""
_COMPLEXITY = re.compile(
    r"(?P<number>[0-9]{1,3})(?:\s*/\s*10)?(?:\s*\(.*\))?"
    r"|[A-Za-z][A-Za-z -]*\((?P<inside>[0-9]{1,3})(?:\s*/\s*10)?\)"
)
_UNCERTAIN_PATH = re.compile(r"[*?<>{}|…\\]|\.\.|^[/~$-]|://")


def is_done(status: object) -> bool:
    """Whether the word marks a task as done."""
    return isinstance(status, str) and status.strip().casefold().replace("-", "_") in DONE


def is_nothing(text: str) -> bool:
    """Whether the text is empty, or a word for it; emphasis and a full stop do not count."""
    return (word := text.strip("*_`. \t").casefold()) == "" or word in NOTHING


def complexity_in(value: str) -> int | None:
    """The number in '5', '5/10', '5 (medium)', 'Medium (5/10)' and 'medium', from 0 to 10."""
    if (word := value.strip().casefold()) in _COMPLEXITY_WORDS:
        return _COMPLEXITY_WORDS[word]
    found = _COMPLEXITY.fullmatch(value)
    number = int(found["number"] or found["inside"]) if found else MAX_COMPLEXITY + 1
    return number if number <= MAX_COMPLEXITY else None


def certain_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """The paths that name one file or folder of the project.

    Windlass checks that they exist when the stage is done. A pattern, a placeholder or a path
    outside the project is left to the Coach.
    """
    plain = (path.removeprefix("./") for path in paths)
    return tuple(dict.fromkeys(path for path in plain if path and not _UNCERTAIN_PATH.search(path)))
