"""The mirror of a plan's journal in git: one ref per run, and nothing that a run has to wait for.

The ref holds a line of commits without files. The message of each holds the records that came since
the one before it, so nothing is written twice and nothing is left behind for gc. A later run of the
plan continues the line of the run before it.

Law: a pin is written in one transaction with the mirror of every fact before it, the mirror first.
The intent of an effect is recorded before the effect begins, so the mirror knows of everything that
git shows of a run. A journal that is restored from it looks as after a crash, and resumes like one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import anyio
from msgspec import Struct
from msgspec.structs import replace

from windlass.adapters.git.git import Git
from windlass.adapters.git.layout import Folders, Refs, orders
from windlass.adapters.git.store import Origin, Store
from windlass.core.events import segments as form
from windlass.core.events.segments import Mark
from windlass.errors import GitFailed, JournalError

FLUSH_SECONDS = 1.0
"""How far the mirror may be behind the journal while nothing is pinned."""

Records = Callable[[int], Sequence[bytes]]
"""Returns the journal's records after a position."""


class Mirrored(NamedTuple):
    """How far a mirror holds the journal, and its newest commit."""

    commit: str = ""
    mark: Mark = Mark()


class Restored(Struct, frozen=True):
    """The records restored from a mirror, and notes about missing ones."""

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
        """The commit of the run's own ref."""
        self._least = 0
        """How many records the journal has once the run has begun."""
        self._writing = anyio.Lock()

    async def open(self, *, begun: bool) -> None:
        """Continue the plan's newest mirror, and add the mirror to every pin from now on.

        A run that has not begun has no mirror before its first fact, because it may never begin.
        Raises JournalDamaged if the journal is behind the mirror, or is another one.
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
                found = Mirrored()  # damaged: copy the whole journal again
            form.refuse_other(self._refs.plan, records, found.mark)
            self._now = found
        self._store.carrier = self.carry

    @property
    def until(self) -> int:
        """The position in the journal up to which the run's own ref holds it."""
        return self._now.mark.seq if self._held == self._now.commit else 0

    async def keep(self) -> None:
        """Copy new records at intervals, as long as the run lasts."""
        while True:
            await anyio.sleep(FLUSH_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Copy new records; what git does not accept now is sent again next time."""
        await self.carry(())

    async def carry(self, lines: tuple[str, ...]) -> None:
        """Run a transaction on refs, with the mirror as its first part.

        A run continues if the mirror cannot be written.
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
        """Continue from the ref's commit, if the ref was deleted or set back.

        A ref with more than this journal, or with another one, is left alone: it is not ours.
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
        """The mirror of the whole journal, as objects that no ref holds yet."""
        fresh = self._records(self._now.mark.seq)
        if self._now.mark.seq + len(fresh) < max(self._least, 1):
            return None
        return _extended(self._store, self._refs.plan, self._now, fresh)


def _extended(store: Store, plan: str, mirror: Mirrored, fresh: Sequence[bytes]) -> Mirrored:
    """The mirror with these records at its end, as objects that no ref holds yet."""
    new = mirror
    for payloads in form.split(fresh):
        text, mark = form.write(plan, payloads, new.mark)
        new = Mirrored(store.note([new.commit] if new.commit else [], text), mark)
    return new


_NEWEST = "%(objectname)%00%(authorname)%00%(authoremail:trim)%00%(contents)"


def copy_at_rest(
    origin: Origin,
    folders: Folders,
    refs: Refs,
    records: Sequence[bytes],
    identity: Callable[[], Mapping[str, str]],
) -> None:
    """Copy what a command has recorded in the journal of a run at rest: two short git processes.

    The caller holds the plan's lock. `records` is the whole journal. The new part has the author
    of the part before it; `identity` is called only for a run that has no mirror yet. Such a run
    also gets its position among the runs of its plan, if no process has started it so far. Raises
    WindlassError or OSError if git cannot be read or written, or if the mirror holds more than the
    journal, or another one.
    """
    git = Store(origin, folders).refs
    held = ""
    found = git.run("for-each-ref", f"--format={_NEWEST}", refs.journal).stdout
    also: list[str] = []
    if found:
        held, name, email, text = found.split("\0", 3)
        mirror = Mirrored(held, form.end_of(text.encode(errors="surrogateescape")))
        try:
            form.refuse_other(refs.plan, records, mirror.mark)
        except JournalError:
            if _is_whole(git, held):
                raise
            mirror = Mirrored()  # damaged: copy the whole journal again
        roles = ("AUTHOR", "COMMITTER")
        signed = {f"GIT_{role}_NAME": name for role in roles}
        signed |= {f"GIT_{role}_EMAIL": email for role in roles}
    else:
        mirror, signed = Mirrored(), identity()
        pins = git.run("for-each-ref", "--format=%(refname)", f"refs/windlass/{refs.plan}/")
        places = orders(pins.stdout.split(), refs.plan)
        if refs.run not in places:
            also.append(refs.order(max(places.values(), default=0) + 1))
    store = Store(replace(origin, identity=signed), folders)
    new = _extended(store, refs.plan, mirror, records[mirror.mark.seq :])
    if new.commit == mirror.commit:
        return
    old = held or "0" * len(new.commit)
    lines = [
        f"update {refs.journal} {new.commit} {old}",
        *(f"create {r} {new.commit}" for r in also),
    ]
    git.run("update-ref", "--stdin", stdin="\n".join(("start", *lines, "commit", "")))


def _is_whole(git: Git, commit: str) -> bool:
    """Whether every segment up to this one exists."""
    try:
        git.run("rev-list", "--first-parent", "--quiet", commit)
    except GitFailed:
        return False
    return True


def newest_mirror(pins: Mapping[str, str], plan: str) -> Refs | None:
    """The newest run of a plan that has a mirror; `pins` are the plan's."""
    places = orders(pins, plan)
    kept = [run for run in places if Refs(plan, run).journal in pins]
    return Refs(plan, max(kept, key=lambda run: places[run])) if kept else None


async def look(store: Store, commit: str) -> Mirrored:
    """How far a mirror goes, by its newest commit. Raises GitFailed or JournalError."""
    return Mirrored(commit, form.end_of(await store.message_of(commit)))


async def restored(store: Store, refs: Refs, commit: str) -> Restored:
    """The records in a run's mirror, as far as their hashes match. Raises GitFailed."""
    try:
        names = await store.line_of(commit)
    except GitFailed:
        names = await store.every_commit()  # a part is lost; earlier parts may exist
    messages = (data.partition(b"\n\n")[2] for data in await store.contents(names))
    payloads, mark = form.assemble(refs.plan, messages)
    try:
        whole = mark == (await look(store, commit)).mark
    except (GitFailed, JournalError):
        whole = False
    return Restored(payloads, () if whole else (f"the mirror is damaged after record {mark.seq}",))
