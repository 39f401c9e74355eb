"""The fold of the facts of a landing: how far the base branch is on its way to the tip."""

from datetime import datetime
from typing import TypeAlias, assert_never

from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.state.checks import without_failures
from windlass.core.state.model import Landing, RunState
from windlass.core.state.stretches import with_pause
from windlass.core.state.transitions import RUN_TRANSITIONS, RunPhase
from windlass.errors import IllegalEvent

_Steps: TypeAlias = (
    e.BaseLookStarted
    | e.BaseSeen
    | e.BaseMergeBuilt
    | e.BaseMergeConflicted
    | e.BranchMoveStarted
    | e.Landed
    | e.LandRefused
)


def landing_after(state: RunState, event: e.LandEvent) -> RunState:
    if isinstance(event, e.LandRequested):
        how = {"anyway": event.anyway, "squash": event.squash, "signed": event.signed}
        asked = replace(_asked(state), **how)
        return replace(_awake(state, event.at), landing=asked, tip_runs=0)
    if state.landing is None:
        raise IllegalEvent(f"{type(event).__name__} without a requested landing")
    if isinstance(event, e.BaseMergeStarted):
        begun = replace(state.landing, under_way=True)
        return replace(state, landing=begun, candidates=event.candidate, tip_runs=0)
    return replace(state, landing=_landing_after(state.landing, event))


def _awake(state: RunState, at: datetime) -> RunState:
    """A run at rest continues for the landing alone.

    Checks that failed at the last try run again: asking again means that the cause is fixed.
    """
    if state.ended is None and state.stopping is None and state.phase is not RunPhase.VERIFYING:
        return state
    tried = state.landing.tree if state.landing is not None else None
    return replace(
        state,
        ended=None,
        pauses=with_pause(state, at),
        stopping=None,
        phase=RUN_TRANSITIONS[state.phase].get(e.RunResumed, state.phase),
        evidence=without_failures(state.evidence, (state.tip_tree, tried)),
    )


def _asked(state: RunState) -> Landing:
    if state.index.merged == len(state.tasks) and not state.given_up:
        return Landing(then=e.RunEnd.COMPLETED)
    # A landing that was cut short keeps the run's end from before it.
    cut_short = state.landing.then if state.landing is not None else e.RunEnd.STOPPED
    return Landing(then=state.ended or cut_short, reason=state.reason)


def _landing_after(landing: Landing, event: _Steps) -> Landing:
    match event:
        case e.BaseLookStarted():
            return replace(landing, under_way=True, branch=event.branch)
        case e.BaseSeen():
            seen = replace(landing, base=event.commit, relation=event.relation, merge=None)
            # The merges of a run that was squashed before would bring its changes a second time.
            squash = landing.squash or event.squashed
            return replace(seen, under_way=False, rewound=event.rewound, squash=squash)
        case e.BaseMergeBuilt():
            return replace(landing, under_way=False, merge=event.commit, tree=event.tree)
        case e.BaseMergeConflicted():
            return replace(landing, under_way=False, refused=event.detail)
        case e.BranchMoveStarted():
            return replace(landing, under_way=True)
        case e.Landed():
            return replace(landing, under_way=False, landed=event.commit)
        case e.LandRefused():
            refused = replace(landing, under_way=False, refused=event.reason)
            return replace(refused, branch=event.branch)
        case _:
            assert_never(event)
