"""decide(state): the facts that are due now, intents and decisions alike.

Law: total, pure and deterministic. Its facts are recorded before any effect begins: an intent
(`…Started`) names the effect to begin, and a decision is the fact itself. Once they are recorded
and folded, decide is called again until it returns nothing. If it returns nothing and no effect
is under way, the run has ended.

`at` is stamped on the facts and never compared: time passes through events alone.
"""

from datetime import datetime

from windlass.core.events import model as e
from windlass.core.scheduler import barriers, ending, landing, merge_queue, priority, turns
from windlass.core.state import RunPhase, RunState


def decide(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """The facts that are due now; none while the run waits for an effect."""
    if state.ended is not None:
        return ()
    if state.stopping is not None and state.stop_as != "pause":
        return turns.keep_what_is_left(state, at) or ending.stop(state, at)
    if state.landing is not None:
        return landing.steps(state, at)
    if state.phase in {RunPhase.NEW, RunPhase.CHECKING_BASE} or state.base_is_refused:
        return ending.baseline(state, at)
    return (
        merge_queue.steps(state, at)
        or turns.steps(state, at)
        or barriers.steps(state, at)
        or priority.starts(state, at)
        or ending.end(state, at)
    )
