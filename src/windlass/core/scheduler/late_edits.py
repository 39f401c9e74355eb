"""Edits of the plan that a run must apply before it is complete. Pure.

Law: a run is complete for the plan as its files are at the end. An edit that makes a merged task
stale, or changes the checks of the whole plan, is applied before the run can end as complete. All
other edits wait for `windlass resume`, so that no work starts and costs money unasked.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.plan import Plan, Stage, same_meaning, with_meaning
from windlass.core.state import RunState, selection
from windlass.core.state.staleness import is_done_for


def completes(state: RunState, due: Sequence[e.Event]) -> bool:
    """Whether these facts would end the run as complete, or begin to land it."""
    as_asked = state.stopping is None and selection.is_done(state)
    ends = {e.RunEnd.COMPLETED, e.RunEnd.STOPPED} if as_asked else {e.RunEnd.COMPLETED}
    return any(
        isinstance(fact, e.LandRequested) or (isinstance(fact, e.RunEnded) and fact.status in ends)
        for fact in due
    )


def facts_of(state: RunState, plan: Plan | str, at: datetime) -> tuple[e.Event, ...]:
    """The facts to record first; `plan` is the plan as it is now, or why it cannot be read."""
    if isinstance(plan, str):
        return (e.StopRequested(at=at, by=plan),)
    now = _taken_up(state, plan)
    before = _without_scenario(state.plan)
    return (e.PlanRevised(at=at, plan=now),) if now != before else ()


def _taken_up(state: RunState, plan: Plan) -> Plan:
    """The run's plan, with the new texts of merged tasks and the new checks of the whole."""
    new = {task.id: task for task in plan.tasks}
    stale = {id_ for id_ in newly_stale(state, plan) if not state.specs[id_].scenario}
    before = _without_scenario(state.plan)
    tried = any(task.scenario for task in state.plan.tasks)
    return replace(
        before,
        tasks=tuple(
            with_meaning(task, new[task.id]) if task.id in stale else task for task in before.tasks
        ),
        checks=plan.checks,
        stages=tuple(_checked_as(stage, plan.stages) for stage in before.stages),
        e2e=(plan.e2e or before.e2e) if tried else before.e2e,
    )


def newly_stale(state: RunState, plan: Plan) -> tuple[str, ...]:
    """The merged tasks that this plan makes stale with a text that is new to the run."""
    known = (task for task in plan.tasks if task.id in state.in_tip)
    new = (task for task in known if not same_meaning(task, state.specs[task.id]))
    return tuple(task.id for task in new if not is_done_for(state.tasks[task.id], task))


def _checked_as(stage: Stage, stages: Sequence[Stage]) -> Stage:
    return next((each for each in stages if each.name == stage.name), stage)


def _without_scenario(plan: Plan) -> Plan:
    return replace(plan, tasks=tuple(task for task in plan.tasks if not task.scenario))
