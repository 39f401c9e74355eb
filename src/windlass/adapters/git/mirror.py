"""The mirror of a plan's journal in git: one ref per run, and nothing that a run has to wait for.

The ref holds a commit without parents. Its tree holds the sealed segments of the journal, its
message the records after them. So most writes are one object, and a record is written again about
five times in all, however long the run is.

Law: a pin is written in one transaction with the mirror of every fact before it, the mirror first.
The intent of an effect is recorded before the effect begins, so the mirror knows of everything that
git shows of a run. A journal that is restored from it is as a crash left it, and is resumed so.
"""

from collections.abc import Callable, Mapping, Sequence

import anyio
from msgspec import Struct

from windlass.adapters.git.layout import Refs, orders
from windlass.adapters.git.store import Store
from windlass.core.events import segments as form
from windlass.core.events.segments import Mark, Segment
from windlass.errors import GitFailed, JournalError

FLUSH_SECONDS = 1.0
"""How far the mirror may be behind the journal where nothing is pinned meanwhile."""

Records = Callable[[int], Sequence[bytes]]
"""Gives the journal's records after a position."""


class Mirrored(Struct, frozen=True, kw_only=True):
    """A journal as far as a mirror has it."""

    commit: str = ""
    tree: str = ""
    segments: tuple[Segment, ...] = ()
    sealed: Mark = Mark()
    """Where the last sealed segment ends."""
    tail: tuple[bytes, ...] = ()
    """The records after it."""
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
                new = await self._written()
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

    async def _written(self) -> Mirrored | None:
        """The mirror with all that the journal has, as objects that no ref holds yet."""
        fresh = self._records(self._now.mark.seq)
        if self._now.mark.seq + len(fresh) < max(self._least, 1):
            return None
        if not fresh and self._now.commit:
            return self._now
        segments, tail, sealed = list(self._now.segments), list(self._now.tail), self._now.sealed
        mark, size = self._now.mark, sum(map(len, tail))
        for payload in fresh:
            tail.append(payload)
            mark, size = mark.after([payload]), size + len(payload)
            if size >= form.SEAL_BYTES:
                blob = await self._store.copied_blob(form.write(tail, mark))
                segments.append(Segment(sealed.seq + 1, mark.seq, 0, blob))
                await self._join(segments)
                tail, size, sealed = [], 0, mark
        tree = self._now.tree
        if not tree or tuple(segments) != self._now.segments:
            tree = await self._store.copied_folder({each.name: each.blob for each in segments})
        told = f"Journal of {self._refs.plan} up to record {mark.seq}\n\n"
        text = told + form.write(tail, mark).decode()
        commit = await self._store.commit(tree, (), text, copied=True)
        return Mirrored(
            commit=commit,
            tree=tree,
            segments=tuple(segments),
            sealed=sealed,
            tail=tuple(tail),
            mark=mark,
        )

    async def _join(self, segments: list[Segment]) -> None:
        while (level := form.full_level(segments)) is not None:
            last = segments[-form.FAN :]
            texts = await self._store.contents([each.blob for each in last])
            blob = await self._store.copied_blob(form.joined(texts))
            segments[-form.FAN :] = [Segment(last[0].first, last[-1].last, level + 1, blob)]


def newest_mirror(pins: Mapping[str, str], plan: str) -> Refs | None:
    """The newest run of a plan, if it has a mirror; `pins` are the plan's."""
    places = orders(pins, plan)
    if not places:
        return None
    refs = Refs(plan, max(places, key=lambda run: places[run]))
    return refs if refs.journal in pins else None


async def look(store: Store, commit: str) -> Mirrored:
    """How far a mirror goes; its segments are not read. Raises GitFailed or JournalError."""
    tree = await store.tree_of(commit)
    listed = await store.listing(commit)
    segments = tuple(form.segment_named(name, file.id) for name, file in sorted(listed.items()))
    text = (await store.message_of(commit)).partition(b"\n\n")[2]
    sealed = Mark(segments[-1].last, await _end(store, segments[-1])) if segments else Mark()
    tail, mark = form.read(text, sealed)
    return Mirrored(
        commit=commit, tree=tree, segments=segments, sealed=sealed, tail=tuple(tail), mark=mark
    )


async def _end(store: Store, segment: Segment) -> bytes:
    """The journal's hash where a segment ends."""
    [text] = await store.contents([segment.blob])
    return form.end_of(text).hash


async def restored(store: Store, commit: str) -> Restored:
    """The records that a mirror holds, as far as they prove themselves. Raises GitFailed."""
    payloads, mark = list[bytes](), Mark()
    try:
        listed = await store.listing(commit)
        for name in sorted(listed):
            [text] = await store.contents([listed[name].id])
            more, mark = form.read(text, mark)
            payloads += more
        more, _ = form.read((await store.message_of(commit)).partition(b"\n\n")[2], mark)
    except (GitFailed, JournalError) as error:
        return Restored(payloads, (f"the mirror is damaged after record {mark.seq}: {error}",))
    return Restored([*payloads, *more])
