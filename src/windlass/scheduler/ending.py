"""How a run begins and ends: the baseline, what holds new work back, the last look, the last word.

When several endings apply the worst for the user's attention comes first: a limit, then a stop,
then a person's help, then a failure; the exit codes follow the same order.
"""

from collections.abc import Sequence
from datetime import datetime

from windlass.events import model as e
from windlass.scheduler import evidence, failures, gate
from windlass.state import Phase, RunPhase, RunState
from windlass.state.budget import used_up
from windlass.state.model import stands_in_the_way
from windlass.state.transitions import HELPLESS, UNDER_WAY

_CANCELLED_BY_STOP = frozenset(
    {
        Phase.CHECKING,
        Phase.CHECKING_MERGE,
        Phase.REVIEWING,
        Phase.WAITING,
        Phase.WAITING_FOR_COACH,
    }
)
"""Steps that a stop simply drops, for they can be repeated at no loss."""


def baseline(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """Look at the base before anything is spent; go no further on a red one unless told to."""
    if state.phase is RunPhase.CHECKING_BASE:
        return ()
    checks = evidence.project_checks(state)
    if state.phase is RunPhase.NEW:
        return (e.BaselineStarted(at=at, commit=state.base, checks=checks),)
    status = e.RunEnd.NEEDS_HUMAN
    if state.settings.policy.red_base == "stop":
        status = e.RunEnd.FAILED
    reason = f"the base itself does not pass: {_summary(state.red_base)}"
    return (e.RunEnded(at=at, status=status, reason=reason),)


def base_is_refused(state: RunState) -> bool:
    """Whether the base is red and nobody said to go on all the same."""
    return bool(state.red_base) and state.settings.policy.red_base != "go"


def holds_back(state: RunState) -> bool:
    """Whether no Player may be started any more in this stretch of the run."""
    return _limit(state) is not None or _stops_on_failure(state)


def stop(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """End a stopping run once everything that must not be cut short is done."""
    waits_for = UNDER_WAY - _CANCELLED_BY_STOP
    if any(task.phase in waits_for for task in state.live):
        return ()
    return (e.RunEnded(at=at, status=e.RunEnd.STOPPED, reason=f"stopped by {state.stopping}"),)


def end(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """End the run when nothing is under way and nothing can be started."""
    if any(task.phase in UNDER_WAY for task in state.live) or state.phase is RunPhase.VERIFYING:
        return ()
    if state.index.merged == len(state.tasks):
        return _last_look(state, at)
    if (limit := _limit(state)) is not None:
        return (e.RunEnded(at=at, status=e.RunEnd.LIMIT, reason=limit),)
    helpless = [task.id for task in state.live if task.phase in HELPLESS]
    if helpless:
        reason = f"{', '.join(helpless)} cannot go on without you"
        return (e.RunEnded(at=at, status=e.RunEnd.NEEDS_HUMAN, reason=reason),)
    reason = f"{', '.join(state.index.abandoned)} abandoned"
    return (e.RunEnded(at=at, status=e.RunEnd.FAILED, reason=reason),)


def _last_look(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """Every merged task's checks once more on the tip; what that tree has proven stays proven."""
    tree = state.tip_tree or ""
    said = state.evidence.get(tree, {})
    checks = evidence.tip_checks(state)
    missing = tuple(
        check for check in checks if check not in said or stands_in_the_way(said[check])
    )
    if not missing:
        return (e.RunEnded(at=at, status=e.RunEnd.COMPLETED),)
    if state.phase is RunPhase.OPEN or any(check not in said for check in missing):
        return (e.VerificationStarted(at=at, commit=state.tip, tree=tree, checks=missing),)
    red = [result for result in state.verification or () if stands_in_the_way(result)]
    reason = f"the tip does not pass: {_summary(red)}"
    return (e.RunEnded(at=at, status=e.RunEnd.NEEDS_HUMAN, reason=reason),)


def _summary(red: Sequence[e.CheckResult]) -> str:
    unable = [result for result in red if result.absence is e.Absence.UNABLE_TO_START]
    if unable:
        return gate.could_not_start(unable)
    return ", ".join(f"`{result.command}` {_word(result)}" for result in red)


def _word(result: e.CheckResult) -> str:
    if result.absence is e.Absence.TIMED_OUT:
        return "timed out"
    return f"fails with exit code {result.exit_code}"


def _limit(state: RunState) -> str | None:
    """Why no agent can work for now, if so."""
    for task in state.live:
        if task.failed is None:
            continue
        if (reason := failures.reason_to_pause(task, task.failed)) is not None:
            return reason
    return used_up(state)


def _stops_on_failure(state: RunState) -> bool:
    policy = state.settings.policy.on_failure
    stops = policy == "stop" or (policy == "dialect" and state.plan.stops_on_failure)
    return stops and bool(state.index.abandoned)
