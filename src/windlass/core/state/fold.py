"""state = fold(events). Every field of the state is set here, or in task_fold, and nowhere else."""

from collections.abc import Iterable
from typing import assert_never, cast, get_args

from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.plan import critical_lengths, with_scenario
from windlass.core.state import budget, revision, staleness
from windlass.core.state.checks import Evidence, without_failures
from windlass.core.state.index import index_of, moved
from windlass.core.state.landing import landing_after
from windlass.core.state.layered import having
from windlass.core.state.model import Phases, Reopening, RunState, TaskState
from windlass.core.state.stages import looked_at_again, stage_looked_at, stage_settled
from windlass.core.state.stretches import rests_since, with_pause
from windlass.core.state.task_fold import interrupted, task_after, tried_again
from windlass.core.state.transitions import (
    IN_TIP,
    RUN_TRANSITIONS,
    Phase,
    next_run_phase,
)
from windlass.core.state.work import removes_tests
from windlass.errors import IllegalEvent

_OF_TASKS = frozenset(get_args(e.TaskEvent))
"""A set, because it is asked for every fact and is much faster than a union."""

_MOVES_SCENARIO = (
    e.TaskMerged,
    e.MergeStands,
    e.TaskReopened,
    e.RedoUndone,
    e.TaskReset,
    e.TaskResetUndone,
)
"""Facts after which a scenario may have to be tried again."""

_STILL_AWAITING = (e.HelpAwaited, e.StopRequested)
"""Facts after which a run that waits for a person still waits."""

_REDO = "{} is to be redone"
_ACCEPTED = "{} was accepted by {}; the tip has not passed its checks yet"


def fold(events: Iterable[e.Event]) -> RunState | None:
    """The state of the last run in these events."""
    state: RunState | None = None
    for event in events:
        state = apply(state, event)
    return state


def runs(events: Iterable[e.Event]) -> list[RunState]:
    """The last state of each run in the journal, oldest first."""
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
    """The state after the event."""
    if isinstance(event, e.RunStarted):
        return _started(event)
    if state is None:
        raise IllegalEvent(f"{type(event).__name__} came before any run was started")
    after = _applied(state, event)
    if after.awaiting and not isinstance(event, _STILL_AWAITING):
        return replace(after, awaiting="")
    return after


def _applied(state: RunState, event: e.Event) -> RunState:
    if isinstance(event, e.BatchEvent):
        for task_id in event.tasks:
            state = _apply_to_task(state, task_id, event)
        return state
    if type(event) in _OF_TASKS:
        of_task = cast("e.TaskEvent", event)
        return _apply_to_task(state, of_task.task, of_task)
    return replace(_course_after(state, cast("e.CourseEvent", event)), at=event.at)


def _started(event: e.RunStarted) -> RunState:
    plan = with_scenario(event.plan) if event.settings.e2e.run else event.plan
    tasks = {task.id: TaskState(id=task.id) for task in plan.tasks}
    estimates = {each.task: each.seconds for each in event.estimates}
    return RunState(
        run=event.run,
        plan=plan,
        settings=event.settings,
        configured=event.configured,
        passes_checkpoints=event.passes_checkpoints,
        attended=event.attended,
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


def _course_after(state: RunState, event: e.CourseEvent) -> RunState:  # noqa: C901, PLR0912  one arm a fact
    """The run after the fact, except for `at`."""
    match event:
        case e.RunResumed():
            return _resumed(state, event)
        case e.RunRecovered():
            return _recovered(state, event)
        case e.PlanRevised():
            return revision.revised(state, event)
        case e.HelpAwaited():
            return replace(state, awaiting=event.reason)
        case e.BaseAccepted():
            return replace(state, base_accepted=True)
        case e.StopRequested():
            return replace(state, stopping=event.by, stop_as=event.how)
        case e.RunEnded():
            return _ended(state, event)
        case e.SpendReserved() | e.SpendStreamed() | e.SpendSettled() | e.SpendRefused():
            return budget.with_spending(state, event)
        case e.HostsAsked():
            reached = sorted({*state.hosts_reached, *event.reached})
            refused = sorted({*state.hosts_refused, *event.refused})
            return replace(state, hosts_reached=tuple(reached), hosts_refused=tuple(refused))
        case e.BaselineStarted():
            return replace(state, phase=next_run_phase(state.phase, event))
        case e.BaselineFinished():
            phase = next_run_phase(state.phase, event)
            return replace(state, phase=phase, baseline=event.results)
        case e.VerificationStarted():
            return replace(state, phase=next_run_phase(state.phase, event))
        case e.VerificationFinished():
            return _verified(state, event)
        case e.StagePassed() | e.StageRetried():
            return stage_settled(state, event)
        case (
            e.LandRequested()
            | e.BaseLookStarted()
            | e.BaseSeen()
            | e.BaseMergeStarted()
            | e.BaseMergeBuilt()
            | e.BaseMergeConflicted()
            | e.BranchMoveStarted()
            | e.Landed()
            | e.LandRefused()
        ):
            return landing_after(state, event)
        case _:
            assert_never(event)


def _ended(state: RunState, event: e.RunEnded) -> RunState:
    """The run has ended; with a stale task it needs a person, even if an older version differs."""
    state, end, reason = budget.written_off(state), event.status, event.reason
    if end is e.RunEnd.COMPLETED and state.stale:
        end, reason = e.RunEnd.NEEDS_HUMAN, staleness.why(state.stale)
    return replace(state, ended=end, reason=reason, ended_at=event.at)


def _verified(state: RunState, event: e.VerificationFinished) -> RunState:
    return replace(
        stage_looked_at(state, event),
        phase=next_run_phase(state.phase, event),
        verification=event.results,
        evidence=_with_evidence(state, event.tree, event.results),
        tip_runs=state.tip_runs + 1,
    )


def _resumed(state: RunState, event: e.RunResumed) -> RunState:
    """No effect is under way any more; each phase that had one goes back to before it."""
    state, rested, known = budget.written_off(state), rests_since(state), state.metered
    tasks = {
        id_: interrupted(task, event, rested=rested, known=known)
        for id_, task in state.tasks.items()
    }
    after = replace(
        state,
        settings=event.settings,
        configured=event.configured,
        passes_checkpoints=event.passes_checkpoints,
        attended=event.attended,
        only=event.only,
        sandbox=event.sandbox,
        metered=event.metered,
        coach_commands=event.coach_commands,
        phase=RUN_TRANSITIONS[state.phase].get(e.RunResumed, state.phase),
        tasks=tasks,
        index=index_of(state.plan, Phases(tasks)),
        queue=revision.requeued(state.queue, tasks),
        evidence=_without_failures(state),
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
        short=None,
    )
    if event.settings.e2e.run and with_scenario(state.plan) is not state.plan:
        # A scenario that is enabled only now enters the plan like an edit.
        return revision.revised(after, e.PlanRevised(at=event.at, plan=state.plan))
    return after


def _recovered(state: RunState, event: e.RunRecovered) -> RunState:
    """What git does not show stays unknown; numbers go on, because pins are written once."""
    return replace(
        state,
        candidates=max(state.candidates, event.candidates),
        spent=state.spent + e.Usage(known=False),
        notes=(*state.notes, *event.notes),
        recovered=True,
    )


def _without_failures(state: RunState) -> Evidence:
    """The evidence without failures a person was asked about: resuming means they are fixed."""
    trees = (_doubtful(state.tasks[id_]) for id_ in state.index.live)
    return without_failures(state.evidence, (*trees, state.tip_tree))


def _doubtful(task: TaskState) -> str | None:
    """The tree whose check results a person was asked about."""
    if task.phase is Phase.HELP_TO_CHECK:
        return task.last.tree
    return task.candidate_tree if task.phase is Phase.HELP_TO_MERGE else None


def _apply_to_task(state: RunState, id_: str, event: e.TaskEvent | e.BatchEvent) -> RunState:
    if id_ not in state.tasks:
        raise IllegalEvent(f"there is no task {id_!r} in plan {state.plan.id!r}")
    before = state.tasks[id_]
    task = task_after(state, before, event)
    if task.phase in IN_TIP:
        task = staleness.settled(task, state.specs[id_])
    if isinstance(event, e.PlayerFinished | e.PlayerFailed | e.CoachAnswered | e.CoachFailed):
        guessed = budget.estimated_usd(event.usage)
        task = replace(task, estimated_usd=task.estimated_usd + guessed)
    tasks = having(state.tasks, task.id, task)
    after = replace(
        _run_after(state, event),
        at=event.at,
        tasks=tasks,
        index=moved(state.index, state.plan, Phases(tasks), task.id, before.phase),
    )
    if isinstance(event, _MOVES_SCENARIO):
        tried = tried_again(after.index.scenarios, after.tasks, after.tip_tree)
        if tried is not after.tasks:
            return replace(after, tasks=tried, index=index_of(after.plan, Phases(tried)))
    return after


def _run_after(  # noqa: C901, PLR0912  one arm a fact
    state: RunState, event: e.TaskEvent | e.BatchEvent
) -> RunState:
    """The run after a fact about one of its tasks, except for the task itself."""
    match event:
        case e.PlayerFinished() | e.PlayerFailed() | e.CoachAnswered() | e.CoachFailed():
            estimated = state.estimated_usd + budget.estimated_usd(event.usage)
            return replace(state, spent=state.spent + event.usage, estimated_usd=estimated)
        case e.TaskApproved():
            return replace(state, queue=(*state.queue, event.task))
        case e.TaskAccepted():
            return _accepted(state, event) if state.ended is not None else state
        case e.TaskReopened() | e.TaskReset():
            queue = _without(state.queue, event.task)
            return replace(_unfinished(state, event.task), queue=queue)
        case e.TaskResetUndone():
            before = state.tasks[event.task].before_reset
            waits = before is not None and before.phase is Phase.APPROVED
            queue = (*state.queue, event.task) if waits else state.queue
            return replace(_as_it_had_ended(state, event.task), queue=queue)
        case e.RedoUndone():
            queue = _without(state.queue, event.task)
            return replace(_as_it_had_ended(state, event.task), queue=queue)
        case e.Answered():
            return _answered(state, state.tasks[event.task])
        case e.TurnReturned() | e.HelpNeeded() | e.TaskTaken():
            return replace(state, queue=_without(state.queue, event.task))
        case e.ChecksFinished():
            return replace(state, evidence=_with_evidence(state, event.tree, event.results))
        case e.TaskAdopted():
            return replace(state, merged=(*state.merged, event.task))
        case e.MergeStarted():
            return replace(state, candidates=event.candidate)
        case e.TaskMerged():
            return _merged(state, event)
        case (
            e.TipTaken()
            | e.PlayerStarted()
            | e.SnapshotStarted()
            | e.SnapshotTaken()
            | e.SnapshotRefused()
            | e.ChecksStarted()
            | e.CoachStarted()
            | e.TaskAbandoned()
            | e.CheckpointPassed()
            | e.WaitStarted()
            | e.TimerFired()
            | e.MergeBuilt()
            | e.MergeConflicted()
            | e.MergeSetAside()
            | e.MergeStands()
            | e.TipMoveStarted()
            | e.TaskGiven()
        ):
            return state
        case _:
            assert_never(event)


def _merged(state: RunState, event: e.TaskMerged) -> RunState:
    tip, tree = event.tip or event.commit, _tip_tree(state, event)
    return replace(
        state,
        queue=_without(state.queue, event.task),
        merged=(*state.merged, event.task),
        # A scenario approved on the tip itself has no merge and no number.
        merges=state.merges + bool(event.candidate),
        tip=tip,
        tip_tree=tree,
        tip_trees=having(state.tip_trees, tip, tree or ""),
        tip_runs=0,
        tests_removed=state.tests_removed or _removes_tests(state, event.task),
        notes=(*state.notes, event.note) if event.note else state.notes,
    )


def _accepted(state: RunState, event: e.TaskAccepted) -> RunState:
    """A run that ended because of a stale task can go on, unless another task is stale too."""
    if left := _without(state.stale, event.task):
        return replace(state, ended=e.RunEnd.NEEDS_HUMAN, reason=staleness.why(left))
    reason = _ACCEPTED.format(event.task, event.by)
    return replace(state, ended=e.RunEnd.STOPPED, reason=reason)


def _answered(state: RunState, task: TaskState) -> RunState:
    """The cause is fixed: checks run again, and a task that waited to be merged waits again."""
    if (tree := _doubtful(task)) is None:
        return state
    waits = task.phase is Phase.HELP_TO_MERGE
    queue = (*state.queue, task.id) if waits else state.queue
    return replace(state, evidence=without_failures(state.evidence, (tree,)), queue=queue)


def _unfinished(state: RunState, task_id: str) -> RunState:
    """A run that had ended, or was only landing, has work again."""
    landing = state.landing if state.ended is None else None
    end = landing.then if landing is not None else state.ended
    if end is None:
        return state
    reason = landing.reason if landing is not None else state.reason
    was = state.reopening or Reopening(ended=end, reason=reason)
    after = _ending(state, e.RunEnd.STOPPED, _REDO.format(task_id))
    return replace(after, reopening=replace(was, tasks=(*was.tasks, task_id)))


def _as_it_had_ended(state: RunState, task_id: str) -> RunState:
    """The run with its earlier end, once no reopened task is left."""
    was = state.reopening
    if was is None or task_id not in was.tasks:
        return state
    if left := _without(was.tasks, task_id):
        after = _ending(state, e.RunEnd.STOPPED, _REDO.format(left[-1]))
        return replace(after, reopening=replace(was, tasks=left))
    return replace(_ending(state, was.ended, was.reason), reopening=None)


def _ending(state: RunState, end: e.RunEnd, reason: str) -> RunState:
    """The run with this end; a run that is landing gets it after the landing."""
    if state.landing is not None and state.ended is None:
        return replace(state, landing=replace(state.landing, then=end, reason=reason))
    return replace(state, ended=end, reason=reason)


def _tip_tree(state: RunState, event: e.TaskMerged) -> str | None:
    """The tree of the batch's last merge; the old one if the tip itself was approved."""
    tip = event.tip or event.commit
    moving = (state.tasks[id_] for id_ in state.index.live)
    return next((t.candidate_tree for t in moving if t.candidate_commit == tip), state.tip_tree)


def _removes_tests(state: RunState, task_id: str) -> bool:
    task = state.tasks[task_id]
    return removes_tests(task.moving_as or state.specs[task_id], task)


def _without(queue: tuple[str, ...], task_id: str) -> tuple[str, ...]:
    return tuple(other for other in queue if other != task_id)


def _with_evidence(state: RunState, tree: str, results: tuple[e.CheckResult, ...]) -> Evidence:
    before = state.evidence.get(tree, {})
    new = {result.command: _remembered(result, before.get(result.command)) for result in results}
    return having(state.evidence, tree, {**before, **new})


def _remembered(result: e.CheckResult, before: e.CheckResult | None) -> e.CheckResult:
    answers = before.answers if before is not None else ()
    if result.outcome is not e.Outcome.ABSENT:
        answers = (*answers, result.outcome)
    # The output of a passing check is in the logs; that of a failing one is feedback.
    output = "" if result.outcome is e.Outcome.PASS else result.output
    return replace(result, output=output, answers=answers)
