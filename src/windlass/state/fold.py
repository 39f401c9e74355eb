"""state = fold(events). Every field of the state is set here, or in task_fold, and nowhere else."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, cast, get_args

from msgspec.structs import replace

from windlass.errors import IllegalEvent
from windlass.events import model as e
from windlass.plan import critical_lengths, with_scenario
from windlass.state import revision, staleness
from windlass.state.doubts import forgiven
from windlass.state.index import index_of, moved
from windlass.state.landing import land_changes
from windlass.state.layered import having
from windlass.state.model import Phases, Reopening, RunState, TaskState
from windlass.state.stages import looked_at_again, stage_changes
from windlass.state.stretches import rests_since, with_pause
from windlass.state.task_fold import as_before_reset, interrupted, task_changes
from windlass.state.transitions import IN_TIP, RUN_TRANSITIONS, Phase, next_phase, next_run_phase
from windlass.state.trials import tried_again
from windlass.state.work import removes_tests

_OF_TASKS = frozenset(get_args(e.TaskEvent))
"""Asked of every fact, and answered by a set in a fraction of the time a union takes."""

_PAID = (e.PlayerFinished, e.PlayerFailed, e.CoachAnswered, e.CoachFailed)
"""Facts that tell what an agent has used up by its own account."""

_MOVES_SCENARIO = (e.TaskMerged, e.MergeStands, e.TaskReopened, e.TaskReset, e.TaskResetUndone)
"""Facts after which a scenario may have to be tried again."""

_ONCE_MORE = "{} is to be done once more"
_ACCEPTED = "{} was accepted by {}; the tip has yet to pass its checks"


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
    if isinstance(event, e.BatchEvent):
        for task_id in event.tasks:
            state = _apply_to_task(state, task_id, event)
        return state
    if type(event) in _OF_TASKS:
        of_task = cast("e.TaskEvent", event)
        return _apply_to_task(state, of_task.task, of_task)
    return _apply_to_run(state, cast("e.CourseEvent", event))


def _started(event: e.RunStarted) -> RunState:
    plan = with_scenario(event.plan) if event.settings.e2e.run else event.plan
    tasks = {task.id: TaskState(id=task.id) for task in plan.tasks}
    estimates = {each.task: each.seconds for each in event.estimates}
    return RunState(
        run=event.run,
        plan=plan,
        settings=event.settings,
        only=event.only,
        sandbox=event.sandbox,
        metered=event.metered,
        coach_commands=event.coach_commands,
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


def _apply_to_run(state: RunState, event: e.CourseEvent) -> RunState:  # noqa: C901  one arm a fact
    match event:
        case e.RunResumed():
            return _resumed(state, event)
        case e.RunRecovered():
            return _recovered(state, event)
        case e.PlanRevised():
            return revision.revised(state, event)
        case e.StopRequested():
            return replace(state, at=event.at, stopping=event.by, stop_as=event.how)
        case e.RunEnded():
            return _ended(state, event)
        case e.SpendReserved() | e.SpendSettled():
            return _with_spending(state, event)
        case e.HostsAsked():
            reached = sorted({*state.hosts_reached, *event.reached})
            refused = sorted({*state.hosts_refused, *event.refused})
            return replace(
                state, at=event.at, hosts_reached=tuple(reached), hosts_refused=tuple(refused)
            )
        case e.BaselineStarted() | e.BaselineFinished():
            return _looked(state, event)
        case e.VerificationStarted() | e.VerificationFinished():
            return _looked(state, event)
        case e.StagePassed() | e.StageRetried():
            return replace(state, at=event.at, **stage_changes(state, event))
        case _:
            return replace(state, at=event.at, **land_changes(state, event))


def _ended(state: RunState, event: e.RunEnded) -> RunState:
    """The run has ended; with a stale task it needs a person, whatever an older version said."""
    end, reason = event.status, event.reason
    if end is e.RunEnd.COMPLETED and state.stale:
        end, reason = e.RunEnd.NEEDS_HUMAN, staleness.why(state.stale)
    return replace(state, at=event.at, ended=end, reason=reason, ended_at=event.at)


_Looks: TypeAlias = (
    e.BaselineStarted | e.BaselineFinished | e.VerificationStarted | e.VerificationFinished
)


def _looked(state: RunState, event: _Looks) -> RunState:
    """Windlass looks, or has looked, at a whole tree: the base's, or the tip's."""
    changes: dict[str, Any] = {}
    if isinstance(event, e.BaselineFinished):
        changes = {"baseline": event.results}
    elif isinstance(event, e.VerificationFinished):
        changes = {
            "verification": event.results,
            "evidence": _with_evidence(state, event.tree, event.results),
            "tip_runs": state.tip_runs + 1,
            **stage_changes(state, event),
        }
    return replace(state, at=event.at, phase=next_run_phase(state.phase, event), **changes)


def _resumed(state: RunState, event: e.RunResumed) -> RunState:
    """Nothing is under way any more; every phase that had an effect goes back to before it."""
    rested, known = rests_since(state), state.metered
    tasks = {
        id_: interrupted(task, event, rested=rested, known=known)
        for id_, task in state.tasks.items()
    }
    after = replace(
        state,
        at=event.at,
        settings=event.settings,
        only=event.only,
        sandbox=event.sandbox,
        metered=event.metered,
        coach_commands=event.coach_commands,
        phase=RUN_TRANSITIONS[state.phase].get(e.RunResumed, state.phase),
        tasks=tasks,
        index=index_of(state.plan, Phases(tasks)),
        queue=revision.requeued(state.queue, tasks),
        evidence=_forgiven(state),
        tip_runs=0,
        looks=looked_at_again(state.looks),
        landing=None,
        stopping=None,
        ended=None,
        reason="",
        ended_at=None,
        reopening=None,
        pauses=with_pause(state, event.at),
        resumes=state.resumes + 1,
        base_moved_to=event.base_moved_to,
    )
    if event.settings.e2e.run and with_scenario(state.plan) is not state.plan:
        # A scenario that is asked for only now comes into the plan as by an edit.
        return revision.revised(after, e.PlanRevised(at=event.at, plan=state.plan))
    return after


def _recovered(state: RunState, event: e.RunRecovered) -> RunState:
    """What git cannot tell stays unknown; numbers go on, for pins are written once."""
    return replace(
        state,
        at=event.at,
        candidates=max(state.candidates, event.candidates),
        spent=state.spent + e.Usage(known=False),
        notes=(*state.notes, *event.notes),
    )


def _forgiven(state: RunState) -> Mapping[str, Mapping[str, e.CheckResult]]:
    """What did not pass where a person was needed is asked again: resuming says it is mended."""
    trees = (_doubtful(state.tasks[id_]) for id_ in state.index.live)
    return forgiven(state.evidence, (*trees, state.tip_tree))


def _doubtful(task: TaskState) -> str | None:
    """The tree that a person was asked about, for what checks said of it."""
    match task.phase:
        case Phase.HELP_TO_CHECK:
            return task.last.tree
        case Phase.HELP_TO_MERGE:
            return task.candidate_tree
        case _:
            return None


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
    tasks = having(state.tasks, task.id, task)
    return replace(state, at=event.at, tasks=tasks, held=held, spent=spent)


def _apply_to_task(state: RunState, id_: str, event: e.TaskEvent | e.BatchEvent) -> RunState:
    if id_ not in state.tasks:
        raise IllegalEvent(f"there is no task {id_!r} in plan {state.plan.id!r}")
    before = state.tasks[id_]
    phase = next_phase(before.id, before.phase, event)
    task = replace(before, phase=phase, **task_changes(state, before, event))
    if isinstance(event, e.TaskResetUndone):
        task = as_before_reset(before)
    if task.phase in IN_TIP:
        task = staleness.settled(task, state.specs[id_])
    tasks = having(state.tasks, task.id, task)
    after = replace(
        state,
        at=event.at,
        tasks=tasks,
        index=moved(state.index, state.plan, Phases(tasks), task.id, before.phase),
        spent=state.spent + event.usage if isinstance(event, _PAID) else state.spent,
        **_run_changes(state, event),
    )
    if isinstance(event, _MOVES_SCENARIO):
        tried = tried_again(after.index.scenarios, after.tasks, after.tip_tree)
        if tried is not after.tasks:
            return replace(after, tasks=tried, index=index_of(after.plan, Phases(tried)))
    return after


def _run_changes(  # noqa: C901  one arm a fact
    state: RunState, event: e.TaskEvent | e.BatchEvent
) -> dict[str, Any]:
    match event:
        case e.TaskApproved():
            return {"queue": (*state.queue, event.task)}
        case e.TaskAccepted() if state.ended is not None:
            return _accepted(state, event)
        case e.TaskReopened() | e.TaskReset():
            return {"queue": _without(state.queue, event.task), **_unfinished(state, event.task)}
        case e.TaskResetUndone():
            before = state.tasks[event.task].before_reset
            waits = before is not None and before.phase is Phase.APPROVED
            queue = {"queue": (*state.queue, event.task)} if waits else {}
            return {**queue, **_as_it_had_ended(state, event.task)}
        case e.Answered():
            return _answered(state, state.tasks[event.task])
        case e.TurnReturned() | e.HelpNeeded() | e.TaskTaken():
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
                # What was approved as it stood on the tip took none, and has no number.
                "merges": state.merges + bool(event.candidate),
                "tip": event.tip or event.commit,
                "tip_tree": (tree := _tip_tree(state, event)),
                "tip_trees": having(state.tip_trees, event.tip or event.commit, tree or ""),
                "tip_runs": 0,
                "tests_removed": state.tests_removed or _removes_tests(state, event.task),
                "notes": (*state.notes, event.note) if event.note else state.notes,
            }
        case _:
            return {}


def _accepted(state: RunState, event: e.TaskAccepted) -> dict[str, Any]:
    """A run that had ended for want of this word can go on, unless other tasks want one too."""
    if left := _without(state.stale, event.task):
        return {"ended": e.RunEnd.NEEDS_HUMAN, "reason": staleness.why(left)}
    return {"ended": e.RunEnd.STOPPED, "reason": _ACCEPTED.format(event.task, event.by)}


def _answered(state: RunState, task: TaskState) -> dict[str, Any]:
    """What was asked for is mended: checks are asked again, and who waited to be merged waits."""
    if (tree := _doubtful(task)) is None:
        return {}
    again = {"evidence": forgiven(state.evidence, (tree,))}
    waits = task.phase is Phase.HELP_TO_MERGE
    return {**again, "queue": (*state.queue, task.id)} if waits else again


def _unfinished(state: RunState, task_id: str) -> dict[str, Any]:
    """A run that had ended, or that was only landing, has something to do again."""
    landing = state.landing if state.ended is None else None
    end = landing.then if landing is not None else state.ended
    if end is None:
        return {}
    reason = landing.reason if landing is not None else state.reason
    was = state.reopening or Reopening(ended=end, reason=reason)
    changes = _ends(state, e.RunEnd.STOPPED, _ONCE_MORE.format(task_id))
    return {**changes, "reopening": replace(was, tasks=(*was.tasks, task_id))}


def _as_it_had_ended(state: RunState, task_id: str) -> dict[str, Any]:
    """The end that the run had come to, once nothing is to be done again any more."""
    was = state.reopening
    if was is None or task_id not in was.tasks:
        return {}
    if left := _without(was.tasks, task_id):
        changes = _ends(state, e.RunEnd.STOPPED, _ONCE_MORE.format(left[-1]))
        return {**changes, "reopening": replace(was, tasks=left)}
    return {**_ends(state, was.ended, was.reason), "reopening": None}


def _ends(state: RunState, end: e.RunEnd, reason: str) -> dict[str, Any]:
    """That end: the run's own, or the one it comes to after its landing."""
    if state.landing is not None and state.ended is None:
        return {"landing": replace(state.landing, then=end, reason=reason)}
    return {"ended": end, "reason": reason}


def _tip_tree(state: RunState, event: e.TaskMerged) -> str | None:
    """The tree of the last of the batch; where the tip was approved as it stands none was built."""
    tip = event.tip or event.commit
    moving = (state.tasks[id_] for id_ in state.index.live)
    return next((t.candidate_tree for t in moving if t.candidate_commit == tip), state.tip_tree)


def _removes_tests(state: RunState, task_id: str) -> bool:
    task = state.tasks[task_id]
    return removes_tests(task.moving_as or state.specs[task_id], task)


def _without(queue: tuple[str, ...], task_id: str) -> tuple[str, ...]:
    return tuple(other for other in queue if other != task_id)


def _with_evidence(
    state: RunState, tree: str, results: tuple[e.CheckResult, ...]
) -> Mapping[str, Mapping[str, e.CheckResult]]:
    before = state.evidence.get(tree, {})
    said = {result.command: _remembered(result, before.get(result.command)) for result in results}
    return having(state.evidence, tree, {**before, **said})


def _remembered(result: e.CheckResult, before: e.CheckResult | None) -> e.CheckResult:
    answers = before.answers if before is not None else ()
    if result.outcome is not e.Outcome.ABSENT:
        answers = (*answers, result.outcome)
    # What a passing check printed is in the logs; what a failing one printed is feedback.
    output = "" if result.outcome is e.Outcome.PASS else result.output
    return replace(result, output=output, answers=answers)
