"""A plan: tasks with their order. Pure."""

from windlass.core.plan.edits import (
    Edits,
    compare,
    digest_of,
    same_meaning,
    same_text,
    with_meaning,
)
from windlass.core.plan.gaps import gaps
from windlass.core.plan.graph import (
    MAX_TASKS,
    critical_lengths,
    critical_path,
    longest,
    ordered,
    problems,
    steps,
    transitive_dependents,
    validated,
)
from windlass.core.plan.model import Plan, Stage, Task
from windlass.core.plan.scenario import with_scenario
from windlass.findings import Finding

__all__ = [
    "MAX_TASKS",
    "Edits",
    "Finding",
    "Plan",
    "Stage",
    "Task",
    "compare",
    "critical_lengths",
    "critical_path",
    "digest_of",
    "gaps",
    "longest",
    "ordered",
    "problems",
    "same_meaning",
    "same_text",
    "steps",
    "transitive_dependents",
    "validated",
    "with_meaning",
    "with_scenario",
]
