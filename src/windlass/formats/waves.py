"""Waves: tasks by number, with a barrier after each.

A wave is a stage, and its barrier is never turned into dependencies. A task that names no wave
joins the first wave in which it can run. A task that depends on a later wave could never start, so
it is refused.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from msgspec.structs import replace

from windlass.core.plan import Finding, Task
from windlass.formats.reading import dependency_order

_ONE_BY_ONE = "a wave starts when the wave before it is done: move one of the two"


def in_waves(
    tasks: Sequence[Task], waves: Mapping[str, str]
) -> tuple[tuple[Task, ...], tuple[str, ...], list[Finding]]:
    """The tasks with their stages, the stages in order, and findings about them.

    `waves` has the number of each task that names one. If no task names one, there are no stages.
    """
    if not waves:
        return tuple(tasks), (), []
    numbers = {task_id: Fraction(number) for task_id, number in waves.items()}
    notes = [
        Finding(
            line=task.line, text=f"names no wave, so it joins wave {_name(wave)}", path=task.path
        )
        for task, wave in _placed(tasks, numbers)
    ]
    for task in tasks:
        for dep in task.depends_on:
            if numbers.get(dep, Fraction(0)) > numbers[task.id]:
                here, there = _name(numbers[task.id]), _name(numbers[dep])
                notes.append(
                    Finding(
                        line=task.line,
                        text=f"task {task.id!r} of wave {here} depends on {dep!r} of wave {there}",
                        path=task.path,
                        severity="error",
                        suggestion=_ONE_BY_ONE,
                    )
                )
    staged = tuple(replace(task, stage=_name(numbers[task.id])) for task in tasks)
    return staged, tuple(_name(wave) for wave in sorted(set(numbers.values()))), notes


def _placed(tasks: Sequence[Task], numbers: dict[str, Fraction]) -> list[tuple[Task, Fraction]]:
    """Give each task without a number the highest wave of its dependencies, else the first wave."""
    first = min(numbers.values())
    rest = {task.id: task for task in tasks if task.id not in numbers}
    depends_on = {
        each.id: [dep for dep in each.depends_on if dep in rest] for each in rest.values()
    }
    for task_id in dependency_order(depends_on):
        before = (numbers[dep] for dep in rest[task_id].depends_on if dep in numbers)
        numbers[task_id] = max(before, default=first)
    # The rest form a cycle, which the graph refuses.
    return [(task, numbers.setdefault(task.id, first)) for task in rest.values()]


def _name(wave: Fraction) -> str:
    return str(wave) if wave.denominator == 1 else str(float(wave))
