"""Which checks a tree must pass, and what the gate makes of what they said of it so far."""

from collections.abc import Iterable

from windlass.scheduler import gate, stages
from windlass.state import RunState, TaskState


def project_checks(state: RunState) -> tuple[str, ...]:
    """What must hold of every tree, the base's included."""
    return _distinct((*state.settings.checks, *state.plan.checks))


def task_checks(state: RunState, task_id: str) -> tuple[str, ...]:
    """What must hold of a task's own snapshot."""
    return _distinct((*project_checks(state), *state.specs[task_id].checks))


def merge_checks(state: RunState, task_id: str) -> tuple[str, ...]:
    """What must hold of a merge: also what was merged since the task started, and stages done."""
    since = state.merged[state.tasks[task_id].merged_before :]
    others = (check for other in since for check in _merged_checks(state, other))
    done = stages.checks_before(state, state.specs[task_id].stage)
    return _distinct((*task_checks(state, task_id), *others, *done))


def tip_checks(state: RunState) -> tuple[str, ...]:
    """What must hold of the tip at the end: everything any merged task was asked."""
    own = (check for task_id in state.merged for check in _merged_checks(state, task_id))
    return _distinct((*project_checks(state), *own, *stages.checks_before(state, None)))


def _merged_checks(state: RunState, task_id: str) -> tuple[str, ...]:
    """What a task was asked for that is in the tip, whatever the plan asks of it by now."""
    task = state.tasks.get(task_id) or state.withdrawn.get(task_id)
    return task.merged_as.checks if task is not None and task.merged_as is not None else ()


def criteria(state: RunState, task_id: str) -> tuple[str, ...]:
    """What must be shown to be met; a task without criteria has its description for one."""
    spec = state.specs[task_id]
    return spec.acceptance_criteria or (f"The task is done as described: {spec.title}",)


def verdict(state: RunState, task: TaskState, tree: str, checks: tuple[str, ...]) -> gate.Verdict:
    """What the gate says of a tree of this task; what was proven on the same tree stays proven."""
    said = state.evidence.get(tree, {})
    return gate.judge_checks(
        checks,
        [said[check] for check in checks if check in said],
        runs=task.check_runs,
        skip_absent=state.settings.policy.absent == "skip" or state.specs[task.id].skip_absent,
    )


def _distinct(checks: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(checks))
