"""When a scenario is to be tried again: that it held says something of one tree, and no other."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from windlass.core.state.model import TaskState
from windlass.core.state.task_fold import begun_anew
from windlass.core.state.transitions import IN_TIP, Phase


def tried_again(
    scenarios: Iterable[str], tasks: Mapping[str, TaskState], tip_tree: str | None
) -> Mapping[str, TaskState]:
    """The tasks, each scenario waiting for its trial where the tip is not, or not yet, the tree."""
    again = {
        id_: replace(begun_anew(tasks[id_]), phase=Phase.PENDING)
        for id_ in scenarios
        if _is_outdated(tasks[id_], tasks, tip_tree or "")
    }
    return {**tasks, **again} if again else tasks


def _is_outdated(task: TaskState, tasks: Mapping[str, TaskState], tip_tree: str) -> bool:
    others = (other for other in tasks.values() if other.id != task.id)
    waits = any(other.phase not in IN_TIP for other in others)
    if task.phase in IN_TIP:
        return waits or task.last.tree != tip_tree
    return waits and task.phase in {Phase.SAVED, Phase.CHECKED} and task.last.is_tip
