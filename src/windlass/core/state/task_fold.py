"""What a fact changes in one task, except for its phase, which `transitions` decides.

Law: one arm for each fact and no default arm, so a new fact must get a meaning here.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TypeVar, assert_never

from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.plan import Task, digest_of
from windlass.core.state.model import (
    Acceptance,
    Attempt,
    Coaching,
    Merge,
    RunState,
    TaskState,
    Wait,
)
from windlass.core.state.transitions import (
    HELPLESS,
    IN_TIP,
    REVISED,
    TASK_TRANSITIONS,
    WITH_AGENT,
    Phase,
    next_phase,
)
from windlass.errors import IllegalEvent

_Work = TypeVar("_Work", Attempt, Coaching)
"""The work of one agent."""

_COUNTED = frozenset({"unchanged", "refused", "checks", "review"})
"""Causes of a return that use up a turn; conflicts have their own bound."""


def task_after(state: RunState, task: TaskState, event: e.TaskEvent | e.BatchEvent) -> TaskState:
    """The task after the fact. Raises IllegalEvent if the fact cannot happen to it now."""
    phase = next_phase(task.id, task.phase, event)
    after = _after(state, task, event)
    return after if isinstance(event, e.TaskResetUndone) else replace(after, phase=phase)


def _after(  # noqa: C901, PLR0912  one arm a fact
    state: RunState, task: TaskState, event: e.TaskEvent | e.BatchEvent
) -> TaskState:
    match event:
        case e.SnapshotStarted() | e.ChecksStarted() | e.TaskApproved():
            return task
        case e.TipTaken():
            return _tip_taken(task, event)
        case e.PlayerStarted():
            return _started(state, task, event)
        case e.PlayerFinished():
            last = replace(
                task.last,
                finished_at=event.at,
                summary=event.summary,
                usage=event.usage,
                question=event.question,
            )
            return replace(_with_last(task, last), failures={}, spent=task.spent + event.usage)
        case e.PlayerFailed() | e.CoachFailed():
            return _agent_failed(task, event)
        case e.SnapshotTaken():
            last = replace(
                task.last,
                kind=event.kind,
                commit=event.commit,
                tree=event.tree,
                changed=event.changed,
                files=event.files,
                created=event.created,
                deleted=event.deleted,
            )
            return replace(_with_last(task, last), check_runs=0)
        case e.SnapshotRefused():
            return _with_last(task, replace(task.last, refused=event.reason))
        case e.ChecksFinished():
            last = replace(task.last, results=event.results)
            return replace(_with_last(task, last), check_runs=task.check_runs + 1)
        case e.CoachStarted():
            new = Coaching(k=event.k, commit=event.commit, started_at=event.at)
            return _with_last(task, replace(task.last, coachings=(*task.last.coachings, new)))
        case e.CoachAnswered():
            return _coach_answered(task, event)
        case e.TurnReturned():
            return _turn_returned(task, event)
        case e.TaskAbandoned():
            return replace(task, question=event.reason, abandoned_at=event.at)
        case e.HelpNeeded():
            return replace(task, question=event.question)
        case e.WaitStarted():
            return _wait_started(task, event)
        case e.TimerFired():
            return replace(task, wait_until=None, limit_waits=waited(task, event.at))
        case e.CheckpointPassed():
            return replace(task, question=None, released=True)
        case e.Answered():
            answer = f"{task.question}\n\nAnswer: {event.text}" if task.question else event.text
            return replace(_helped(task), answers=(*task.answers, answer), failures={})
        case e.TaskAccepted():
            accepted = Acceptance(by=event.by, at=event.at, spec=event.spec)
            return replace(task, accepted=accepted)
        case e.TaskReopened():
            return _reopened(task, event)
        case e.TaskReset():
            return replace(_with_new_turns(task), before_reset=replace(task, before_reset=None))
        case e.TaskResetUndone():
            return _as_before_reset(task)
        case e.RedoUndone():
            return _as_merged_before(task)
        case e.TaskTaken():
            return _started(state, replace(_helped(task), first_turn=task.turn), event)
        case e.TaskGiven():
            last = replace(task.last, finished_at=event.at, summary=event.summary)
            return replace(_with_last(task, last), failures={})
        case e.MergeStarted():
            return replace(
                _without_candidate(task),
                candidate=event.candidate,
                candidate_onto=event.onto,
                clashes_with=None,
                check_runs=0,
                conflict="",
            )
        case e.MergeBuilt():
            return replace(task, candidate_commit=event.commit, candidate_tree=event.tree)
        case e.MergeConflicted():
            return replace(task, conflict=event.detail)
        case e.MergeSetAside():
            clash = task.candidate_onto if task.phase is Phase.CONFLICTED else None
            return replace(_without_candidate(task), clashes_with=clash)
        case e.TipMoveStarted():
            return replace(task, moving_as=task.moving_as or state.specs[task.id])
        case e.MergeStands():
            return replace(task, merge_commit=event.commit, merged_at=event.at, redoes=None)
        case e.TaskMerged() | e.TaskAdopted():
            return replace(
                task,
                merge_commit=event.commit,
                merged_at=event.at,
                merged_as=_merged_as(event, task.moving_as or state.specs[event.task]),
                moving_as=None,
                accepted=None,
                redoes=None,
            )
        case _:
            assert_never(event)


def interrupted(
    task: TaskState, event: e.RunResumed, *, rested: datetime, known: bool
) -> TaskState:
    """The task after its run was interrupted and taken over: no effect is under way any more.

    `rested` is when the run stopped; `known` says whether the lost agent's cost is known.
    """
    phase = TASK_TRANSITIONS[task.phase].get(e.RunResumed, task.phase)
    after = replace(task, failures={}, check_runs=0, limit_waits=waited(task, rested))
    if phase is not task.phase and task.phase in HELPLESS:
        after = _helped(after)
    if task.phase in WITH_AGENT:
        usage = e.Usage(known=known)
        if task.phase is Phase.PLAYING:
            last = _cut_off(task.last, "Player", event.at, usage)
        else:
            last = _with_coaching(task, _cut_off(task.last.coachings[-1], "Coach", event.at, usage))
        after = replace(_with_last(after, last), spent=task.spent + usage)
    return replace(after, phase=phase)


def waited(task: TaskState, until: datetime) -> tuple[Wait, ...]:
    """Its waits for a usage limit; an open one ends at that time."""
    return tuple(Wait(each.since, each.until or until) for each in task.limit_waits)


def begun_anew(task: TaskState) -> TaskState:
    """The task before it starts over from the tip."""
    return replace(
        _without_candidate(_helped(task)),
        begun_after=len(task.attempts),
        undone=0,
        feedback=None,
        clashes_with=None,
        merge_before=None,
        merge_commit=None,
        merged_at=None,
    )


def tried_again(
    scenarios: Iterable[str], tasks: Mapping[str, TaskState], tip_tree: str | None
) -> Mapping[str, TaskState]:
    """The tasks, with each scenario pending again that was tried on another tree than the tip's."""
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


def set_aside(task: TaskState) -> TaskState:
    """The task while it is not in the plan; a built merge is dropped, because the tip will move."""
    if task.phase not in {Phase.BUILT, Phase.CONFLICTED}:
        return task
    return replace(_without_candidate(task), phase=Phase.APPROVED)


def revised(task: TaskState) -> TaskState:
    """The task after its text changed: earlier judgements no longer hold."""
    if task.moving_as is not None:
        return task  # it may already be in the tip, with the text it was judged for
    if task.before_reset is not None:
        task = replace(task, before_reset=revised(task.before_reset))
    verdicts = len(task.attempts[-1].coachings) if task.attempts else 0
    to = REVISED.get(task.phase, task.phase)
    if to is task.phase:
        return replace(task, verdicts_before=verdicts)
    return replace(_without_candidate(task), phase=to, verdicts_before=verdicts, question=None)


def _merged_as(event: e.TaskMerged | e.TaskAdopted, spec: Task) -> Task | None:
    """The text it was merged for; None if git names another text, which is not known."""
    text = event.text if isinstance(event, e.TaskMerged) else ""
    return spec if text in {"", digest_of(spec)} else None


def _tip_taken(task: TaskState, event: e.TipTaken) -> TaskState:
    """The tip as an attempt without a Player; turn 1 is the first Player's."""
    tip = Attempt(
        n=event.n,
        turn=0,
        start=event.commit,
        onto=None,
        started_at=event.at,
        kind="snapshot",
        commit=event.commit,
        tree=event.tree,
    )
    return replace(task, attempts=(*task.attempts, tip), turn=0, verdicts_before=0)


def _started(state: RunState, task: TaskState, event: e.PlayerStarted | e.TaskTaken) -> TaskState:
    attempt = Attempt(
        n=event.n,
        turn=event.turn,
        start=event.start,
        onto=event.onto,
        started_at=event.at,
        by=event.by if isinstance(event, e.TaskTaken) else None,
    )
    first = len(task.attempts) == task.begun_after
    return replace(
        _without_candidate(task),
        attempts=(*task.attempts, attempt),
        verdicts_before=0,
        merged_before=len(state.merged) if first else task.merged_before,
        before_reset=None,
    )


def _agent_failed(task: TaskState, event: e.PlayerFailed | e.CoachFailed) -> TaskState:
    match event:
        case e.PlayerFailed():
            last = _failed(task.last, event)
        case e.CoachFailed():
            last = _with_coaching(task, _failed(task.last.coachings[-1], event))
        case _:
            assert_never(event)
    failures = {**task.failures, event.failure: task.failures.get(event.failure, 0) + 1}
    return replace(_with_last(task, last), failures=failures, spent=task.spent + event.usage)


def _failed(work: _Work, event: e.PlayerFailed | e.CoachFailed) -> _Work:
    return replace(
        work,
        finished_at=event.at,
        failure=event.failure,
        message=event.message,
        usage=work.usage + event.usage,
        retry_at=event.retry_at,
        jitter=event.jitter,
        setup=event.setup,
        unreached=event.unreached,
        lasting=event.lasting,
    )


def _cut_off(work: _Work, role: str, at: datetime, usage: e.Usage) -> _Work:
    message = f"the run ended while the {role} worked"
    return replace(
        work, finished_at=at, failure=e.Failure.INTERRUPTED, message=message, usage=usage
    )


def _coach_answered(task: TaskState, event: e.CoachAnswered) -> TaskState:
    coaching = replace(
        task.last.coachings[-1],
        finished_at=event.at,
        review=event.review,
        usage=event.usage,
        touched=event.touched,
        unshown=event.unshown,
    )
    last = _with_coaching(task, coaching)
    # The gate may yet find that the answer has no evidence, like the ones before it.
    counted = {each: n for each, n in task.failures.items() if each is e.Failure.INCONCLUSIVE}
    return replace(_with_last(task, last), failures=counted, spent=task.spent + event.usage)


def _turn_returned(task: TaskState, event: e.TurnReturned) -> TaskState:
    counted = event.cause in _COUNTED
    return replace(
        _with_last(task, replace(task.last, feedback=event.feedback)),
        feedback=event.feedback,
        turn=task.turn + counted,
        rounds=task.rounds + (not counted),
    )


def _wait_started(task: TaskState, event: e.WaitStarted) -> TaskState:
    limited = event.failure is e.Failure.USAGE_LIMIT
    waits = (*task.limit_waits, Wait(event.at)) if limited else task.limit_waits
    return replace(task, wait_until=event.until, limit_waits=waits)


def _reopened(task: TaskState, event: e.TaskReopened) -> TaskState:
    """Turn numbers go on, with a new allowance of turns."""
    stood = task.merge_commit if event.may_stand else None
    if task.phase is Phase.ABANDONED:
        after = replace(_helped(task), failures={}, first_turn=task.turn)
    else:
        redoes = Merge(
            commit=task.merge_commit,
            at=task.merged_at,
            begun_after=task.begun_after,
            attempts=len(task.counted),
        )
        after = replace(_with_new_turns(task), redoes=redoes)
    return replace(after, feedback=event.why or after.feedback, merge_before=stood)


def _with_new_turns(task: TaskState) -> TaskState:
    """From the tip, with new turns; numbers go on, because pins are written once."""
    turn = task.turn + bool(task.attempts)
    return replace(begun_anew(task), failures={}, turn=turn, first_turn=turn)


def _as_before_reset(task: TaskState) -> TaskState:
    """The task as it was before its reset; what it cost since stays spent."""
    before = task.before_reset
    if before is None:
        raise IllegalEvent(f"task {task.id!r} was not reset, or has started since")
    return replace(before, spent=task.spent, estimated_usd=task.estimated_usd)


def _as_merged_before(task: TaskState) -> TaskState:
    """The task with the merge that its redo was to replace; its later attempts stay counted."""
    if (merge := task.redoes) is None:
        raise IllegalEvent(f"task {task.id!r} is not being redone")
    return replace(
        _without_candidate(_helped(task)),
        merge_commit=merge.commit,
        merged_at=merge.at,
        begun_after=merge.begun_after,
        undone=len(task.attempts) - merge.attempts,
        merge_before=None,
        feedback=None,
        clashes_with=None,
        redoes=None,
        before_reset=None,
    )


def _helped(task: TaskState) -> TaskState:
    """A person has helped: every bound starts from zero."""
    return replace(task, question=None, rounds=0, check_runs=0, helped_after=len(task.attempts))


def _without_candidate(task: TaskState) -> TaskState:
    """The task without its merge under way."""
    return replace(
        task, candidate=None, candidate_commit=None, candidate_tree=None, candidate_onto=None
    )


def _with_coaching(task: TaskState, coaching: Coaching) -> Attempt:
    """The last attempt, with this in place of its last coaching."""
    return replace(task.last, coachings=(*task.last.coachings[:-1], coaching))


def _with_last(task: TaskState, attempt: Attempt) -> TaskState:
    """The task with this in place of its last attempt."""
    return replace(task, attempts=(*task.attempts[:-1], attempt))
