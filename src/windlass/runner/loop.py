"""The loop of a local run: record facts, start the effects that follow, wait for their outcomes.

Law: an effect reports its outcome as facts and decides nothing. It begins after the facts that
announce it are durable.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Literal, TypeAlias

import anyio
from anyio.abc import TaskGroup

from windlass.core.engine import note
from windlass.core.events import model as e
from windlass.core.events.values import Amount
from windlass.core.exchange import Message
from windlass.core.intents import DROPPABLE, Intent, LookAtPlan
from windlass.core.scheduler.people import spoken
from windlass.core.state import RunState
from windlass.core.state.budget import No, grant
from windlass.ports import Ask, Held
from windlass.runner.context import Ports
from windlass.runner.effects import Effects
from windlass.runner.session import Session
from windlass.views.outcome import is_finished

StopHow: TypeAlias = Literal["stop", "pause", "pause_now", "abort"]

_STOPS: dict[str, StopHow] = {
    "stop": "stop",
    "pause": "pause",
    "pause_now": "pause_now",
    "abort": "abort",
}
"""Commands that stop a run."""

INBOX_SECONDS = 0.5
"""How often a live run reads its inbox."""


class Runner:
    """Runs until the run ends, or until it needs a person."""

    def __init__(self, ports: Ports, session: Session) -> None:
        self._ports = ports
        self._session = session
        self._effects = Effects(ports)
        self._ended = anyio.Event()
        self._group: TaskGroup | None = None
        self._began = ports.clock.now()
        self._droppable: set[anyio.CancelScope] = set()
        self._spenders: dict[str, str] = {}
        """The task that each request under way is for."""

    @property
    def state(self) -> RunState:
        return self._session.state

    def reserve(self, ask: Ask) -> Held | No:
        """Reserve what an agent's request may cost, if the budget allows it."""
        if self._group is None or self._ended.is_set():
            return No.REFUSED
        granted = grant(self.state, ask.most, ask.least)
        if granted is No.REFUSED and self.state.short is None:
            self._refuse(ask, ask.least)
        if isinstance(granted, No):
            return granted
        name = f"{self._session.seq + 1}"
        fact = e.SpendReserved(
            at=self._ports.clock.now(),
            id=name,
            task=ask.task,
            role=ask.role,
            model=ask.model,
            usd=granted.usd,
            tokens=granted.tokens,
        )
        self._record_beside(fact, self._group)
        self._spenders[name] = ask.task
        return Held(name, granted)

    def stream(self, id_: str, usage: e.Usage) -> None:
        """Record what a request has cost so far, in case it is never settled."""
        if self._group is None or self._ended.is_set():
            return
        if (task := self._spenders.get(id_)) is not None:
            fact = e.SpendStreamed(at=self._ports.clock.now(), id=id_, task=task, usage=usage)
            self._record_beside(fact, self._group)

    def settle(self, id_: str, usage: e.Usage, *, broke_off: bool = False) -> None:
        """Record what the request cost, before its last byte is passed on."""
        if self._group is None or self._ended.is_set():
            return  # the end of the run has recorded an estimate
        if (task := self._spenders.pop(id_, None)) is not None:
            at = self._ports.clock.now()
            fact = e.SpendSettled(at=at, id=id_, task=task, usage=usage, broke_off=broke_off)
            self._record_beside(fact, self._group)

    def refuse(self, ask: Ask) -> None:
        """Record that an answer was cut because the budget was too small for the whole of it."""
        if self._group is not None and not self._ended.is_set():
            self._refuse(ask, ask.most)

    def _refuse(self, ask: Ask, needs: Amount) -> None:
        fact = e.SpendRefused(
            at=self._ports.clock.now(),
            task=ask.task,
            role=ask.role,
            model=ask.model,
            usd=needs.usd,
            tokens=needs.tokens,
        )
        if self._group is not None:
            self._record_beside(fact, self._group)

    def hear(
        self, role: str, task: str, reached: tuple[str, ...], refused: tuple[str, ...]
    ) -> None:
        """Record the hosts that a sandbox asked for, while the run is live."""
        if self._group is None or self._ended.is_set():
            return
        at = self._ports.clock.now()
        fact = e.HostsAsked(at=at, role=role, task=task, reached=reached, refused=refused)
        self._record_beside(fact, self._group)

    async def run(self, *first: e.Event) -> RunState:
        """Start or resume a run with these facts, and return its last state.

        A finished run is not resumed: nothing is appended to its journal.
        """
        before = self._session.before
        if before is not None and is_finished(before) and isinstance(first[0], e.RunResumed):
            return before
        # A signal may come as soon as the first fact is shown.
        with self._ports.signals() as signals:
            return await self._run(first, signals)

    async def _run(self, first: Sequence[e.Event], signals: AsyncIterator[str]) -> RunState:
        async with anyio.create_task_group() as listeners:
            # Waits for every effect: workspaces of merged tasks are removed after the run's end.
            async with anyio.create_task_group() as group:
                self._group = group
                self._began = first[0].at
                commands, removals = self._waiting_commands(first)
                self._record((*first, *commands), group)
                for remove in removals:
                    remove()
                listeners.start_soon(self._read_inbox, group)
                listeners.start_soon(self._watch_signals, signals, group)
                await self._ended.wait()
            listeners.cancel_scope.cancel()
        return self.state

    def _record_beside(self, fact: e.Event, group: TaskGroup) -> None:
        """Record a fact for a caller outside the run's own tasks; if that fails, the run fails.

        The caller is a server: it answers its client with the error and keeps running.
        """
        try:
            self._record([fact], group)
        except Exception as error:
            group.start_soon(_raise, error)
            raise

    def _record(self, facts: Sequence[e.Event], group: TaskGroup) -> None:
        """Make the facts and all that follows from them durable; then start the effects."""
        self._start(self._session.record(facts, self._ports.clock.now()), group)

    def _start(self, intents: Sequence[Intent], group: TaskGroup) -> None:
        for intent in intents:
            if isinstance(intent, LookAtPlan):
                now, plan = self._ports.clock.now(), self._ports.plan()
                self._start(self._session.record((), now, plan=plan), group)
            else:
                group.start_soon(self._carry_out, intent, group)
        if self.state.ended is not None:
            self._ended.set()
            self._cancel_all()  # an agent that waits for its provider would keep the process alive

    async def _carry_out(self, intent: Intent, group: TaskGroup) -> None:
        """Carry out the intent, and record its outcome."""
        outcome: tuple[e.Event, ...] = ()
        with anyio.CancelScope() as scope:
            if isinstance(intent, DROPPABLE):
                self._droppable.add(scope)
                if self.state.stopping is not None and self.state.stop_as != "pause":
                    scope.cancel()
            outcome = await self._effects.carry_out(intent)
        self._droppable.discard(scope)
        if scope.cancelled_caught:
            outcome = self._effects.cancelled(intent)
        if outcome and not self._ended.is_set():
            self._record(outcome, group)

    def _stop(self, by: str, how: StopHow, group: TaskGroup) -> None:
        """Stop the run; the first request counts, unless it was only to pause."""
        state = self.state
        if state.ended is not None or (state.stopping is not None and state.stop_as != "pause"):
            return
        if how == "pause" and state.stopping is not None:
            return
        self._record([e.StopRequested(at=self._ports.clock.now(), by=by, how=how)], group)
        if how != "pause":
            self._cancel_all()

    def _cancel_all(self) -> None:
        """Cancel agents and all other effects that can be started again without loss."""
        for scope in list(self._droppable):
            scope.cancel()

    def _waiting_commands(
        self, first: Sequence[e.Event]
    ) -> tuple[list[e.Event], list[Callable[[], None]]]:
        """Commands that people sent while the run was at rest, and what to call once recorded.

        The run may wait for one of them: resumed without it, it would end at once.
        """
        facts, removals = list[e.Event](), list[Callable[[], None]]()
        if self._session.before is None or not isinstance(first[0], e.RunResumed):
            return facts, removals
        state = note(self._session.before, first).states[-1]
        for message, remove in self._ports.inbox.take():
            if message.command not in _STOPS and self._is_for(message, state.run):
                if new := spoken(message, state, self._ports.clock.now()):
                    state = note(state, new).states[-1]
                facts.extend(new)
                removals.append(remove)
        return facts, removals

    async def _read_inbox(self, group: TaskGroup) -> None:
        while True:
            for message, remove in self._ports.inbox.take():
                if self._ended.is_set():
                    return  # the process that resumes the run reads it
                if self._is_for(message, self.state.run):
                    self._obey(message, group)
                remove()
            await anyio.sleep(INBOX_SECONDS)

    def _is_for(self, message: Message, run: str) -> bool:
        """Whether a command is for this run, and a stop for this process of it."""
        is_late = message.at is not None and message.at < self._began
        return message.run in {"", run} and not (is_late and message.command in _STOPS)

    def _obey(self, message: Message, group: TaskGroup) -> None:
        """Record a person's command, if it is possible now."""
        if message.command in _STOPS:
            how = _STOPS[message.command]
            self._stop(f"windlass {message.command.removesuffix('_now')}", how, group)
            return
        if facts := spoken(message, self.state, self._ports.clock.now()):
            self._record(facts, group)

    async def _watch_signals(self, signals: AsyncIterator[str], group: TaskGroup) -> None:
        async for name in signals:
            self._stop(name, "stop", group)


async def _raise(error: Exception) -> None:
    raise error
