"""What the readers of all formats share: notes, refusals, limits and the order of names."""

import re
from typing import NoReturn

from windlass.core.plan import MAX_TASKS, Note
from windlass.errors import PlanError

_DIGITS = re.compile(r"([0-9]+)")


class Reader:
    """Reads one plan, or one file of it, and gathers notes about what it does not use."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.notes: list[Note] = []

    def note(self, line: int, text: str, path: str = "") -> None:
        """Say of a line that it was seen and not used; no path means the plan's own file."""
        self.notes.append(Note(line=line, text=text, path=path))

    def refuse(self, line: int, what: str, cure: str) -> NoReturn:
        """Refuse the plan because of this line."""
        raise PlanError(what, path=self.path, line=line, hint=cure)


def refuse_too_many(path: str, count: int, what: str = "tasks", line: int = 0) -> None:
    """Refuse a plan with more tasks than any plan may have, before time is spent on it."""
    if count > MAX_TASKS:
        raise PlanError(
            f"more than {MAX_TASKS:,} {what}",
            path=path,
            line=line,
            hint="split it into several plans",
        )


def natural_order(name: str) -> list[tuple[int, str]]:
    """A sort key by which 2 comes before 10."""
    parts = _DIGITS.split(name)
    return [(int(part[:18]) if part.isdecimal() else -1, part) for part in parts]
