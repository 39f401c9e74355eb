"""The mirror of a plan's journal in git: one ref per run, and nothing that a run has to wait for.

The ref holds a line of commits without files. The message of each holds the records that came since
the one before it, so nothing is written twice and nothing is left behind for gc. A later run of the
plan goes on with the line of the run before it.

Law: a pin is written in one transaction with the mirror of every fact before it, the mirror first.
The intent of an effect is recorded before the effect begins, so the mirror knows of everything that
git shows of a run. A journal that is restored from it is as a crash left it, and is resumed so.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import anyio
from msgspec import Struct

from windlass.adapters.git.layout import Refs, orders
from windlass.adapters.git.store import Store
from windlass.core.events import segments as form
from windlass.core.events.segments import Mark
from windlass.errors import GitFailed, JournalError

FLUSH_SECONDS = 1.0
"""How far the mirror may be behind the journal where nothing is pinned meanwhile."""

Records = Callable[[int], Sequence[bytes]]
"""Gives the journal's records after a position."""


class Mirrored(NamedTuple):
    """How far a mirror has the journal, and the commit that says so."""

    commit: str = ""
    mark: Mark = Mark()


class Restored(Struct, frozen=True):
    """The records that a mirror gives back, and what it could not give."""

    payloads: list[bytes]
    notes: tuple[str, ...] = ()


class JournalMirror:
    """Keeps the mirror of one run; its caller holds the plan's lock."""

    def __init__(self, store: Store, refs: Refs, records: Records) -> None:
        self._store = store
        self._refs = refs
        self._records = records
        self._now = Mirrored()
        self._held = ""
        """Where the run's own ref stands."""
        self._least = 0
        """How many records the journal has once the run has begun."""
        self._writing = anyio.Lock()

    async def open(self, *, begun: bool) -> None:
        """Go on from the plan's newest mirror, and add the mirror to every pin from now on.

        A run that has not begun has no mirror before its first fact, for it may never begin. Raises
        JournalDamaged where the journal is behind the mirror, or is another one.
        """
        records = self._records(0)
        self._least = 0 if begun else len(records) + 1
        pins = await self._store.pins(f"refs/windlass/{self._refs.plan}/")
        self._held = pins.get(self._refs.journal, "")
        if (newest := newest_mirror(pins, self._refs.plan)) is not None:
            try:
                found = await look(self._store, pins[newest.journal])
                await self._store.line_of(found.commit)  # raises where a part of it is lost
            except (GitFailed, JournalError):
                found = Mirrored()  # damaged: the journal is the record, and is copied anew
            form.refuse_other(self._refs.plan, records, found.mark)
            self._now = found
        self._store.carrier = self.carry

    async def keep(self) -> None:
        """Copy what is recorded, as long as the run lasts."""
        while True:
            await anyio.sleep(FLUSH_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Copy what is recorded; what git does not take now it is given again next time."""
        await self.carry(())

    async def carry(self, lines: tuple[str, ...]) -> None:
        """Make a transaction on refs, with the mirror as its first part.

        A mirror that cannot be written stops no run.
        """
        async with self._writing:
            try:
                new = self._written()
                if new is not None and new.commit != self._held:
                    held = self._held or "0" * len(new.commit)
                    move = f"update {self._refs.journal} {new.commit} {held}"
                    await self._store.transact((move, *lines))
                    self._now, self._held = new, new.commit
                    return
            except (GitFailed, JournalError):
                await self._find_ref()
        if lines:
            await self._store.transact(lines)

    async def _find_ref(self) -> None:
        """Go on from where the ref stands, if it was deleted or put back.

        One that holds more than this journal, or another one, is left alone: it is not ours.
        """
        try:
            held = (await self._store.pins(self._refs.journal)).get(self._refs.journal, "")
            if held:
                mark = (await look(self._store, held)).mark
                form.refuse_other(self._refs.plan, self._records(0), mark)
            self._held = held
        except (GitFailed, JournalError):
            return

    def _written(self) -> Mirrored | None:
        """The mirror with all that the journal has, as objects that no ref holds yet."""
        fresh = self._records(self._now.mark.seq)
        if self._now.mark.seq + len(fresh) < max(self._least, 1):
            return None
        new = self._now
        for payloads in form.split(fresh):
            text, mark = form.write(self._refs.plan, payloads, new.mark)
            new = Mirrored(self._store.note([new.commit] if new.commit else [], text), mark)
        return new


def newest_mirror(pins: Mapping[str, str], plan: str) -> Refs | None:
    """The newest run of a plan that has a mirror; `pins` are the plan's."""
    places = orders(pins, plan)
    kept = [run for run in places if Refs(plan, run).journal in pins]
    return Refs(plan, max(kept, key=lambda run: places[run])) if kept else None


async def look(store: Store, commit: str) -> Mirrored:
    """How far a mirror goes, as its newest commit says. Raises GitFailed or JournalError."""
    return Mirrored(commit, form.end_of(await store.message_of(commit)))


async def restored(store: Store, refs: Refs, commit: str) -> Restored:
    """The records that a run's mirror holds, as far as they prove themselves. Raises GitFailed."""
    try:
        names = await store.line_of(commit)
    except GitFailed:
        names = await store.every_commit()  # a part is lost; what came before it may be there
    messages = (data.partition(b"\n\n")[2] for data in await store.contents(names))
    payloads, mark = form.assemble(refs.plan, messages)
    try:
        whole = mark == (await look(store, commit)).mark
    except (GitFailed, JournalError):
        whole = False
    return Restored(payloads, () if whole else (f"the mirror is damaged after record {mark.seq}",))
