"""Checks: which a tree must pass, how many run at once, and which results a person can reopen."""

from collections.abc import Iterable, Mapping

from windlass.core.events import model as e
from windlass.core.state.model import RunState
from windlass.core.state.transitions import Phase

Evidence = Mapping[str, Mapping[str, e.CheckResult]]
"""The last result of each command, by tree."""

_CHECKING = frozenset({Phase.CHECKING, Phase.CHECKING_MERGE})


def project_checks(state: RunState) -> tuple[str, ...]:
    """The checks that every tree must pass, the base's included."""
    return distinct((*state.settings.checks, *state.plan.checks))


def task_checks(state: RunState, task_id: str) -> tuple[str, ...]:
    """The checks that a task's own snapshot must pass."""
    return distinct((*project_checks(state), *state.specs[task_id].checks))


def distinct(checks: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(checks))


def free_slots(state: RunState) -> int:
    """How many more checks may start; the checks of tasks and of the one merge share the slots.

    The merge goes first: finished tasks wait for it, and so do the tasks that depend on them.
    """
    return state.settings.test_slots - sum(task.phase in _CHECKING for task in state.live)


def without_failures(evidence: Evidence, trees: Iterable[str | None]) -> Evidence:
    """The evidence without the failures of these trees: a person may have fixed the cause."""
    kept = dict(evidence)
    for tree in {tree or "" for tree in trees} & evidence.keys():
        kept[tree] = {c: r for c, r in evidence[tree].items() if _is_steady_pass(r)}
    return kept


def _is_steady_pass(result: e.CheckResult) -> bool:
    return result.outcome is e.Outcome.PASS and not result.wavers
