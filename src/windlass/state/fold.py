"""state = fold(events). Every field of the state is set here, or in task_fold, and nowhere else."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from windlass.errors import IllegalEvent
from windlass.events import model as e
from windlass.plan import critical_lengths, with_scenario
from windlass.state import revision
from windlass.state.index import index_of, moved
from windlass.state.model import Phases, RunState, TaskState
from windlass.state.task_fold import interrupted, task_changes
from windlass.state.transitions import RUN_TRANSITIONS, next_phase, next_run_phase
from windlass.state.trials import tried_again

_PAID = (e.PlayerFinished, e.PlayerFailed, e.CoachAnswered, e.CoachFailed)
"""Facts that tell what an agent has used up by its own account."""


def fold(events: Iterable[e.Event]) -> RunState | None:
    """The state of the last run these events tell of."""
    state: RunState | None = None
    for event in events:
        state = apply(state, event)
    return state


def runs(events: Iterable[e.Event]) -> list[RunState]:
    """The state each run in the journal was left in, oldest first."""
    states: list[RunState] = []
    for event in events:
        if isinstance(event, e.RunStarted):
            states.append(apply(None, event))
        elif states:
            states[-1] = apply(states[-1], event)
        else:
            raise IllegalEvent(f"{type(event).__name__} came before any run was started")
    return states


def apply(state: RunState | None, event: e.Event) -> RunState:
    """What is true once the event has happened."""
    if isinstance(event, e.RunStarted):
        return _started(event)
    if state is None:
        raise IllegalEvent(f"{type(event).__name__} came before any run was started")
    if isinstance(event, e.TaskEvent):
        return _apply_to_task(state, event)
    return _apply_to_run(state, event)


def _started(event: e.RunStarted) -> RunState:
    plan = with_scenario(event.plan) if event.settings.e2e.run else event.plan
    tasks = {task.id: TaskState(id=task.id) for task in plan.tasks}
    estimates = {each.task: each.seconds for each in event.estimates}
    return RunState(
        run=event.run,
        plan=plan,
        settings=event.settings,
        sandbox=event.sandbox,
        metered=event.metered,
        base=event.base,
        base_branch=event.base_branch,
        started_at=event.at,
        at=event.at,
        tip=event.base,
        estimates=estimates,
        urgency=critical_lengths(plan, estimates),
        tasks=tasks,
        index=index_of(plan, Phases(tasks)),
        specs={task.id: task for task in plan.tasks},
    )


def _apply_to_run(state: RunState, event: e.RunEvent) -> RunState:
    match event:
        case e.RunResumed():
            return _resumed(state, event)
        case e.PlanRevised():
            return revision.revised(state, event)
        case e.StopRequested():
            return replace(state, at=event.at, stopping=event.by)
        case e.RunEnded():
            return replace(
                state, at=event.at, ended=event.status, reason=event.reason, ended_at=event.at
            )
        case e.SpendReserved() | e.SpendSettled():
            return _with_spending(state, event)
        case e.BaselineFinished():
            changes: dict[str, Any] = {"baseline": event.results}
        case e.VerificationFinished():
            changes = {
                "verification": event.results,
                "evidence": _with_evidence(state, event.tree, event.results),
            }
        case _:
            changes = {}
    return replace(state, at=event.at, phase=next_run_phase(state.phase, event), **changes)


def _resumed(state: RunState, event: e.RunResumed) -> RunState:
    """Nothing is under way any more; every phase that had an effect goes back to before it."""
    known = state.metered
    tasks = {id_: interrupted(task, event, known=known) for id_, task in state.tasks.items()}
    after = replace(
        state,
        at=event.at,
        settings=event.settings,
        sandbox=event.sandbox,
        metered=event.metered,
        phase=RUN_TRANSITIONS[state.phase].get(e.RunResumed, state.phase),
        tasks=tasks,
        index=index_of(state.plan, Phases(tasks)),
        queue=revision.requeued(state.queue, tasks),
        stopping=None,
        ended=None,
        reason="",
        ended_at=None,
        resumes=state.resumes + 1,
        base_moved_to=event.base_moved_to,
    )
    if event.settings.e2e.run and with_scenario(state.plan) is not state.plan:
        # A scenario that is asked for only now comes into the plan as by an edit.
        return revision.revised(after, e.PlanRevised(at=event.at, plan=state.plan))
    return after


def _with_spending(state: RunState, event: e.SpendReserved | e.SpendSettled) -> RunState:
    """Money has no phase: it may be spent, and settled, whatever the task does meanwhile."""
    task = state.tasks[event.task]
    if isinstance(event, e.SpendReserved):
        task = replace(task, reserved={**task.reserved, event.id: event.usd})
        held, spent = {**state.held, event.id: event.usd}, state.spent
    else:
        left = {id_: usd for id_, usd in task.reserved.items() if id_ != event.id}
        task = replace(task, reserved=left, spent=task.spent + event.usage)
        held = {id_: usd for id_, usd in state.held.items() if id_ != event.id}
        spent = state.spent + event.usage
    tasks = {**state.tasks, task.id: task}
    return replace(state, at=event.at, tasks=tasks, held=held, spent=spent)


def _apply_to_task(state: RunState, event: e.TaskEvent) -> RunState:
    if event.task not in state.tasks:
        raise IllegalEvent(f"there is no task {event.task!r} in plan {state.plan.id!r}")
    before = state.tasks[event.task]
    phase = next_phase(before.id, before.phase, event)
    task = replace(before, phase=phase, **task_changes(state, before, event))
    tasks = {**state.tasks, task.id: task}
    after = replace(
        state,
        at=event.at,
        tasks=tasks,
        index=moved(state.index, state.plan, Phases(tasks), task.id, before.phase),
        spent=state.spent + event.usage if isinstance(event, _PAID) else state.spent,
        **_run_changes(state, event),
    )
    if isinstance(event, e.TaskMerged | e.TaskReopened):
        tried = tried_again(after.plan, after.tasks, after.tip_tree)
        if tried is not after.tasks:
            return replace(after, tasks=tried, index=index_of(after.plan, Phases(tried)))
    return after


def _run_changes(state: RunState, event: e.TaskEvent) -> dict[str, Any]:
    match event:
        case e.TaskApproved():
            return {"queue": (*state.queue, event.task)}
        case e.TaskReopened() if state.ended is not None:
            reason = f"{event.task} is to be done once more"
            return {"ended": e.RunEnd.STOPPED, "reason": reason}
        case e.TurnReturned() | e.HelpNeeded():
            return {"queue": _without(state.queue, event.task)}
        case e.ChecksFinished():
            return {"evidence": _with_evidence(state, event.tree, event.results)}
        case e.TaskAdopted():
            return {"merged": (*state.merged, event.task)}
        case e.MergeStarted():
            return {"candidates": event.candidate}
        case e.TaskMerged():
            return {
                "queue": _without(state.queue, event.task),
                "merged": (*state.merged, event.task),
                "tip": event.commit,
                # Where the tip was approved as it stands, no candidate was built.
                "tip_tree": state.tasks[event.task].candidate_tree or state.tip_tree,
                "notes": (*state.notes, event.note) if event.note else state.notes,
            }
        case _:
            return {}


def _without(queue: tuple[str, ...], task_id: str) -> tuple[str, ...]:
    return tuple(other for other in queue if other != task_id)


def _with_evidence(
    state: RunState, tree: str, results: tuple[e.CheckResult, ...]
) -> Mapping[str, Mapping[str, e.CheckResult]]:
    # What a passing check printed is in the logs; what a failing one printed is feedback.
    said = {
        result.command: replace(result, output="") if result.outcome is e.Outcome.PASS else result
        for result in results
    }
    return {**state.evidence, tree: {**state.evidence.get(tree, {}), **said}}
