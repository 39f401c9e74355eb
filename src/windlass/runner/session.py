"""The session of a run: the one writer of its journal, while the run goes on and while it rests.

Law: every fact of a run passes through `record` or `note`. It counts once it is durable, and not
before; the observers are told of it then. Nothing else appends to a journal.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeAlias

from windlass.core import engine
from windlass.core.engine import UNSEEN, PlanNow, Step
from windlass.core.events.model import Entry, Event
from windlass.core.intents import Intent
from windlass.core.state import RunState
from windlass.ports import Journal

Observer: TypeAlias = Callable[[Entry, RunState], None]
"""Told of every entry once it is durable; must be quick and must not raise."""


class Session:
    """A run's journal and its state, for whoever holds the lock."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.entries = list(journal.read())
        """What the journal had when the session began."""
        self._seq = self.entries[-1].seq if self.entries else 0
        self._state: RunState | None = engine.replay(entry.event for entry in self.entries)
        self._observers: list[Observer] = []

    @property
    def seq(self) -> int:
        """The journal's last position."""
        return self._seq

    @property
    def before(self) -> RunState | None:
        """The state of the plan's last run; None before the first."""
        return self._state

    @property
    def state(self) -> RunState:
        """What is true now; there is a state once the first fact is recorded."""
        if self._state is None:
            raise RuntimeError("the run has not begun")
        return self._state

    def observe(self, *observers: Observer) -> None:
        """Let these be told of every fact from now on."""
        self._observers.extend(observers)

    def record(
        self, facts: Sequence[Event], now: datetime, *, plan: PlanNow = UNSEEN
    ) -> tuple[Intent, ...]:
        """Make facts, and all that is decided because of them, durable; return what to begin."""
        return self._store(engine.record(self._state, facts, now, plan=plan)).intents

    def note(self, *facts: Event) -> RunState:
        """Make facts about a run at rest durable: nothing is decided because of them."""
        self._store(engine.note(self._state, facts))
        return self.state

    def facts_of_run(self) -> list[Event]:
        """All facts of the run that the journal ends with."""
        return engine.last_run(entry.event for entry in self._journal.read())

    def records(self, after: int) -> Sequence[bytes]:
        """The journal's records after that position, byte for byte, for its mirror."""
        return self._journal.records(after)

    def _store(self, step: Step) -> Step:
        entries = self._journal.append(step.events, expected=self._seq)
        # What counts is what the journal stored: it takes secrets out.
        step = engine.stored(self._state, step, [entry.event for entry in entries])
        for entry, state in zip(entries, step.states, strict=True):
            self._seq, self._state = entry.seq, state
            for observer in self._observers:
                observer(entry, state)
        return step
