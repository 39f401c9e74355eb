"""The engine: facts in; facts to make durable and intents to begin out. No I/O, no clock.

Law: only this module folds facts and decides. The local runner, the simulation and a workflow of
another system all drive it in the same way:

    step = record(state, facts, now)      fold the facts, decide until nothing more is due
    make step.events durable              one batch, in this order
    begin step.intents                    each is complete in itself; its outcome is the next facts

Nothing counts before it is durable: `record` changes nothing, and the step's states are true once
the batch is stored. A store that changed the facts (it redacts secrets) passes them to `stored`.
Two other modules of the core make facts for a driver to record: `scheduler.people` of a person's
message, `state.budget` of a request for money.
"""

import enum
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from windlass.core.events.model import Event, RunStarted
from windlass.core.intents import Intent, LookAtPlan, intents_of
from windlass.core.plan import Plan
from windlass.core.scheduler import decide, late_edits
from windlass.core.state import RunState, apply, fold, runs

__all__ = [
    "UNSEEN",
    "PlanNow",
    "Step",
    "apply",
    "last_run",
    "note",
    "record",
    "replay",
    "runs",
    "stored",
]


class _Unseen(enum.Enum):
    UNSEEN = enum.auto()


UNSEEN: Final = _Unseen.UNSEEN
"""The plan's files have not been read since the run was about to be complete."""

PlanNow: TypeAlias = Plan | str | Literal[_Unseen.UNSEEN] | None
"""The plan as its files are now, why they cannot be read, or None if there are none to read."""


class Step(Struct, frozen=True, kw_only=True):
    """The result of recording facts."""

    events: tuple[Event, ...]
    """Make these durable as one batch, in this order."""
    states: tuple[RunState, ...]
    """The state after each event."""
    intents: tuple[Intent, ...]
    """Begin these once the batch is durable."""


def record(
    state: RunState | None, facts: Sequence[Event], now: datetime, *, plan: PlanNow = UNSEEN
) -> Step:
    """Fold the facts, decide until nothing more is due, and return what to store and to begin.

    Decisions are stamped with `now`, which is never compared. If the run is about to be complete
    and the plan's files have not been read, deciding stops with the intent to read them; the
    driver then calls again with no facts and the plan.
    """
    events, states = list[Event](), list[RunState]()
    due, asks = (tuple(facts), False) if facts else _due(state, now, plan)
    while due:
        for fact in due:
            state = apply(state, fact)
            events.append(fact)
            states.append(state)
        due, asks = _due(state, now, plan)
    intents = intents_of(states[-1], events) if states else ()
    return Step(
        events=tuple(events),
        states=tuple(states),
        intents=(*intents, LookAtPlan()) if asks else intents,
    )


def note(state: RunState | None, facts: Sequence[Event]) -> Step:
    """Fold facts about a run at rest: nothing is decided, and nothing begins."""
    events, states = tuple(facts), list[RunState]()
    for fact in events:
        state = apply(state, fact)
        states.append(state)
    return Step(events=events, states=tuple(states), intents=())


def stored(state: RunState | None, step: Step, events: Sequence[Event]) -> Step:
    """The step as stored; the same step, unless the store redacted something."""
    if all(one is other for one, other in zip(events, step.events, strict=True)):
        return step
    noted = note(state, events)
    looks = tuple(each for each in step.intents if isinstance(each, LookAtPlan))
    begun = intents_of(noted.states[-1], events) if step.intents else ()
    return Step(events=noted.events, states=noted.states, intents=(*begun, *looks))


def replay(events: Iterable[Event]) -> RunState | None:
    """The state of the last run in these facts."""
    return fold(events)


def last_run(events: Iterable[Event]) -> list[Event]:
    """The facts of the last run in these facts."""
    facts: list[Event] = []
    for event in events:
        if isinstance(event, RunStarted):
            facts.clear()
        facts.append(event)
    return facts


def _due(state: RunState | None, now: datetime, plan: PlanNow) -> tuple[tuple[Event, ...], bool]:
    """The facts that are due, and whether the plan's files must be read first."""
    if state is None:
        return (), False
    due = decide(state, now)
    if state.landing is not None or not late_edits.completes(state, due):
        return due, False
    if plan is UNSEEN:
        return (), True
    edit = late_edits.facts_of(state, plan, now) if plan is not None else ()
    return edit or due, False
