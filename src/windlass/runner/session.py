"""The session of a run: the one writer of its journal, for a live run and for one at rest.

Law: every fact of a run passes through `record` or `note`, every restored journal through
`restore`, and only while the plan's lock is held. A fact counts, and reaches the observers, only
once it is durable. Nothing else writes to a journal.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol, TypeAlias

from windlass.core import engine
from windlass.core.engine import UNSEEN, PlanNow, Step
from windlass.core.events.model import Entry, Event
from windlass.core.intents import Intent
from windlass.core.state import RunState
from windlass.ports import Journal

Observer: TypeAlias = Callable[[Entry, RunState], None]
"""Called with every entry once it is durable; must be quick and must not raise."""


class Lock(Protocol):
    """What keeps other processes away from a plan."""

    @property
    def held(self) -> bool: ...


class Session:
    """The lock of a plan, its journal, and the state of its last run."""

    def __init__(self, journal: Journal, lock: Lock | None = None) -> None:
        """Without a lock, no other process can reach the journal: it is in memory."""
        self._journal = journal
        self._lock = lock
        self._observers: list[Observer] = []
        self._read()
        self.mirrored = 0
        """The position up to which git surely has a copy; an earlier process may have been killed
        before it made its own."""

    def _read(self) -> None:
        self.entries = list(self._journal.read())
        """The journal's entries when the session began."""
        self._seq = self.entries[-1].seq if self.entries else 0
        self._state: RunState | None = engine.replay(entry.event for entry in self.entries)

    @property
    def seq(self) -> int:
        return self._seq

    @property
    def before(self) -> RunState | None:
        """The state of the plan's last run; None before the first."""
        return self._state

    @property
    def state(self) -> RunState:
        """The current state; there is one once the first fact is recorded."""
        if self._state is None:
            raise RuntimeError("the run has not begun")
        return self._state

    def observe(self, *observers: Observer) -> None:
        """Call these for every fact from now on."""
        self._observers.extend(observers)

    def record(
        self, facts: Sequence[Event], now: datetime, *, plan: PlanNow = UNSEEN
    ) -> tuple[Intent, ...]:
        """Make facts and the decisions that follow durable; return the effects to begin."""
        return self._store(engine.record(self._state, facts, now, plan=plan)).intents

    def note(self, *facts: Event) -> RunState:
        """Make facts about a run at rest durable, without decisions."""
        self._store(engine.note(self._state, facts))
        return self.state

    def restore(self, records: Sequence[bytes]) -> None:
        """Fill the empty journal with the records of a lost one, byte for byte."""
        self._refuse_unlocked()
        self._journal.restore(records)
        self._read()
        self.mirrored = self._seq

    def facts_of_run(self) -> list[Event]:
        """All facts of the journal's last run."""
        return engine.last_run(entry.event for entry in self._journal.read())

    def records(self, after: int) -> Sequence[bytes]:
        """The journal's records after that position, as bytes, for its mirror."""
        return self._journal.records(after)

    def _refuse_unlocked(self) -> None:
        if self._lock is not None and not self._lock.held:
            raise RuntimeError("the session is over: the plan's lock is not held")

    def _store(self, step: Step) -> Step:
        self._refuse_unlocked()
        entries = self._journal.append(step.events, expected=self._seq)
        # The stored facts count, because the journal removes secrets.
        step = engine.stored(self._state, step, [entry.event for entry in entries])
        for entry, state in zip(entries, step.states, strict=True):
            self._seq, self._state = entry.seq, state
            for observer in self._observers:
                observer(entry, state)
        return step
