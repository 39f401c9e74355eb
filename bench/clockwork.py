"""A run without a world: the real decide loop on a clock that jumps to the next outcome."""

import heapq
import itertools
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TypeAlias

from windlass.core.engine import record
from windlass.core.events import model as e
from windlass.core.events.review import CriterionEvidence, Review, TestResults
from windlass.core.plan import Plan
from windlass.core.settings import Settings

START = datetime(2026, 1, 1, tzinfo=UTC)

Outcome: TypeAlias = Callable[[e.Event, datetime], Iterable[e.Event]]
"""What comes of a fact that was recorded at that moment; each stamped with when."""

_APPROVED = Review(
    decision="approve",
    summary="",
    test_results=TestResults(passed=True),
    evidence=(CriterionEvidence(criterion=1, met=True, evidence="seen"),),
)


def started(plan: Plan, settings: Settings, **estimates: float) -> e.RunStarted:
    """The first fact."""
    return e.RunStarted(
        at=START,
        run="r",
        plan=plan,
        settings=settings,
        base="base",
        base_branch="main",
        sandbox="none",
        version="0",
        estimates=tuple(e.Estimate(task=t, seconds=s) for t, s in estimates.items()),
    )


def seconds(first: e.RunStarted, outcome: Outcome) -> float:
    """How long the run takes until it is completed."""
    due: list[tuple[datetime, int, e.Event]] = []
    number = itertools.count()
    now = START
    step = record(None, (first,), now, plan=None)
    while (state := step.states[-1]).ended is None:
        for fact in step.events:
            for then in outcome(fact, now):
                heapq.heappush(due, (then.at, next(number), then))
        now, _, event = heapq.heappop(due)
        step = record(state, (event,), now, plan=None)
    assert state.ended is e.RunEnd.COMPLETED, state.reason
    return (now - START).total_seconds()


def at_once(  # noqa: C901  one arm a fact
    fact: e.Event, now: datetime
) -> Iterable[e.Event]:
    """The outcome of whatever takes no time in any of the benches."""
    match fact:
        case e.BaselineStarted():
            yield e.BaselineFinished(at=now, commit="base", results=())
        case e.PlayerStarted(task=task, n=n):
            yield e.PlayerFinished(at=now, task=task, n=n, summary="", usage=e.Usage())
        case e.SnapshotStarted(task=task, n=n, kind=kind):
            name = f"{task}.{n}"
            yield e.SnapshotTaken(
                at=now, task=task, n=n, kind=kind, commit=name, tree=name, changed=True
            )
        case e.CoachStarted(task=task, n=n, k=k, commit=commit):
            yield e.CoachAnswered(
                at=now, task=task, n=n, k=k, commit=commit, review=_APPROVED, usage=e.Usage()
            )
        case e.MergeStarted(task=task, candidate=number):
            made = f"m{number}"
            yield e.MergeBuilt(at=now, task=task, candidate=number, commit=made, tree=made)
        case e.TipMoveStarted(tasks=tasks, commit=commit):
            for task in tasks:
                yield e.TaskMerged(at=now, task=task, candidate=1, commit=commit, tip=commit)
        case e.VerificationStarted(commit=commit, tree=tree, stage=stage):
            yield e.VerificationFinished(at=now, commit=commit, tree=tree, results=(), stage=stage)
        case _:
            return
