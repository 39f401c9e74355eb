"""What a fact changes in one task. The phase is the table's to say; all else is said here."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, assert_never

from msgspec.structs import replace

from windlass.errors import IllegalEvent
from windlass.events import model as e
from windlass.plan import Task, digest_of
from windlass.state.model import Acceptance, Attempt, Coaching, RunState, TaskState, Wait
from windlass.state.transitions import HELPLESS, REVISED, TASK_TRANSITIONS, WITH_AGENT, Phase

_COUNTED = frozenset({"unchanged", "refused", "checks", "review"})
"""Causes of a return that use up a turn; conflicts have a bound of their own."""

_NO_CANDIDATE: Mapping[str, None] = MappingProxyType(
    dict.fromkeys(("candidate", "candidate_commit", "candidate_tree", "candidate_onto"))
)
"""What is known of a merge before any is built."""


def interrupted(
    task: TaskState, event: e.RunResumed, *, rested: datetime, known: bool
) -> TaskState:
    """The task once nothing is under way any more, since the run came to rest at that moment.

    `known` says whether what it cost still is.
    """
    to = TASK_TRANSITIONS[task.phase].get(e.RunResumed, task.phase)
    changes: dict[str, Any] = {"failures": {}, "check_runs": 0}
    changes["limit_waits"] = waited(task, rested)
    if to is not task.phase and task.phase in HELPLESS:
        changes |= _helped(task)
    if task.phase in WITH_AGENT:
        changes["spent"] = task.spent + e.Usage(known=known)
    if task.phase is Phase.PLAYING:
        changes["attempts"] = _amended(
            task,
            finished_at=event.at,
            failure=e.Failure.INTERRUPTED,
            message="the run ended while the Player worked",
            usage=e.Usage(known=known),
        )
    if task.phase is Phase.REVIEWING:
        lost = replace(
            task.last.coachings[-1],
            finished_at=event.at,
            failure=e.Failure.INTERRUPTED,
            message="the run ended while the Coach worked",
            usage=e.Usage(known=known),
        )
        changes["attempts"] = _amended(task, coachings=(*task.last.coachings[:-1], lost))
    return replace(task, phase=to, **changes)


def waited(task: TaskState, until: datetime) -> tuple[Wait, ...]:
    """Its waits for a usage limit, of which none goes on beyond that moment."""
    return tuple(Wait(each.since, each.until or until) for each in task.limit_waits)


def _helped(task: TaskState) -> dict[str, Any]:
    """A person has looked: every bound begins anew."""
    return {
        "question": None,
        "rounds": 0,
        "check_runs": 0,
        "helped_after": len(task.attempts),
    }


def task_changes(  # noqa: C901  one arm a fact
    state: RunState, task: TaskState, event: e.TaskEvent | e.BatchEvent
) -> dict[str, Any]:
    """The fields of the task that the fact sets, but for its phase."""
    match event:
        case e.TipTaken():
            return _tip_taken(task, event)
        case e.PlayerStarted():
            return _player_started(state, task, event)
        case e.PlayerFinished():
            attempts = _amended(
                task,
                finished_at=event.at,
                summary=event.summary,
                usage=event.usage,
                question=event.question,
            )
            return {"attempts": attempts, "failures": {}, "spent": task.spent + event.usage}
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
            return {"attempts": attempts, "check_runs": 0}
        case e.SnapshotRefused():
            return {"attempts": _amended(task, refused=event.reason)}
        case e.ChecksFinished():
            return {
                "attempts": _amended(task, results=event.results),
                "check_runs": task.check_runs + 1,
            }
        case e.TurnReturned():
            return _turn_returned(task, event)
        case e.CoachStarted() | e.CoachAnswered() | e.CoachFailed():
            return _coach_changes(task, event)
        case _:
            return _said_changes(state, task, event) or _later_changes(state, task, event)


def _said_changes(
    state: RunState, task: TaskState, event: e.TaskEvent | e.BatchEvent
) -> dict[str, Any]:
    """What people change."""
    match event:
        case e.Answered():
            told = f"{task.question}\n\nAnswer: {event.text}" if task.question else event.text
            return {"answers": (*task.answers, told), "failures": {}, **_helped(task)}
        case e.TaskAccepted():
            return {"accepted": Acceptance(by=event.by, at=event.at, spec=event.spec)}
        case e.CheckpointPassed():
            return {"question": None, "released": True}
        case e.TaskReopened():
            told = {"feedback": event.why} if event.why else {}
            stood = task.merge_commit if event.may_stand else None
            return {**_reopened(task), **told, "merge_before": stood}
        case e.TaskReset():
            return {**_begun_once_more(task), "before_reset": replace(task, before_reset=None)}
        case e.TaskTaken():
            started = _player_started(state, task, event)
            return {**_helped(task), "first_turn": task.turn, **started}
        case e.TaskGiven():
            attempts = _amended(task, finished_at=event.at, summary=event.summary)
            return {"attempts": attempts, "failures": {}}
        case _:
            return {}


def _later_changes(  # noqa: C901  one arm a fact
    state: RunState, task: TaskState, event: e.TaskEvent | e.BatchEvent
) -> dict[str, Any]:
    match event:
        case e.WaitStarted():
            waits = (*task.limit_waits, Wait(event.at))
            limited = {"limit_waits": waits} if event.failure is e.Failure.USAGE_LIMIT else {}
            return {"wait_until": event.until, **limited}
        case e.TimerFired():
            return {"wait_until": None, "limit_waits": waited(task, event.at)}
        case e.HelpNeeded():
            return {"question": event.question}
        case e.TaskAbandoned():
            return {"question": event.reason, "abandoned_at": event.at}
        case e.MergeStarted():
            return {
                **_NO_CANDIDATE,
                "candidate": event.candidate,
                "candidate_onto": event.onto,
                "clashes_with": None,
                "check_runs": 0,
                "conflict": "",
            }
        case e.MergeBuilt():
            return {"candidate_commit": event.commit, "candidate_tree": event.tree}
        case e.MergeConflicted():
            return {"conflict": event.detail}
        case e.MergeSetAside():
            clash = task.candidate_onto if task.phase is Phase.CONFLICTED else None
            return {**_NO_CANDIDATE, "clashes_with": clash}
        case e.TipMoveStarted():
            return {"moving_as": task.moving_as or state.specs[task.id]}
        case e.MergeStands():
            return {"merge_commit": event.commit, "merged_at": event.at}
        case e.TaskMerged() | e.TaskAdopted():
            return {
                "merge_commit": event.commit,
                "merged_at": event.at,
                "merged_as": _merged_as(event, task.moving_as or state.specs[event.task]),
                "moving_as": None,
                "accepted": None,
            }
        case _:
            return {}


def _merged_as(event: e.TaskMerged | e.TaskAdopted, spec: Task) -> Task | None:
    """The text it was merged for; None where git says that it was another, which no one knows."""
    text = event.text if isinstance(event, e.TaskMerged) else ""
    return spec if text in {"", digest_of(spec)} else None


def _tip_taken(task: TaskState, event: e.TipTaken) -> dict[str, Any]:
    """The tip as an attempt that nobody played; the first turn is the first Player's."""
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
    return {"attempts": (*task.attempts, tip), "turn": 0, "verdicts_before": 0}


def _player_started(
    state: RunState, task: TaskState, event: e.PlayerStarted | e.TaskTaken
) -> dict[str, Any]:
    attempt = Attempt(
        n=event.n,
        turn=event.turn,
        start=event.start,
        onto=event.onto,
        started_at=event.at,
        by=event.by if isinstance(event, e.TaskTaken) else None,
    )
    first = len(task.attempts) == task.begun_after
    return {
        "attempts": (*task.attempts, attempt),
        "verdicts_before": 0,
        "merged_before": len(state.merged) if first else task.merged_before,
        "before_reset": None,
        **_NO_CANDIDATE,
    }


def _player_failed(task: TaskState, event: e.PlayerFailed) -> dict[str, Any]:
    attempts = _amended(
        task,
        finished_at=event.at,
        failure=event.failure,
        message=event.message,
        usage=event.usage,
        retry_at=event.retry_at,
        jitter=event.jitter,
    )
    return {
        "attempts": attempts,
        "failures": _one_more(task.failures, event.failure),
        "spent": task.spent + event.usage,
    }


def _coach_changes(
    task: TaskState, event: e.CoachStarted | e.CoachAnswered | e.CoachFailed
) -> dict[str, Any]:
    coachings = task.last.coachings
    match event:
        case e.CoachStarted():
            new = Coaching(k=event.k, commit=event.commit, started_at=event.at)
            return {"attempts": _amended(task, coachings=(*coachings, new))}
        case e.CoachAnswered():
            done = replace(
                coachings[-1],
                finished_at=event.at,
                review=event.review,
                usage=event.usage,
                touched=event.touched,
                unshown=event.unshown,
            )
            failures: dict[e.Failure, int] = {}
        case e.CoachFailed():
            done = replace(
                coachings[-1],
                finished_at=event.at,
                failure=event.failure,
                message=event.message,
                usage=event.usage,
                retry_at=event.retry_at,
                jitter=event.jitter,
            )
            failures = _one_more(task.failures, event.failure)
        case _:
            assert_never(event)
    return {
        "attempts": _amended(task, coachings=(*coachings[:-1], done)),
        "failures": failures,
        "spent": task.spent + event.usage,
    }


def _turn_returned(task: TaskState, event: e.TurnReturned) -> dict[str, Any]:
    counted = event.cause in _COUNTED
    return {
        "attempts": _amended(task, feedback=event.feedback),
        "feedback": event.feedback,
        "turn": task.turn + counted,
        "rounds": task.rounds + (not counted),
    }


def _reopened(task: TaskState) -> dict[str, Any]:
    """Turns go on counting, and a new allowance of them begins."""
    again: dict[str, Any] = {"failures": {}, **_helped(task)}
    if task.phase is Phase.ABANDONED:
        return {**again, "first_turn": task.turn}
    return {**again, **_begun_once_more(task)}


def _begun_once_more(task: TaskState) -> dict[str, Any]:
    """From the tip, with a new allowance of turns; numbers go on, for pins are written once."""
    turn = task.turn + bool(task.attempts)
    return {"failures": {}, "turn": turn, "first_turn": turn, **begun_anew(task)}


def as_before_reset(task: TaskState) -> TaskState:
    """The task as it was when a person had it begin anew; what it cost since stays spent."""
    before = task.before_reset
    if before is None:
        raise IllegalEvent(f"task {task.id!r} was not reset, or was begun since")
    return replace(before, spent=task.spent, reserved=task.reserved)


def begun_anew(task: TaskState) -> dict[str, Any]:
    """What there is of a task that begins once more, from the tip as it will be then."""
    return {
        **_helped(task),
        **_NO_CANDIDATE,
        "begun_after": len(task.attempts),
        "feedback": None,
        "clashes_with": None,
        "merge_before": None,
        "merge_commit": None,
        "merged_at": None,
    }


def set_aside(task: TaskState) -> TaskState:
    """The task while the plan does without it: a merge onto the tip of today is none tomorrow."""
    if task.phase not in {Phase.BUILT, Phase.CONFLICTED}:
        return task
    return replace(task, phase=Phase.APPROVED, **_NO_CANDIDATE)


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
    return replace(task, phase=to, verdicts_before=verdicts, question=None, **_NO_CANDIDATE)


def _one_more(failures: Mapping[e.Failure, int], failure: e.Failure) -> dict[e.Failure, int]:
    return {**failures, failure: failures.get(failure, 0) + 1}


def _amended(task: TaskState, **changes: object) -> tuple[Attempt, ...]:
    return (*task.attempts[:-1], replace(task.attempts[-1], **changes))
