"""The Coach's part of a turn: what follows from its answer or its failure."""

from collections.abc import Sequence
from datetime import datetime
from typing import assert_never

from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.events.review import Review
from windlass.core.scheduler import evidence, failures, gate
from windlass.core.scheduler.gate import Judgement
from windlass.core.state import Phase, RunState, TaskState
from windlass.core.state.checks import task_checks


def start(task: TaskState, at: datetime) -> e.CoachStarted:
    """Start a fresh Coach on exactly the checked commit."""
    attempt = task.last
    return e.CoachStarted(
        at=at,
        task=task.id,
        n=attempt.n,
        k=len(attempt.coachings) + 1,
        commit=attempt.commit or "",
    )


def combined(reviews: Sequence[Review]) -> Review:
    """One review from those of a change and its parts; any objection counts.

    The first review must show that criteria are met and tests pass; the others can only object.
    """
    first, *others = reviews
    refusing = [review for review in reviews if review.decision != "approve"]
    objections = (review.feedback or review.summary for review in refusing)
    failures = tuple(each for review in reviews for each in review.test_results.failures)
    failed = any(review.test_results.passed is False for review in reviews)
    passed = False if failed else first.test_results.passed
    against = (item for review in others for item in review.evidence if not item.met)
    return replace(
        first,
        decision="feedback" if refusing else "approve",
        test_results=replace(first.test_results, passed=passed, failures=failures),
        evidence=(*first.evidence, *against),
        issues=tuple(issue for review in reviews for issue in review.issues),
        feedback="\n\n".join(objections) or first.feedback,
        seen=tuple(item for review in reviews for item in review.seen),
        question=next((review.question for review in reviews if review.question), None),
    )


def settles(review: Review) -> bool:
    """Whether it decides alone, so that no further Coach is needed."""
    return review.decision != "approve" or bool(review.question)


def step(state: RunState, task: TaskState, at: datetime) -> e.Event | None:
    if task.phase is Phase.UNREVIEWED:
        return failures.step(task, task.last.coachings[-1], "Coach", at)
    return _judge(state, task, at)


def _judge(state: RunState, task: TaskState, at: datetime) -> e.Event:
    attempt, coaching = task.last, task.last.coachings[-1]
    checked = bool(task_checks(state, task.id))
    review = coaching.review
    if review is None or coaching.commit != attempt.commit:
        return _inconclusive(task, "it says nothing about this commit", at)
    verdict = gate.judge_review(
        review,
        criteria=len(evidence.criteria(state, task.id)),
        # A scenario has no proof but the Coach's own trial.
        checked=checked and not state.specs[task.id].scenario,
        points=(*coaching.unshown, *evidence.doubted_checks(state, task)),
    )
    match verdict.judgement:
        case Judgement.PASS:
            return e.TaskApproved(at=at, task=task.id, commit=attempt.commit or "", checked=checked)
        case Judgement.ASK:
            return e.HelpNeeded(at=at, task=task.id, question=verdict.reason)
        case Judgement.RETURN:
            return e.TurnReturned(at=at, task=task.id, cause="review", feedback=verdict.reason)
        case Judgement.RUN:
            return _inconclusive(task, verdict.reason, at)
        case _:
            assert_never(verdict.judgement)


def _inconclusive(task: TaskState, why: str, at: datetime) -> e.CoachFailed:
    """The answer does not count: another Coach is asked, and the Player is not blamed for it."""
    return e.CoachFailed(
        at=at,
        task=task.id,
        n=task.last.n,
        k=task.last.coachings[-1].k,
        failure=e.Failure.INCONCLUSIVE,
        message=why,
        usage=e.Usage(),
    )
