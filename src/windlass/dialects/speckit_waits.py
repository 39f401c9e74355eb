"""What the tasks of a spec-kit list wait for: their step, and what the text declares beside it.

A task's own words bind or are refused, for who wrote them there meant them. A section about the
order binds where it is certain and agrees with the list, and is noted where not.
"""

from collections.abc import Iterable, Sequence
from typing import NoReturn

from windlass.dialects import speckit_order
from windlass.dialects.speckit_order import Ids, Place, Told
from windlass.errors import PlanError
from windlass.plan import Note

_MAX_DECLARED = 100_000


class Waits:
    """The dependencies of one list, as they are gathered."""

    def __init__(self, path: str, places: Sequence[Place], ids: Ids) -> None:
        self.notes: list[Note] = []
        self._path = path
        self._ids = ids
        self._declared = 0
        steps = speckit_order.steps(places)
        self._rank = {each.id: (each.phase, steps[each.id]) for each in places}
        by_step = speckit_order.waits(places, steps)
        self._waits = {each: dict.fromkeys(before) for each, before in by_step.items()}

    def of(self, task_id: str) -> tuple[str, ...]:
        """All that a task waits for."""
        return tuple(self._waits[task_id])

    def declare(self, task_id: str, line: int, text: str) -> None:
        """Take in a paragraph of a task's own."""
        for told in speckit_order.declared(text):
            self._bind(task_id, line, told)

    def _bind(self, task_id: str, line: int, told: Told) -> None:
        """Let a task wait for what its own text says it depends on, or refuse what cannot be."""
        tasks, strange = self._ids.named(told.tasks)
        before, unknown = self._ids.named(told.wait_for)
        if unknown:
            what = f"{task_id!r} depends on {unknown[0]!r}, which is no task of this plan"
            self._refuse(line, what, "name a task of this plan, or say it in other words")
        if strange:
            self._note(line, f"names {strange[0]!r}, which is no task of this plan")
            return
        tasks = tasks or {task_id: None}
        self._count(line, len(tasks) * len(before))
        for task in tasks:
            if late := self._late(task, before):
                what = f"{task!r} depends on {late!r}, which comes after it"
                self._refuse(line, what, "move one of them, or mark both [P] in one section")
            self._wait(task, before)

    def state(self, at: int, text: str) -> None:
        """Let tasks wait as a section about their order says, where it can be read and kept."""
        told = speckit_order.stated(text)
        if told is None:
            if speckit_order.mentions(text):
                self._note(at, "speaks of an order in words that do not bind")
            return
        for each in told:
            tasks, strange = self._ids.named(each.tasks)
            before, unknown = self._ids.named(each.wait_for)
            self._count(at, len(tasks) * len(before))
            if strange or unknown:
                self._note(at, f"names {(strange + unknown)[0]!r}, which is no task of this plan")
            elif any(self._late(task, before) for task in tasks):
                self._note(at, "contradicts the order of the list, which holds")
            else:
                for task in tasks:
                    self._wait(task, before)

    def _wait(self, task: str, before: Iterable[str]) -> None:
        """Let a task wait for these, where the steps of its phase do not see to it anyway."""
        phase, step = self._rank[task]
        for each in before:
            if each != task and (self._rank[each][0] != phase or self._rank[each][1] == step):
                self._waits[task][each] = None

    def _count(self, line: int, more: int) -> None:
        self._declared += more
        if self._declared > _MAX_DECLARED:
            what = f"more than {_MAX_DECLARED:,} dependencies are declared"
            self._refuse(line, what, "let tasks wait for their phase instead")

    def _late(self, task: str, before: Iterable[str]) -> str | None:
        """One of those that come after the task by the list's own order."""
        return next((each for each in before if self._rank[each] > self._rank[task]), None)

    def _note(self, line: int, text: str) -> None:
        self.notes.append(Note(line=line, text=text))

    def _refuse(self, line: int, what: str, hint: str) -> NoReturn:
        raise PlanError(what, path=self._path, line=line, hint=hint)
