"""What a plan leaves open: tasks without criteria, and tasks that nothing but a Coach proves."""

from collections.abc import Sequence

from windlass.core.plan.model import Plan, Task
from windlass.core.plan.names import some
from windlass.findings import Finding

_SOME = 8


def gaps(plan: Plan, checks: Sequence[str]) -> tuple[Finding, ...]:
    """A warning for each kind of gap, at its first task; `checks` are the project's own."""
    gated = {stage.name for stage in plan.stages if stage.checks}
    vague = [task for task in plan.tasks if not task.acceptance_criteria and not task.scenario]
    proven = bool(checks or plan.checks)
    unproven = [
        task for task in plan.tasks if not proven and not task.checks and task.stage not in gated
    ]
    found = (
        _gap(
            plan,
            vague,
            "acceptance criteria, so the Coach has only the text to judge by",
            "list what must be true when the task is done",
        ),
        _gap(
            plan,
            unproven,
            "checks, so only the Coach decides whether the work is right",
            "set `checks` in windlass.toml; `windlass init` proposes them",
        ),
    )
    return tuple(each for each in found if each is not None)


def _gap(plan: Plan, tasks: Sequence[Task], what: str, cure: str) -> Finding | None:
    if not tasks:
        return None
    if len(tasks) == len(plan.tasks) > 1:
        text = f"no task has {what}"
    elif len(tasks) == 1:
        text = f"task {tasks[0].id} has no {what}"
    else:
        text = f"{len(tasks)} tasks have no {what}: {some([task.id for task in tasks], _SOME)}"
    first = tasks[0]
    return Finding(line=first.line, path=first.path, severity="warning", text=text, suggestion=cure)
