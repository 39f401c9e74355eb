"""What a fact changes in one task. The phase is the table's to say; all else is said here.

Law: one arm for each fact, and no arm for the rest: a fact that is new must be given its meaning.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import assert_never

from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.plan import Task, digest_of
from windlass.core.state.model import Acceptance, Attempt, Coaching, RunState, TaskState, Wait
from windlass.core.state.transitions import (
    HELPLESS,
    REVISED,
    TASK_TRANSITIONS,
    WITH_AGENT,
    Phase,
    next_phase,
)
from windlass.errors import IllegalEvent

_COUNTED = frozenset({"unchanged", "refused", "checks", "review"})
"""Causes of a return that use up a turn; conflicts have a bound of their own."""


def task_after(state: RunState, task: TaskState, event: e.TaskEvent | e.BatchEvent) -> TaskState:
    """The task once the fact has happened; raises for one that cannot happen to it now."""
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
            attempts = _amended(
                task,
                finished_at=event.at,
                summary=event.summary,
                usage=event.usage,
                question=event.question,
            )
            return replace(task, attempts=attempts, failures={}, spent=task.spent + event.usage)
        case e.PlayerFailed():
            return _player_failed(task, event)
        case e.SnapshotTaken():
            attempts = _amended(
                task,
                kind=event.kind,
                commit=event.commit,
                tree=event.tree,
                changed=event.changed,
                files=event.files,
                created=event.created,
                deleted=event.deleted,
            )
            return replace(task, attempts=attempts, check_runs=0)
        case e.SnapshotRefused():
            return replace(task, attempts=_amended(task, refused=event.reason))
        case e.ChecksFinished():
            attempts = _amended(task, results=event.results)
            return replace(task, attempts=attempts, check_runs=task.check_runs + 1)
        case e.CoachStarted():
            new = Coaching(k=event.k, commit=event.commit, started_at=event.at)
            return replace(task, attempts=_amended(task, coachings=(*task.last.coachings, new)))
        case e.CoachAnswered():
            return _coach_answered(task, event)
        case e.CoachFailed():
            return _coach_failed(task, event)
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
            told = f"{task.question}\n\nAnswer: {event.text}" if task.question else event.text
            return replace(_helped(task), answers=(*task.answers, told), failures={})
        case e.TaskAccepted():
            accepted = Acceptance(by=event.by, at=event.at, spec=event.spec)
            return replace(task, accepted=accepted)
        case e.TaskReopened():
            return _reopened(task, event)
        case e.TaskReset():
            return replace(_begun_once_more(task), before_reset=replace(task, before_reset=None))
        case e.TaskResetUndone():
            return _as_before_reset(task)
        case e.TaskTaken():
            return _started(state, replace(_helped(task), first_turn=task.turn), event)
        case e.TaskGiven():
            attempts = _amended(task, finished_at=event.at, summary=event.summary)
            return replace(task, attempts=attempts, failures={})
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
            return replace(task, merge_commit=event.commit, merged_at=event.at)
        case e.TaskMerged() | e.TaskAdopted():
            return replace(
                task,
                merge_commit=event.commit,
                merged_at=event.at,
                merged_as=_merged_as(event, task.moving_as or state.specs[event.task]),
                moving_as=None,
                accepted=None,
            )
        case _:
            assert_never(event)


def interrupted(
    task: TaskState, event: e.RunResumed, *, rested: datetime, known: bool
) -> TaskState:
    """The task once nothing is under way any more, since the run came to rest at that moment.

    `known` says whether what it cost still is.
    """
    phase = TASK_TRANSITIONS[task.phase].get(e.RunResumed, task.phase)
    after = replace(task, failures={}, check_runs=0, limit_waits=waited(task, rested))
    if phase is not task.phase and task.phase in HELPLESS:
        after = _helped(after)
    if task.phase in WITH_AGENT:
        after = replace(after, spent=task.spent + e.Usage(known=known))
    if task.phase is Phase.PLAYING:
        attempts = _amended(
            task,
            finished_at=event.at,
            failure=e.Failure.INTERRUPTED,
            message="the run ended while the Player worked",
            usage=e.Usage(known=known),
        )
        after = replace(after, attempts=attempts)
    if task.phase is Phase.REVIEWING:
        lost = replace(
            task.last.coachings[-1],
            finished_at=event.at,
            failure=e.Failure.INTERRUPTED,
            message="the run ended while the Coach worked",
            usage=e.Usage(known=known),
        )
        after = replace(after, attempts=_with_last_coaching(task, lost))
    return replace(after, phase=phase)


def waited(task: TaskState, until: datetime) -> tuple[Wait, ...]:
    """Its waits for a usage limit, of which none goes on beyond that moment."""
    return tuple(Wait(each.since, each.until or until) for each in task.limit_waits)


def begun_anew(task: TaskState) -> TaskState:
    """What there is of a task that begins once more, from the tip as it will be then."""
    return replace(
        _without_candidate(_helped(task)),
        begun_after=len(task.attempts),
        feedback=None,
        clashes_with=None,
        merge_before=None,
        merge_commit=None,
        merged_at=None,
    )


def set_aside(task: TaskState) -> TaskState:
    """The task while the plan does without it: a merge onto the tip of today is none tomorrow."""
    if task.phase not in {Phase.BUILT, Phase.CONFLICTED}:
        return task
    return replace(_without_candidate(task), phase=Phase.APPROVED)


def revised(task: TaskState) -> TaskState:
    """The task once it means something else: nothing that was judged before holds any more."""
    if task.moving_as is not None:
        return task  # it may be in the tip already, as what it was judged for
    if task.before_reset is not None:
        task = replace(task, before_reset=revised(task.before_reset))
    verdicts = len(task.attempts[-1].coachings) if task.attempts else 0
    to = REVISED.get(task.phase, task.phase)
    if to is task.phase:
        return replace(task, verdicts_before=verdicts)
    return replace(_without_candidate(task), phase=to, verdicts_before=verdicts, question=None)


def _merged_as(event: e.TaskMerged | e.TaskAdopted, spec: Task) -> Task | None:
    """The text it was merged for; None where git says that it was another, which no one knows."""
    text = event.text if isinstance(event, e.TaskMerged) else ""
    return spec if text in {"", digest_of(spec)} else None


def _tip_taken(task: TaskState, event: e.TipTaken) -> TaskState:
    """The tip as an attempt without a Player; the first turn is the first Player's."""
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


def _player_failed(task: TaskState, event: e.PlayerFailed) -> TaskState:
    attempts = _amended(
        task,
        finished_at=event.at,
        failure=event.failure,
        message=event.message,
        usage=event.usage,
        retry_at=event.retry_at,
        jitter=event.jitter,
    )
    failures = _one_more(task.failures, event.failure)
    return replace(task, attempts=attempts, failures=failures, spent=task.spent + event.usage)


def _coach_answered(task: TaskState, event: e.CoachAnswered) -> TaskState:
    answered = replace(
        task.last.coachings[-1],
        finished_at=event.at,
        review=event.review,
        usage=event.usage,
        touched=event.touched,
        unshown=event.unshown,
    )
    attempts = _with_last_coaching(task, answered)
    return replace(task, attempts=attempts, failures={}, spent=task.spent + event.usage)


def _coach_failed(task: TaskState, event: e.CoachFailed) -> TaskState:
    failed = replace(
        task.last.coachings[-1],
        finished_at=event.at,
        failure=event.failure,
        message=event.message,
        usage=event.usage,
        retry_at=event.retry_at,
        jitter=event.jitter,
    )
    attempts = _with_last_coaching(task, failed)
    failures = _one_more(task.failures, event.failure)
    return replace(task, attempts=attempts, failures=failures, spent=task.spent + event.usage)


def _turn_returned(task: TaskState, event: e.TurnReturned) -> TaskState:
    counted = event.cause in _COUNTED
    return replace(
        task,
        attempts=_amended(task, feedback=event.feedback),
        feedback=event.feedback,
        turn=task.turn + counted,
        rounds=task.rounds + (not counted),
    )


def _wait_started(task: TaskState, event: e.WaitStarted) -> TaskState:
    limited = event.failure is e.Failure.USAGE_LIMIT
    waits = (*task.limit_waits, Wait(event.at)) if limited else task.limit_waits
    return replace(task, wait_until=event.until, limit_waits=waits)


def _reopened(task: TaskState, event: e.TaskReopened) -> TaskState:
    """Turns go on counting, and a new allowance of them begins."""
    stood = task.merge_commit if event.may_stand else None
    if task.phase is Phase.ABANDONED:
        after = replace(_helped(task), failures={}, first_turn=task.turn)
    else:
        after = _begun_once_more(task)
    return replace(after, feedback=event.why or after.feedback, merge_before=stood)


def _begun_once_more(task: TaskState) -> TaskState:
    """From the tip, with a new allowance of turns; numbers go on, for pins are written once."""
    turn = task.turn + bool(task.attempts)
    return replace(begun_anew(task), failures={}, turn=turn, first_turn=turn)


def _as_before_reset(task: TaskState) -> TaskState:
    """The task as it was when a person had it begin anew; what it cost since stays spent."""
    before = task.before_reset
    if before is None:
        raise IllegalEvent(f"task {task.id!r} was not reset, or was begun since")
    return replace(before, spent=task.spent, estimated_usd=task.estimated_usd)


def _helped(task: TaskState) -> TaskState:
    """A person has looked: every bound begins anew."""
    return replace(task, question=None, rounds=0, check_runs=0, helped_after=len(task.attempts))


def _without_candidate(task: TaskState) -> TaskState:
    """The task before any merge of it is built."""
    return replace(
        task, candidate=None, candidate_commit=None, candidate_tree=None, candidate_onto=None
    )


def _one_more(failures: Mapping[e.Failure, int], failure: e.Failure) -> dict[e.Failure, int]:
    return {**failures, failure: failures.get(failure, 0) + 1}


def _with_last_coaching(task: TaskState, coaching: Coaching) -> tuple[Attempt, ...]:
    return _amended(task, coachings=(*task.last.coachings[:-1], coaching))


def _amended(task: TaskState, **changes: object) -> tuple[Attempt, ...]:
    return (*task.attempts[:-1], replace(task.attempts[-1], **changes))
