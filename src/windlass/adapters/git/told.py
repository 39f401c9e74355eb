"""What no commit shows, pinned as text once it is recorded: how a run began, and what was said.

Law: the journal comes first; a pin that a crash left out is written by the next process. Nothing
waits for these pins, and a run that cannot write one goes on: they are for the day that the journal
is lost.
"""

from collections.abc import Sequence

import anyio

from windlass.adapters.git.layout import Refs
from windlass.adapters.git.store import Store
from windlass.errors import GitFailed
from windlass.events import model as e
from windlass.state import RunState, apply
from windlass.state.remains import TOLD, began_text, told_text


class ToldPins:
    """Pins the run's first fact, and those that no commit shows."""

    def __init__(self, store: Store, refs: Refs) -> None:
        self._store = store
        self._refs = refs
        self._count = 0
        self._due: dict[str, str] = {}
        self._wanted = anyio.Event()

    async def catch_up(self, facts: Sequence[e.Event]) -> None:
        """Pin what an earlier process recorded and had no time to pin; `facts` are the run's."""
        held = (await self._store.pins(self._refs.began, self._refs.told())).keys()
        self._count, self._due = 0, {}
        for fact in facts:
            self._name(fact)
        if self._due.keys() <= held:
            self._due.clear()
            return
        self._count, state = 0, None
        for fact in facts:
            state = apply(state, fact)
            self.heed(fact, state)
        self._due = {ref: text for ref, text in self._due.items() if ref not in held}
        await self.flush()

    def heed(self, fact: e.Event, state: RunState) -> None:
        """Note what is to be pinned of a recorded fact; `state` is the one it led to."""
        if (ref := self._name(fact)) is None:
            return
        began = isinstance(fact, e.RunStarted)
        self._due[ref] = began_text(fact) if began else told_text(fact, state)
        self._wanted.set()

    def _name(self, fact: e.Event) -> str | None:
        """What the fact is pinned under, if it is; a recovered run counts on from its pins."""
        ref: str | None = None
        if isinstance(fact, e.RunStarted):
            ref = self._refs.began
        elif isinstance(fact, e.RunRecovered):
            self._count = fact.told
            self._due = {r: text for r, text in self._due.items() if r == self._refs.began}
        elif isinstance(fact, TOLD):
            self._count += 1
            ref = self._refs.told(self._count)
        if ref is not None:
            self._due[ref] = ""
        return ref

    async def keep(self) -> None:
        """Pin what is noted, as it comes, for as long as the run lasts."""
        while True:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            await self.flush()

    async def flush(self) -> None:
        """Pin what is noted."""
        while self._due:
            ref, text = next(iter(self._due.items()))
            try:
                await self._pin(ref, text)
            except GitFailed:
                return  # the next process tries again
            finally:
                self._due.pop(ref, None)

    async def _pin(self, ref: str, text: str) -> None:
        await self._store.pin({ref: await self._store.text(text)})
