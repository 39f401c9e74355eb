"""When a scenario is to be tried again: that it held says something of one tree, and no other."""

from collections.abc import Mapping

from msgspec.structs import replace

from windlass.plan import Plan
from windlass.state.model import TaskState
from windlass.state.task_fold import begun_anew
from windlass.state.transitions import Phase


def tried_again(
    plan: Plan, tasks: Mapping[str, TaskState], tip_tree: str | None
) -> Mapping[str, TaskState]:
    """The tasks, the scenario waiting for its trial where the tip is not, or not yet, the tree."""
    again = {
        task.id: replace(tasks[task.id], phase=Phase.PENDING, **begun_anew(tasks[task.id]))
        for task in plan.tasks
        if task.scenario and _is_outdated(tasks[task.id], tasks, tip_tree or "")
    }
    return {**tasks, **again} if again else tasks


def _is_outdated(task: TaskState, tasks: Mapping[str, TaskState], tip_tree: str) -> bool:
    others = (other for other in tasks.values() if other.id != task.id)
    waits = any(other.phase is not Phase.MERGED for other in others)
    if task.phase is Phase.MERGED:
        return waits or task.last.tree != tip_tree
    return waits and task.phase in {Phase.SAVED, Phase.CHECKED} and task.last.is_tip
