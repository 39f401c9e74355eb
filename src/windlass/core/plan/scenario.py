"""The plan's E2E scenario as a last task, which begins with its review.

A fresh agent tries the scenario on the tip. If it holds, the task is done without a change. If not,
the failure becomes feedback, and the task continues like any other: Player, snapshot, checks,
another try on that snapshot, gate, merge queue.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, count

from msgspec.structs import replace

from windlass.core.plan.model import Plan, Task

HOLDS = "the scenario holds, from its first step to its last"
"""The one acceptance criterion."""


def with_scenario(plan: Plan, known: Iterable[Task] = ()) -> Plan:
    """The plan with its scenario as the last task; the plan itself if there is none to add.

    `known` are the tasks that a run has seen: its scenario keeps its id, and takes no other task's.
    """
    if not plan.e2e or any(task.scenario for task in plan.tasks):
        return plan
    seen = tuple(known)
    ours = (task.id for task in seen if task.scenario)
    others = (*plan.tasks, *(task for task in seen if not task.scenario))
    taken = {task.id.lower() for task in others}
    scenario = Task(
        id=next(name for name in chain(ours, _names()) if name not in taken),
        title="E2E scenario",
        text=plan.e2e,
        acceptance_criteria=(HOLDS,),
        depends_on=tuple(task.id for task in plan.tasks),
        scenario=True,
    )
    return replace(plan, tasks=(*plan.tasks, scenario))


def _names() -> Iterator[str]:
    yield "e2e"
    yield from (f"e2e-{number}" for number in count(2))
