"""The base branch takes what was merged: once it was looked at, merged with, and verified.

Law: a branch moves only forward, only from its last known commit, and only to a commit whose
tree passed every merged task's checks. Anything that a person should decide first is refused,
unless they asked to land anyway. While a task is stale nothing lands: a person decides about the
task first.
"""

from datetime import datetime
from typing import assert_never

from windlass.core.events import model as e
from windlass.core.scheduler import evidence, stages
from windlass.core.scheduler.gate import Judgement
from windlass.core.state import RunPhase, RunState, staleness
from windlass.core.state.model import Landing

_NO_BRANCH = "the run began from a commit that no branch stood at; take the integration branch"
_REWOUND = "it was put back behind {}, from which the run began, and would get that again"
_GONE = "the branch is gone"
_APART = (
    "it was put back behind {} and has other commits now, onto which no task can be squashed;"
    " land without --squash"
)


def steps(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """The next step of the requested landing."""
    landing = state.landing
    if landing is None or landing.under_way or state.phase is RunPhase.VERIFYING:
        return ()
    if landing.landed is not None or landing.refused:
        return (_end(state, landing, at),)
    if state.base_branch is None:
        return (e.LandRefused(at=at, branch="", reason=_NO_BRANCH),)
    if state.stale:
        reason = staleness.why(state.stale)
        return (e.LandRefused(at=at, branch=state.base_branch, reason=reason),)
    if not landing.anyway and (stage := stages.amiss(state)) is not None:
        reason = f"stage {stage} did not verify"
        return (e.LandRefused(at=at, branch=state.base_branch, reason=reason),)
    return (_step(state, landing, state.base_branch, at),)


def _step(state: RunState, landing: Landing, branch: str, at: datetime) -> e.Event:
    if landing.rewound and not landing.anyway:
        reason = _REWOUND.format(state.base[:10])
        return e.LandRefused(at=at, branch=branch, reason=reason)
    match landing.relation:
        case None:
            return e.BaseLookStarted(at=at, branch=branch, tip=state.tip)
        case "gone":
            return e.LandRefused(at=at, branch=branch, reason=_GONE)
        case "holds":
            return _held(state, landing, branch, at)
        case "behind" | "apart":
            return _forward(state, landing, branch, at)
        case _:
            assert_never(landing.relation)


def _held(state: RunState, landing: Landing, branch: str, at: datetime) -> e.Event:
    """The branch already holds the tip; but a run completes only if its tip passes."""
    if landing.then is e.RunEnd.COMPLETED:
        step = _verified(state, landing, state.tip, state.tip_tree or "", at)
        if not isinstance(step, e.BranchMoveStarted):
            return step
    return e.Landed(at=at, branch=branch, commit=landing.base or "")


def _forward(state: RunState, landing: Landing, branch: str, at: datetime) -> e.Event:
    """The branch moves to the tip itself, to a merge with it, or to its squashed commits."""
    apart = landing.relation == "apart"
    if apart and landing.squash and landing.rewound:
        return e.LandRefused(at=at, branch=branch, reason=_APART.format(state.base[:10]))
    if apart or landing.squash or landing.signed:
        return _merged(state, landing, at)
    return _verified(state, landing, state.tip, state.tip_tree or "", at)


def _merged(state: RunState, landing: Landing, at: datetime) -> e.Event:
    """The tip is merged or squashed onto the branch first, and the result must pass."""
    if landing.merge is None:
        return e.BaseMergeStarted(
            at=at,
            candidate=state.candidates + 1,
            base=landing.base or "",
            tip=state.tip,
            squash=landing.squash,
        )
    return _verified(state, landing, landing.merge, landing.tree or "", at)


def _verified(state: RunState, landing: Landing, commit: str, tree: str, at: datetime) -> e.Event:
    demand = evidence.tip_demand(state)
    verdict = evidence.tree_verdict(state, tree, demand, runs=state.tip_runs)
    match verdict.judgement:
        case Judgement.RUN:
            return e.VerificationStarted(at=at, commit=commit, tree=tree, checks=verdict.rerun)
        case Judgement.PASS:
            return e.BranchMoveStarted(
                at=at, branch=landing.branch, old=landing.base or "", new=commit
            )
        case Judgement.RETURN | Judgement.ASK:
            return e.LandRefused(at=at, branch=landing.branch, reason=verdict.reason)
        case _:
            assert_never(verdict.judgement)


def _end(state: RunState, landing: Landing, at: datetime) -> e.RunEnded:
    """The run ends as before. A completed run that cannot land needs a person.

    A run whose last stage has not passed is not complete.
    """
    if landing.landed is None and landing.then is e.RunEnd.COMPLETED:
        reason = f"{landing.branch or 'the base'} was not moved: {landing.refused}"
        return e.RunEnded(at=at, status=e.RunEnd.NEEDS_HUMAN, reason=reason)
    if landing.then is e.RunEnd.COMPLETED and (stage := stages.unpassed(state)) is not None:
        reason = f"stage {stage} has not passed yet"
        return e.RunEnded(at=at, status=e.RunEnd.STOPPED, reason=reason)
    return e.RunEnded(at=at, status=landing.then, reason=landing.reason)
