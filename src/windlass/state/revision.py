"""What is true once the plan was edited: tasks are matched by id, and nothing done is forgotten.

| the task                        | what becomes of it                                            |
|---------------------------------|---------------------------------------------------------------|
| is new                          | waits like any other                                          |
| is gone, and was merged         | stays, for its work is in the tip                             |
| is gone, and was not merged     | is withdrawn: its work stays pinned, its cost stays spent     |
| is back                         | goes on where it was withdrawn                                |
| means something else, unmerged  | goes on; what was judged of it is judged again                |
| means something else, merged    | is stale: said, and done again only when a person asks        |
| is otherwise the same           | goes on                                                       |
"""

from collections.abc import Mapping

from msgspec.structs import replace

from windlass.events.run import PlanRevised
from windlass.plan import Plan, Task, critical_lengths, same_meaning, with_scenario
from windlass.state.index import index_of
from windlass.state.model import Phases, RunState, TaskState
from windlass.state.task_fold import revised as revised_task
from windlass.state.transitions import Phase


def revised(state: RunState, event: PlanRevised) -> RunState:
    """The run with the plan as it is now."""
    wanted = {task.id for task in event.plan.tasks}
    merged = (task for task in state.plan.tasks if state.tasks[task.id].phase is Phase.MERGED)
    kept = tuple(task for task in merged if task.id not in wanted and not task.scenario)
    plan = replace(event.plan, id=state.plan.id, tasks=(*event.plan.tasks, *kept))
    if any(task.scenario for task in state.plan.tasks):
        plan = with_scenario(plan)
    known = {**state.withdrawn, **state.tasks}
    tasks = {task.id: _known(task, known, state.specs) for task in plan.tasks}
    tasks |= {task.id: _tried_again(task, tasks) for task in plan.tasks if task.scenario}
    return replace(
        state,
        at=event.at,
        plan=plan,
        specs={**state.specs, **{task.id: task for task in plan.tasks}},
        urgency=critical_lengths(plan, state.estimates),
        tasks=tasks,
        index=index_of(plan, Phases(tasks)),
        withdrawn=_withdrawn(known, plan),
        queue=tuple(id_ for id_ in state.queue if _is_queued(tasks.get(id_))),
    )


def _known(task: Task, known: Mapping[str, TaskState], specs: Mapping[str, Task]) -> TaskState:
    found = known.get(task.id)
    if found is None:
        return TaskState(id=task.id)
    return found if same_meaning(specs[task.id], task) else revised_task(found)


def _tried_again(scenario: Task, tasks: Mapping[str, TaskState]) -> TaskState:
    """A scenario that held of the tip says nothing of what is still to be merged."""
    task = tasks[scenario.id]
    others = (other for other in tasks.values() if other.id != scenario.id)
    if task.phase is not Phase.MERGED or all(o.phase is Phase.MERGED for o in others):
        return task
    return replace(task, phase=Phase.PENDING, begun_after=len(task.attempts), merged_as=None)


def _withdrawn(known: Mapping[str, TaskState], plan: Plan) -> dict[str, TaskState]:
    wanted = {task.id for task in plan.tasks}
    return {id_: task for id_, task in known.items() if id_ not in wanted and task.attempts}


def _is_queued(task: TaskState | None) -> bool:
    return task is not None and task.phase is Phase.APPROVED
