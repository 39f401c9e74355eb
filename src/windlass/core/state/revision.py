"""The fold of an edited plan: tasks are matched by id, and no work is lost.

| the task                        | what happens to it                                            |
|---------------------------------|---------------------------------------------------------------|
| is new                          | waits like any other                                          |
| is gone, and was merged         | stays with the text it was merged for: the tip holds its work |
| is gone, and was not merged     | is withdrawn: its work stays pinned, its cost stays spent     |
| is back                         | continues where it was withdrawn                              |
| means something else, unmerged  | continues, and is judged again                                |
| means something else, merged    | is stale until a person has it redone or accepts it           |
| means what it was merged for    | is merged, even if it was stale                               |
| is otherwise the same           | continues                                                     |
"""

from collections.abc import Mapping

from msgspec.structs import replace

from windlass.core.events.run import PlanRevised
from windlass.core.events.values import RunEnd
from windlass.core.plan import Plan, Task, critical_lengths, same_text, with_meaning, with_scenario
from windlass.core.state import staleness
from windlass.core.state.index import index_of
from windlass.core.state.model import Phases, RunState, TaskState
from windlass.core.state.task_fold import revised as revised_task
from windlass.core.state.task_fold import set_aside, tried_again
from windlass.core.state.transitions import Phase

_EDITED = "the plan was edited; the tip has not passed its new checks yet"


def revised(state: RunState, event: PlanRevised) -> RunState:
    """The run with the new plan."""
    plan = replace(event.plan, id=state.plan.id, tasks=(*event.plan.tasks, *_kept(state, event)))
    if state.settings.e2e.run or any(task.scenario for task in state.plan.tasks):
        plan = with_scenario(plan, state.specs.values())
    known = {**state.withdrawn, **state.tasks}
    found = {task.id: _known(task, known, state.specs) for task in plan.tasks}
    scenarios = (task.id for task in plan.tasks if task.scenario)
    tasks = tried_again(scenarios, found, state.tip_tree)
    return replace(
        _with_true_end(state, tasks),
        at=event.at,
        plan=plan,
        specs={**state.specs, **{task.id: task for task in plan.tasks}},
        urgency=critical_lengths(plan, state.estimates),
        tasks=tasks,
        index=index_of(plan, Phases(tasks)),
        withdrawn=_withdrawn(known, plan),
        queue=requeued(tuple(id_ for id_ in state.queue if _is_queued(tasks.get(id_))), tasks),
    )


def _with_true_end(state: RunState, tasks: Mapping[str, TaskState]) -> RunState:
    """The run with its end corrected, if the edit made it false."""
    if state.ended is None or state.given_up:
        return state
    stale = [task.id for task in tasks.values() if task.phase is Phase.STALE]
    if stale:
        return replace(state, ended=RunEnd.NEEDS_HUMAN, reason=staleness.why(stale), reopening=None)
    if state.ended is RunEnd.COMPLETED or state.reopening is not None or state.stale:
        return replace(state, ended=RunEnd.STOPPED, reason=_EDITED, reopening=None)
    return state


def requeued(queue: tuple[str, ...], tasks: Mapping[str, TaskState]) -> tuple[str, ...]:
    """The queue, with the approved tasks that had left it for a person or with the plan."""
    back = (id_ for id_, task in tasks.items() if task.phase is Phase.APPROVED)
    return (*queue, *(id_ for id_ in back if id_ not in queue))


def _kept(state: RunState, event: PlanRevised) -> tuple[Task, ...]:
    """Tasks gone from the plan that stay in the run, without dependencies that are gone too."""
    wanted = {task.id for task in event.plan.tasks}
    gone = (task for task in state.plan.tasks if task.id not in wanted and not task.scenario)
    merged = ((task, state.tasks[task.id]) for task in gone)
    kept = tuple(_as_in_tip(task, each) for task, each in merged if each.may_be_in_tip)
    there = wanted | {task.id for task in kept}
    return tuple(
        replace(task, depends_on=tuple(dep for dep in task.depends_on if dep in there))
        for task in kept
    )


def _as_in_tip(task: Task, found: TaskState) -> Task:
    """The task with the text it is in the tip for, or is being merged for."""
    stale = found.merged_as if found.phase is Phase.STALE else None
    return with_meaning(task, found.moving_as or stale or task)


def _known(task: Task, known: Mapping[str, TaskState], specs: Mapping[str, Task]) -> TaskState:
    found = known.get(task.id)
    if found is None:
        return TaskState(id=task.id)
    same = same_text(specs[task.id], task)
    return staleness.settled(found if same else revised_task(found), task)


def _withdrawn(known: Mapping[str, TaskState], plan: Plan) -> dict[str, TaskState]:
    wanted = {task.id for task in plan.tasks}
    gone = (task for id_, task in known.items() if id_ not in wanted and task.attempts)
    return {task.id: set_aside(task) for task in gone}


def _is_queued(task: TaskState | None) -> bool:
    return task is not None and task.phase is Phase.APPROVED
