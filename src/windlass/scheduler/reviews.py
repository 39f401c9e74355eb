"""The Coach's part of a turn: what follows from its answer, or from its having none."""

from datetime import datetime
from typing import assert_never

from windlass.events import model as e
from windlass.scheduler import evidence, failures, gate
from windlass.scheduler.gate import Judgement
from windlass.state import Phase, RunState, TaskState, demands


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
        return failures.step(task, task.last.coachings[-1], "Coach", at)
    return _judge(state, task, at)


def _judge(state: RunState, task: TaskState, at: datetime) -> e.Event:
    attempt, coaching = task.last, task.last.coachings[-1]
    checked = bool(demands.task_checks(state, task.id))
    # A review of any other commit is none, however it came here.
    review = coaching.review if coaching.commit == attempt.commit else None
    verdict = gate.judge_review(
        review or gate.NOTHING_SAID,
        criteria=len(evidence.criteria(state, task.id)),
        # A scenario is there to be tried: that its trial passed is what there is to show.
        checked=checked and not state.specs[task.id].scenario,
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
