"""A plan: tasks with order. Pure."""

from windlass.plan.graph import critical_lengths, ordered, transitive_dependents, validated
from windlass.plan.model import Note, Plan, Task

__all__ = [
    "Note",
    "Plan",
    "Task",
    "critical_lengths",
    "ordered",
    "transitive_dependents",
    "validated",
]
