"""How a run begins and ends: the baseline, limits on new work, the final verification, the end.

If several ends apply, the most urgent one for the user wins: a limit, then a stop, then a person's
help, then a failure. The exit codes follow the same order.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import assert_never

from windlass.core.events import model as e
from windlass.core.plan.names import some
from windlass.core.scheduler import barriers, evidence, failures, gate, stages
from windlass.core.scheduler.gate import Judgement
from windlass.core.state import Phase, RunPhase, RunState, selection, staleness
from windlass.core.state.budget import used_up
from windlass.core.state.checks import project_checks
from windlass.core.state.model import stands_in_the_way
from windlass.core.state.transitions import HELPLESS, UNDER_WAY

_CANCELLED_BY_STOP = frozenset(
    {
        Phase.CHECKING,
        Phase.CHECKING_MERGE,
        Phase.REVIEWING,
        Phase.WAITING,
        Phase.WAITING_FOR_COACH,
    }
)
"""Steps that a stop drops, because they can be repeated without loss."""

_WAITING = frozenset({Phase.WAITING, Phase.WAITING_FOR_COACH})
"""Phases that the end does not wait for once no Player may start."""

_COMES_TO_REST = {
    "stop": (e.RunEnd.STOPPED, "stopped"),
    "pause": (e.RunEnd.PAUSED, "paused"),
    "pause_now": (e.RunEnd.PAUSED, "paused"),
    "abort": (e.RunEnd.ABORTED, "aborted"),
}

_NAMED = 10
"""How many tasks a reason names."""


def baseline(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """Check the base before any money is spent; stop on a red base unless the policy says go."""
    if state.phase is RunPhase.CHECKING_BASE:
        return ()
    if state.phase is RunPhase.NEW:
        checks = project_checks(state)
        return (e.BaselineStarted(at=at, commit=state.base, checks=checks),)
    status = e.RunEnd.NEEDS_HUMAN
    if state.settings.policy.red_base == "stop":
        status = e.RunEnd.FAILED
    reason = f"the base itself does not pass: {_summary(state.red_base)}"
    return _or_wait(state, e.RunEnded(at=at, status=status, reason=reason))


def holds_back(state: RunState) -> bool:
    """Whether no Player may start any more in this stretch of the run."""
    return _limit(state) is not None or _stops_on_failure(state)


def stop(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """End a stopping run once all steps that must not be cut short are done."""
    landing = state.landing is not None and state.landing.under_way
    if landing or any(task.phase in UNDER_WAY - _CANCELLED_BY_STOP for task in state.live):
        return ()
    return (_stopped(state, at),)


def _stopped(state: RunState, at: datetime) -> e.RunEnded:
    if state.awaiting and state.stop_as == "stop":
        # The stop cut nothing short: the run needs the person it waited for.
        return e.RunEnded(at=at, status=e.RunEnd.NEEDS_HUMAN, reason=state.awaiting)
    status, word = _COMES_TO_REST[state.stop_as]
    return e.RunEnded(at=at, status=status, reason=f"{word} by {state.stopping}")


def end(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """End the run when no effect is under way and nothing can start."""
    # Do not wait for a provider that no agent may ask afterwards.
    rests = state.stopping is not None or holds_back(state)
    waits = _WAITING if rests else frozenset[Phase]()
    under_way = any(task.phase in UNDER_WAY - waits for task in state.live)
    if under_way or state.phase is RunPhase.VERIFYING:
        return ()
    if state.index.merged == len(state.tasks) and not barriers.troubles(state):
        return (_final_verification(state, at),)
    if not rests and (look := _verification_of_stale(state, at)) is not None:
        return (look,)
    if state.stopping is not None:
        return (_stopped(state, at),)
    return _or_wait(state, _unfinished(state, at))


def _or_wait(state: RunState, ended: e.RunEnded) -> tuple[e.Event, ...]:
    """The end; if it needs an answer and a person is present, the run waits for them instead."""
    asked = ended.status is e.RunEnd.NEEDS_HUMAN and open_questions(state)
    if not asked or not state.attended:
        return (ended,)
    return () if state.awaiting else (e.HelpAwaited(at=ended.at, reason=ended.reason),)


def open_questions(state: RunState) -> bool:
    """Whether something waits for an answer that a person can give while the run is live."""
    helpless = any(task.phase in HELPLESS for task in state.live)
    return state.base_is_refused or helpless or bool(barriers.troubles(state))


def _unfinished(state: RunState, at: datetime) -> e.RunEnded:
    if (limit := _limit(state)) is not None:
        return e.RunEnded(at=at, status=e.RunEnd.LIMIT, reason=limit)
    if troubles := barriers.troubles(state):
        failed = state.settings.policy.stage == "stop"
        reason = f"stage {stages.unpassed(state)} did not verify: {'; '.join(troubles)}"
        status = e.RunEnd.FAILED if failed else e.RunEnd.NEEDS_HUMAN
        return e.RunEnded(at=at, status=status, reason=reason)
    if state.stale:
        return e.RunEnded(at=at, status=e.RunEnd.NEEDS_HUMAN, reason=_about_stale(state))
    if selection.is_done(state):
        left = len(state.tasks) - state.index.merged
        merged = f"{some(state.only, _NAMED)} merged, as was asked"
        reason = f"{merged}; of the plan, {left} not merged yet"
        return e.RunEnded(at=at, status=e.RunEnd.STOPPED, reason=reason)
    helpless = [task.id for task in state.live if task.phase in HELPLESS]
    if helpless:
        reason = f"{some(helpless, _NAMED)} cannot go on without you"
        return e.RunEnded(at=at, status=e.RunEnd.NEEDS_HUMAN, reason=reason)
    if not state.index.abandoned:
        waiting = [id_ for id_, task in state.tasks.items() if task.phase is Phase.PENDING]
        reason = (
            f"{some(waiting, _NAMED)} wait for each other, by the plan's stages and dependencies"
        )
        cure = "edit the plan: `windlass plan` shows what each task waits for"
        return e.RunEnded(at=at, status=e.RunEnd.NEEDS_HUMAN, reason=f"{reason}; {cure}")
    reason = f"{some(state.index.abandoned, _NAMED)} abandoned"
    if (stage := stages.lost(state)) is not None:
        reason = f"nothing of stage {stage} was merged: {reason}"
    return e.RunEnded(at=at, status=e.RunEnd.FAILED, reason=reason)


def _verification_of_stale(state: RunState, at: datetime) -> e.VerificationStarted | None:
    """Run the checks of stale tasks' new texts on the tip, for the person who decides."""
    verdict = _stale_verdict(state)
    if verdict.judgement is not Judgement.RUN:
        return None
    tree = state.tip_tree or ""
    return e.VerificationStarted(at=at, commit=state.tip, tree=tree, checks=verdict.rerun)


def _stale_verdict(state: RunState) -> gate.Verdict:
    demand = evidence.stale_demand(state)
    return evidence.tree_verdict(state, state.tip_tree or "", demand, runs=state.tip_runs)


def _about_stale(state: RunState) -> str:
    """Why it waits for a person: stale tasks, the results of their new checks, other tasks."""
    reasons = [staleness.why(state.stale)]
    verdict, said = _stale_verdict(state), state.evidence.get(state.tip_tree or "", {})
    if verdict.judgement in {Judgement.RETURN, Judgement.ASK}:
        asked = [said[check] for check in evidence.stale_demand(state).checks if check in said]
        reasons.append(f"the tip does not pass: {_red(asked, verdict)}")
    if helpless := [task.id for task in state.live if task.phase in HELPLESS - {Phase.STALE}]:
        reasons.append(f"{some(helpless, _NAMED)} cannot go on without you")
    return "; ".join(reasons)


def _red(results: Sequence[e.CheckResult], verdict: gate.Verdict) -> str:
    red = [result for result in results if stands_in_the_way(result)]
    return _summary(red) if red else verdict.reason


def _final_verification(state: RunState, at: datetime) -> e.Event:
    """All merged tasks' checks on the tip, without those that this tree has already passed."""
    tree = state.tip_tree or ""
    verdict = evidence.tree_verdict(state, tree, evidence.tip_demand(state), runs=state.tip_runs)
    match verdict.judgement:
        case Judgement.RUN:
            return e.VerificationStarted(at=at, commit=state.tip, tree=tree, checks=verdict.rerun)
        case Judgement.PASS:
            if state.settings.land:
                signed = state.settings.git.sign == "land"
                return e.LandRequested(at=at, by="--land", signed=signed)
            return e.RunEnded(at=at, status=e.RunEnd.COMPLETED)
        case Judgement.RETURN | Judgement.ASK:
            reason = f"the tip does not pass: {_red(state.verification or (), verdict)}"
            return e.RunEnded(at=at, status=e.RunEnd.NEEDS_HUMAN, reason=reason)
        case _:
            assert_never(verdict.judgement)


def _summary(red: Sequence[e.CheckResult]) -> str:
    unable = [result for result in red if result.absence is e.Absence.UNABLE_TO_START]
    if unable:
        return gate.not_started(unable)
    return ", ".join(f"`{result.command}` {_word(result)}" for result in red)


def _word(result: e.CheckResult) -> str:
    if result.absence is e.Absence.TIMED_OUT:
        return "timed out"
    return f"fails with exit code {result.exit_code}"


def _limit(state: RunState) -> str | None:
    """Why no agent can work now; the run's budget comes first."""
    if (spent := used_up(state)) is not None:
        return spent
    for task in state.live:
        if task.failed is None:
            continue
        if (reason := failures.reason_to_pause(task, task.failed)) is not None:
            return reason
    return None


def _stops_on_failure(state: RunState) -> bool:
    if stages.lost(state) is not None:
        return True
    policy = state.settings.policy.on_failure
    stops = policy == "stop" or (policy == "dialect" and state.plan.stops_on_failure)
    return stops and bool(state.index.abandoned)
