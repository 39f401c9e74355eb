"""The loop of a local run: record what happened, begin what follows from it, wait for the outcome.

Law: an effect reports its outcome as facts and decides nothing. It begins after the facts that
announce it are durable.
"""

from collections.abc import Callable, Sequence
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
"""Commands that bring a run to rest."""

INBOX_SECONDS = 0.5
"""How often a live run looks for commands from people."""


class Runner:
    """Runs until the run ends, or until nothing can be done without a person."""

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
        """What is true now."""
        return self._session.state

    def reserve(self, ask: Ask) -> Held | No:
        """Set aside what a request of an agent may come to, if that fits into the budget."""
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
        """Record what a request has come to so far, for the case that it is never settled."""
        if self._group is None or self._ended.is_set():
            return
        if (task := self._spenders.get(id_)) is not None:
            fact = e.SpendStreamed(at=self._ports.clock.now(), id=id_, task=task, usage=usage)
            self._record_beside(fact, self._group)

    def settle(self, id_: str, usage: e.Usage, *, broke_off: bool = False) -> None:
        """Record what that request came to, before its last byte is passed on."""
        if self._group is None or self._ended.is_set():
            return  # the end of the run has written it off, as an estimate
        if (task := self._spenders.pop(id_, None)) is not None:
            at = self._ports.clock.now()
            fact = e.SpendSettled(at=at, id=id_, task=task, usage=usage, broke_off=broke_off)
            self._record_beside(fact, self._group)

    def refuse(self, ask: Ask) -> None:
        """Record that an answer was cut: all that its request asked for was not left."""
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
        before = self._session.before
        if before is not None and is_finished(before) and isinstance(first[0], e.RunResumed):
            return before
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

        The caller is a server, which answers its client with the error and lives on.
        """
        try:
            self._record([fact], group)
        except Exception as error:
            group.start_soon(_raise, error)
            raise

    def _record(self, happened: Sequence[e.Event], group: TaskGroup) -> None:
        """Make what happened, and everything that follows from it, durable; then act."""
        self._begin(self._session.record(happened, self._ports.clock.now()), group)

    def _begin(self, intents: Sequence[Intent], group: TaskGroup) -> None:
        for intent in intents:
            if isinstance(intent, LookAtPlan):
                now, plan = self._ports.clock.now(), self._ports.plan()
                self._begin(self._session.record((), now, plan=plan), group)
            else:
                group.start_soon(self._carry_out, intent, group)
        if self.state.ended is not None:
            self._ended.set()
            self._drop_all()  # an agent that waits for its provider would keep the process

    async def _carry_out(self, intent: Intent, group: TaskGroup) -> None:
        """Do what is intended, and record what came of it."""
        happened: tuple[e.Event, ...] = ()
        with anyio.CancelScope() as scope:
            if isinstance(intent, DROPPABLE):
                self._droppable.add(scope)
                if self.state.stopping is not None and self.state.stop_as != "pause":
                    scope.cancel()
            happened = await self._effects.carry_out(intent)
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
        """What people said to this run while it rested, and what to call once it is recorded.

        It may be what the run waits for: taken up without it, it would end at once.
        """
        words, heard = list[e.Event](), list[Callable[[], None]]()
        if self._session.before is None or not isinstance(first[0], e.RunResumed):
            return words, heard
        state = note(self._session.before, first).states[-1]
        for message, remove in self._ports.inbox.take():
            if message.command not in _STOPS and self._is_meant(message, state.run):
                if said := spoken(message, state, self._ports.clock.now()):
                    state = note(state, said).states[-1]
                words.extend(said)
                heard.append(remove)
        return words, heard

    async def _read_inbox(self, group: TaskGroup) -> None:
        while True:
            for message, remove in self._ports.inbox.take():
                if self._ended.is_set():
                    return  # the process that takes the run up again hears it
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
