"""The loop: what happened is recorded, what follows from it is recorded, then it is done.

Law: one writer, one order. Events reach the journal here and nowhere else; they count once they
are durable; effects begin after that. An effect reports its outcome as events and decides nothing.
"""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import anyio
from anyio.abc import TaskGroup

from windlass.events import model as e
from windlass.ports import Message
from windlass.runner.effects import Effects
from windlass.runner.surroundings import Ports
from windlass.scheduler import decide, late_edits
from windlass.scheduler.people import spoken
from windlass.state import RunState, apply
from windlass.state.budget import used_up
from windlass.views.outcome import is_finished

Observer: TypeAlias = Callable[[e.Entry, RunState], None]
"""Told of every entry once it is durable; must be quick and must not raise."""

StopHow: TypeAlias = Literal["stop", "pause", "pause_now", "abort"]

_STOPS: dict[str, StopHow] = {
    "stop": "stop",
    "pause": "pause",
    "pause_now": "pause_now",
    "abort": "abort",
}
"""Commands that bring a run to rest."""

INBOX_SECONDS = 0.5
"""How often a live run looks for commands from people."""


class Runner:
    """Hauls one run until it ends, or until nothing can be done without a person."""

    def __init__(
        self, ports: Ports, *, seq: int, state: RunState | None, observer: Observer
    ) -> None:
        self._ports = ports
        self._seq = seq
        self._state = state
        self._observer = observer
        self._effects = Effects(ports)
        self._ended = anyio.Event()
        self._group: TaskGroup | None = None
        self._began = ports.clock.now()
        self._droppable: set[anyio.CancelScope] = set()
        self._spenders: dict[str, str] = {}
        """The task that each request under way is for."""

    @property
    def state(self) -> RunState:
        """What is true now; there is a state once the first event is recorded."""
        if self._state is None:
            raise RuntimeError("the run has not begun")
        return self._state

    def reserve(self, task: str, role: str, model: str, usd: float) -> str | None:
        """Let a request of an agent go, at its worst price, unless the budget is used up.

        A request that crosses the budget is the last one; its answer is paid for and is passed on.
        """
        if self._group is None or self._ended.is_set():
            return None
        if used_up(self.state) is not None:
            return None
        name = f"{self._seq + 1}"
        at = self._ports.clock.now()
        fact = e.SpendReserved(at=at, id=name, task=task, role=role, model=model, usd=usd)
        self._record_beside(fact, self._group)
        self._spenders[name] = task
        return name

    def settle(self, reservation: str, usage: e.Usage) -> None:
        """Record what that request came to, before its last byte is passed on."""
        if self._group is None or self._ended.is_set():
            return  # it stays at its reservation, which is never less
        if (task := self._spenders.pop(reservation, None)) is not None:
            at = self._ports.clock.now()
            fact = e.SpendSettled(at=at, id=reservation, task=task, usage=usage)
            self._record_beside(fact, self._group)

    def hear(
        self, role: str, task: str, reached: tuple[str, ...], refused: tuple[str, ...]
    ) -> None:
        """Record what a box asked of the network, while there is a run to record it in."""
        if self._group is None or self._ended.is_set():
            return
        at = self._ports.clock.now()
        fact = e.HostsAsked(at=at, role=role, task=task, reached=reached, refused=refused)
        self._record_beside(fact, self._group)

    async def run(self, *first: e.Event) -> RunState:
        """Begin or take over a run with these facts, and return how it ended.

        One that is over is not taken over: nothing is appended to it.
        """
        over = self._state is not None and is_finished(self._state)
        if over and isinstance(first[0], e.RunResumed):
            return self.state
        async with anyio.create_task_group() as ears:
            # Left only when every effect is done: a merged task's workspace goes after the end.
            async with anyio.create_task_group() as group:
                self._group = group
                self._began = first[0].at
                words, heard = self._said_meanwhile(first)
                self._record((*first, *words), group)
                for remove in heard:
                    remove()
                ears.start_soon(self._read_inbox, group)
                ears.start_soon(self._heed_signals, group)
                await self._ended.wait()
            ears.cancel_scope.cancel()
        return self.state

    def _record_beside(self, fact: e.Event, group: TaskGroup) -> None:
        """Record what comes from outside of the run's own tasks, and let the run fail if it fails.

        Whoever asked is a server, which answers its client with the error and lives on.
        """
        try:
            self._record([fact], group)
        except Exception as error:
            group.start_soon(_raise, error)
            raise

    def _record(self, happened: Sequence[e.Event], group: TaskGroup) -> None:
        """Make what happened, and everything that follows from it, durable in one step; then act.

        The journal may store less than it was given (secrets), so what counts is what it stored.
        """
        batch, state = list(happened), self._state
        for event in happened:
            state = apply(state, event)
        while state is not None and (due := self._due(state)):
            for event in due:
                state = apply(state, event)
            batch.extend(due)
        entries = self._ports.journal.append(batch, expected=self._seq)
        for entry in entries:
            self._seq = entry.seq
            self._state = apply(self._state, entry.event)
            self._observer(entry, self._state)
        for entry in entries:
            if isinstance(entry.event, e.RunEnded):
                self._ended.set()
                self._drop_all()  # whoever waits for a provider would keep the process
            elif self._effects.has(entry.event):
                group.start_soon(self._carry_out, entry.event, group)

    def _due(self, state: RunState) -> tuple[e.Event, ...]:
        """What is due; before a run is complete its plan's files are looked at once more."""
        due = decide(state, self._ports.clock.now())
        if state.landing is not None or not late_edits.completes(state, due):
            return due
        plan = self._ports.plan()
        edit = late_edits.facts_of(state, plan, self._ports.clock.now()) if plan else ()
        return edit or due

    async def _carry_out(self, intent: e.Event, group: TaskGroup) -> None:
        """Do what was announced, and record what came of it."""
        happened: tuple[e.Event, ...] = ()
        with anyio.CancelScope() as scope:
            if self._effects.can_be_dropped(intent):
                self._droppable.add(scope)
                if self.state.stopping is not None and self.state.stop_as != "pause":
                    scope.cancel()
            happened = await self._effects.carry_out(intent, self.state)
        self._droppable.discard(scope)
        if scope.cancelled_caught:
            happened = self._effects.dropped(intent)
        if happened and not self._ended.is_set():
            self._record(happened, group)

    def _stop(self, by: str, how: StopHow, group: TaskGroup) -> None:
        """Bring the run to rest; the first request counts, unless it was only to pause."""
        state = self.state
        if state.ended is not None or (state.stopping is not None and state.stop_as != "pause"):
            return
        if how == "pause" and state.stopping is not None:
            return
        self._record([e.StopRequested(at=self._ports.clock.now(), by=by, how=how)], group)
        if how != "pause":
            self._drop_all()

    def _drop_all(self) -> None:
        """End agents and whatever else can be begun again at no loss."""
        for scope in list(self._droppable):
            scope.cancel()

    def _said_meanwhile(
        self, first: Sequence[e.Event]
    ) -> tuple[list[e.Event], list[Callable[[], None]]]:
        """What people said to this run while nobody heard it, and what to call once it is recorded.

        It may be what the run waits for: taken up without it, it would end at once.
        """
        words, heard = list[e.Event](), list[Callable[[], None]]()
        if self._state is None or not isinstance(first[0], e.RunResumed):
            return words, heard
        state = self._state
        for event in first:
            state = apply(state, event)
        for message, remove in self._ports.inbox.take():
            if message.command not in _STOPS and self._is_meant(message, state.run):
                said = spoken(message, state, self._ports.clock.now())
                for event in said:
                    state = apply(state, event)
                words.extend(said)
                heard.append(remove)
        return words, heard

    async def _read_inbox(self, group: TaskGroup) -> None:
        while True:
            for message, remove in self._ports.inbox.take():
                if self._ended.is_set():
                    return  # whoever takes the run up again hears it
                if self._is_meant(message, self.state.run):
                    self._heed(message, group)
                remove()
            await anyio.sleep(INBOX_SECONDS)

    def _is_meant(self, message: Message, run: str) -> bool:
        """Whether it was said to this run, and a word to rest to this process of it."""
        is_late = message.at is not None and message.at < self._began
        return message.run in {"", run} and not (is_late and message.command in _STOPS)

    def _heed(self, message: Message, group: TaskGroup) -> None:
        """Record what a person said, if it can be said now."""
        if message.command in _STOPS:
            how = _STOPS[message.command]
            self._stop(f"windlass {message.command.removesuffix('_now')}", how, group)
            return
        if said := spoken(message, self.state, self._ports.clock.now()):
            self._record(said, group)

    async def _heed_signals(self, group: TaskGroup) -> None:
        async for name in self._ports.signals():
            self._stop(name, "stop", group)


async def _raise(error: Exception) -> None:
    raise error
