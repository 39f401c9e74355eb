"""The Coach's part of a turn: what follows from its answer, or from its having none."""

from datetime import datetime
from typing import assert_never

from windlass.events import model as e
from windlass.scheduler import evidence, gate, retry
from windlass.scheduler.gate import Judgement
from windlass.state import Phase, RunState, TaskState


def start(task: TaskState, at: datetime) -> e.CoachStarted:
    """A fresh Coach for exactly the commit that was checked."""
    attempt = task.last
    return e.CoachStarted(
        at=at,
        task=task.id,
        n=attempt.n,
        k=len(attempt.coachings) + 1,
        commit=attempt.commit or "",
    )


def step(state: RunState, task: TaskState, at: datetime) -> e.Event | None:
    """What follows from the Coach's answer, or from its failure."""
    if task.phase is Phase.UNREVIEWED:
        return _after_failure(task, at)
    return _judge(state, task, at)


def retry_of(task: TaskState) -> retry.Retry:
    """What the retry table says of a task whose Coach gave no answer."""
    last = task.last.coachings[-1]
    failure = last.failure or e.Failure.INTERRUPTED
    return retry.after(
        failure,
        in_a_row=task.failures.get(failure, 1),
        at=last.finished_at or last.started_at,
        retry_at=last.retry_at,
        jitter=last.jitter,
    )


def _after_failure(task: TaskState, at: datetime) -> e.Event | None:
    decision = retry_of(task)
    last = task.last.coachings[-1]
    failure = last.failure or e.Failure.INTERRUPTED
    if decision.then is retry.Then.WAIT and decision.until is not None:
        return e.WaitStarted(at=at, task=task.id, until=decision.until, failure=failure)
    if decision.then is retry.Then.ASK:
        times = task.failures.get(failure, 1)
        question = f"the Coach failed {times} times in a row ({failure}): {last.message}"
        return e.HelpNeeded(at=at, task=task.id, question=question)
    return None


def _judge(state: RunState, task: TaskState, at: datetime) -> e.Event:
    attempt, coaching = task.last, task.last.coachings[-1]
    checked = bool(evidence.task_checks(state, task.id))
    # A review of any other commit is none, however it came here.
    review = coaching.review if coaching.commit == attempt.commit else None
    verdict = gate.judge_review(
        review or gate.NOTHING_SAID,
        criteria=len(evidence.criteria(state, task.id)),
        checked=checked,
    )
    match verdict.judgement:
        case Judgement.PASS:
            return e.TaskApproved(at=at, task=task.id, commit=attempt.commit or "", checked=checked)
        case Judgement.ASK:
            return e.HelpNeeded(at=at, task=task.id, question=verdict.reason)
        case Judgement.RETURN | Judgement.RUN:
            return e.TurnReturned(at=at, task=task.id, cause="review", feedback=verdict.reason)
        case _:
            assert_never(verdict.judgement)
