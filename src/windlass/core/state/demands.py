"""Which commands a tree must pass, as the settings, the plan and the task ask for them."""

from collections.abc import Iterable

from windlass.core.state.model import RunState


def project_checks(state: RunState) -> tuple[str, ...]:
    """What must hold of every tree, the base's included."""
    return distinct((*state.settings.checks, *state.plan.checks))


def task_checks(state: RunState, task_id: str) -> tuple[str, ...]:
    """What must hold of a task's own snapshot."""
    return distinct((*project_checks(state), *state.specs[task_id].checks))


def distinct(checks: Iterable[str]) -> tuple[str, ...]:
    """Each of them once, in their order."""
    return tuple(dict.fromkeys(checks))
