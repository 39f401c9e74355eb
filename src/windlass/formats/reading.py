"""What the readers of all formats share: findings, refusals, limits and the order of names.

An error in one place does not end the reading: it is recorded, so that `load` can name all errors
of a plan at once. Only a text that cannot be read at all is refused right away.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import NoReturn

from windlass.core.plan import MAX_TASKS, Finding
from windlass.errors import PlanError
from windlass.findings import Severity
from windlass.formats.slips import key_slips, label_slip
from windlass.formats.words import MAX_COMPLEXITY, complexity_in
from windlass.formats.yaml import Keys

_DIGITS = re.compile(r"([0-9]+)")


class Reader:
    """Reads one plan, or one file of it, and gathers findings about it."""

    def __init__(self, path: str, shown: str = "") -> None:
        self.path = path
        self.shown = shown
        """The file that findings name; empty for the plan's own."""
        self.notes: list[Finding] = []

    def note(self, line: int, text: str, path: str = "") -> None:
        """Note that a line was seen and not used; no path means the reader's own file."""
        self._find(line, text, path, "note")

    def warn(self, line: int, text: str, suggestion: str, path: str = "") -> None:
        """Record what is probably not what the author meant."""
        self._find(line, text, path, "warning", suggestion)

    def error(self, line: int, what: str, cure: str, path: str = "") -> None:
        """Record an error, and go on reading; no run can start."""
        self._find(line, what, path, "error", cure)

    def _find(
        self, line: int, text: str, path: str, severity: Severity, suggestion: str = ""
    ) -> None:
        self.notes.append(
            Finding(
                line=line,
                text=text,
                path=path or self.shown,
                severity=severity,
                suggestion=suggestion,
            )
        )

    def warn_of_keys(self, data: Keys, known: Collection[str]) -> None:
        """Warn of keys that are slips of the keys that are read."""
        for key, meant in key_slips(data, known):
            self.warn(data.lines[key], f"the key {key!r} is not read", f"did you mean {meant!r}?")

    def warn_of_label(self, line: int, label: str, known: Collection[str], form: str) -> bool:
        """Warn of a label or heading that is a slip; `form` shows how the right one is written."""
        if (meant := label_slip(label, known)) is None:
            return False
        self.warn(line, f"{label!r} is not read", f"did you mean '{form.format(meant)}'?")
        return True

    def refuse(self, line: int, what: str, cure: str) -> NoReturn:
        raise PlanError(what, path=self.path, line=line, hint=cure)

    def sorted_notes(self) -> tuple[Finding, ...]:
        return tuple(sorted(self.notes, key=lambda note: (note.path, note.line)))

    def word(self, data: Keys, key: str) -> str:
        """The text of a YAML key; a list or a mapping is refused."""
        value = data.get(key)
        if isinstance(value, list | dict):
            wanted = "one word or sentence"
            self.error(data.lines[key], f"{key!r} is not {wanted}", f"write {wanted}")
            return ""
        return (value or "").strip()

    def complexity(self, data: Keys) -> int | None:
        value = self.word(data, "complexity")
        number = complexity_in(value)
        if value and number is None:  # it decides whether a person is asked first: never guessed
            wanted = f"a number from 0 to {MAX_COMPLEXITY}"
            self.error(data.lines["complexity"], f"'complexity' is not {wanted}", f"write {wanted}")
        return number


def refuse_too_many(path: str, count: int, what: str = "tasks", line: int = 0) -> None:
    """Refuse a plan with more tasks than any plan may have, before time is spent on it."""
    if count > MAX_TASKS:
        cure = "split it into several plans"
        raise PlanError(f"more than {MAX_TASKS:,} {what}", path=path, line=line, hint=cure)


def dependency_order(depends_on: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """The names, each after all that it depends on; without cycles and what waits for them."""
    sorter = TopologicalSorter(depends_on)
    with suppress(CycleError):  # the graph refuses it by name
        sorter.prepare()
    while ready := sorter.get_ready():
        yield from ready
        sorter.done(*ready)


def natural_order(name: str) -> list[tuple[int, str]]:
    """A sort key by which 2 comes before 10."""
    parts = _DIGITS.split(name)
    return [(int(part[:18]) if part.isdecimal() else -1, part) for part in parts]
