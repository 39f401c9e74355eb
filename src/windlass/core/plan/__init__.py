"""A plan: tasks with their order. Pure."""

from windlass.core.plan.edits import (
    Edits,
    compare,
    digest_of,
    same_meaning,
    same_text,
    with_meaning,
)
from windlass.core.plan.graph import (
    MAX_TASKS,
    critical_lengths,
    critical_path,
    ordered,
    steps,
    transitive_dependents,
    validated,
)
from windlass.core.plan.model import Note, Plan, Stage, Task
from windlass.core.plan.scenario import with_scenario

__all__ = [
    "MAX_TASKS",
    "Edits",
    "Note",
    "Plan",
    "Stage",
    "Task",
    "compare",
    "critical_lengths",
    "critical_path",
    "digest_of",
    "ordered",
    "same_meaning",
    "same_text",
    "steps",
    "transitive_dependents",
    "validated",
    "with_meaning",
    "with_scenario",
]
