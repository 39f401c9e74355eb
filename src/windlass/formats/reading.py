"""What the readers of all formats share: notes, refusals, limits and the order of names."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import NoReturn

from windlass.core.plan import MAX_TASKS, Note
from windlass.errors import PlanError
from windlass.formats.words import MAX_COMPLEXITY, complexity_in
from windlass.formats.yaml import Keys

_DIGITS = re.compile(r"([0-9]+)")


class Reader:
    """Reads one plan, or one file of it, and gathers notes about what it does not use."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.notes: list[Note] = []

    def note(self, line: int, text: str, path: str = "") -> None:
        """Note that a line was seen and not used; no path means the plan's own file."""
        self.notes.append(Note(line=line, text=text, path=path))

    def refuse(self, line: int, what: str, cure: str) -> NoReturn:
        raise PlanError(what, path=self.path, line=line, hint=cure)

    def sorted_notes(self) -> tuple[Note, ...]:
        return tuple(sorted(self.notes, key=lambda note: (note.path, note.line)))

    def word(self, data: Keys, key: str) -> str:
        """The text of a YAML key; a list or a mapping is refused."""
        value = data.get(key)
        if isinstance(value, list | dict):
            wanted = "one word or sentence"
            self.refuse(data.lines[key], f"{key!r} is not {wanted}", f"write {wanted}")
        return (value or "").strip()

    def complexity(self, data: Keys) -> int | None:
        value = self.word(data, "complexity")
        number = complexity_in(value)
        if value and number is None:  # it decides whether a person is asked first: never guessed
            wanted = f"a number from 0 to {MAX_COMPLEXITY}"
            self.refuse(
                data.lines["complexity"], f"'complexity' is not {wanted}", f"write {wanted}"
            )
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
