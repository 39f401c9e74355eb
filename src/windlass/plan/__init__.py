"""A plan: tasks with order. Pure."""

from windlass.plan.graph import (
    MAX_TASKS,
    critical_lengths,
    critical_path,
    ordered,
    steps,
    transitive_dependents,
    validated,
)
from windlass.plan.model import Note, Plan, Stage, Task
from windlass.plan.scenario import with_scenario

__all__ = [
    "MAX_TASKS",
    "Note",
    "Plan",
    "Stage",
    "Task",
    "critical_lengths",
    "critical_path",
    "ordered",
    "steps",
    "transitive_dependents",
    "validated",
    "with_scenario",
]
