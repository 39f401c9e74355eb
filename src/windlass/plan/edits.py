"""What was edited in a plan between two looks at it, task by task, by id."""

from msgspec import Struct, structs

from windlass.plan.model import Plan, Task

_MEANING = ("title", "text", "acceptance_criteria", "checks", "skip_absent", "removes_tests")
"""What a task asks for. Work that was done for another meaning was done for another task."""

_PLACE = ("line", "path", "marked_done")
"""Where it stands, and what others say of it: no part of the task itself."""


class Edits(Struct, frozen=True, kw_only=True):
    """Ids of tasks, each in the order of the newer plan, or of the older where they are gone."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """They ask for something else than before."""
    adjusted: tuple[str, ...] = ()
    """They ask for the same, in another order, by another model, or so."""
    reordered: bool = False
    plan_level: tuple[str, ...] = ()
    """Fields of the plan itself that are not what they were."""

    def __bool__(self) -> bool:
        """Whether there is any edit at all."""
        return any(getattr(self, name) for name in structs.asdict(self))


def same_meaning(old: Task, new: Task) -> bool:
    """Whether both ask for the same."""
    return all(getattr(old, name) == getattr(new, name) for name in _MEANING)


def compare(old: Plan, new: Plan) -> Edits:
    """What was edited from one to the other; a scenario follows from the rest and is no edit."""
    before = {task.id: task for task in old.tasks if not task.scenario}
    after = {task.id: task for task in new.tasks if not task.scenario}
    both = [id_ for id_ in after if id_ in before]
    return Edits(
        added=tuple(id_ for id_ in after if id_ not in before),
        removed=tuple(id_ for id_ in before if id_ not in after),
        changed=tuple(id_ for id_ in both if not same_meaning(before[id_], after[id_])),
        adjusted=tuple(
            id_
            for id_ in both
            if same_meaning(before[id_], after[id_]) and not _same(before[id_], after[id_])
        ),
        reordered=both != [id_ for id_ in before if id_ in after],
        plan_level=tuple(
            name
            for name in ("title", "checks", "stages", "e2e")
            if getattr(old, name) != getattr(new, name)
        ),
    )


def _same(old: Task, new: Task) -> bool:
    place = {name: getattr(new, name) for name in _PLACE}
    return structs.replace(old, **place) == new
