"""A journal restored from git: the lock, what git has of it, the old journal out of the way."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio
from msgspec.structs import replace

from windlass.adapters.files import fsync_dir, remove_durably
from windlass.adapters.git import inspect
from windlass.adapters.git.layout import Refs, orders
from windlass.adapters.git.mirror import newest_mirror
from windlass.adapters.git.reconcile import (
    displaced_tip,
    forgotten_pin,
    recorded,
    remove_stale_locks,
)
from windlass.adapters.git.remains import Recorded, pinned_runs, recorded_in_git, remains_of
from windlass.adapters.git.store import Store, is_newest, next_order
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.adapters.locks import PlanLock
from windlass.app.wiring.facts import newest, told_until
from windlass.app.wiring.project import Project
from windlass.app.wiring.state_files import Notice, tell
from windlass.core import engine
from windlass.core.engine import runs
from windlass.core.events import codec
from windlass.core.events import model as e
from windlass.core.events.segments import behind, end_of
from windlass.core.plan.names import some
from windlass.core.scheduler.recovery import put_back
from windlass.core.state import RunState
from windlass.core.state.remains import Remains
from windlass.errors import BadInput, JournalDamaged, WindlassError
from windlass.runner import Session
from windlass.views.outcome import is_finished

_SHOWN = 3
"""Of the commits that git lacks, so many are named."""

_BESIDE = ("", "-wal", "-shm")
"""The files that a journal is made of."""


def plans_in_git(project: Project) -> dict[str, list[str]]:
    """Every plan that has pins, with its runs; nothing is changed."""
    return anyio.run(pinned_runs, Store(project.origin, project.folders("")))


def why_lost(project: Project, plan_id: str, pinned: Sequence[str]) -> str | None:
    """Why the plan's journal cannot be gone on with; None where it is good.

    One of a newer Windlass, or that may not be read, is not lost: that is raised.
    """
    try:
        entries = project.journals.entries(plan_id)
        state = newest(entries)
    except JournalDamaged as damage:
        return damage.message
    if state is None:
        there = project.folders(plan_id).journal.exists()
        return "it is empty" if there else "there is none"
    if told_until(project, plan_id, state.run) > entries[-1].seq:
        return f"it ends at {entries[-1].seq}, and state.json was made from a longer one"
    if (until := mirrored_until(project, plan_id)) > entries[-1].seq:
        return f"it ends at {entries[-1].seq}, and its mirror in git at {until}"
    known = {run.run: run for run in runs(entry.event for entry in entries)}
    return _forgotten(project, plan_id, pinned, known)


def _forgotten(
    project: Project, plan_id: str, pinned: Sequence[str], known: dict[str, RunState]
) -> str | None:
    """What is pinned that the journal knows nothing of, if anything.

    A run that never came to begin a task may have died before its first fact was recorded.
    """
    for run in pinned:
        refs = Refs(plan_id, run)
        held = project.git.ask("for-each-ref", "--format=%(refname)", f"{refs.root}/task/").split()
        state = known.get(run)
        ref = held[0] if held and state is None else None
        if state is not None:
            ref = forgotten_pin(state, refs, held)
        if ref is not None:
            return f"it is behind git, and knows nothing of {ref}"
        tip = project.git.ask("for-each-ref", "--format=%(objectname)", refs.tip).strip()
        if state is not None and (why := displaced_tip(state, refs, {refs.tip: tip})) is not None:
            return f"it disagrees with git: {why}"
    return None


def mirrored_until(project: Project, plan_id: str) -> int:
    """How many records the mirror of the plan's newest run has; 0 where there is none."""
    asked = ("for-each-ref", "--format=%(refname) %(objectname)", f"refs/windlass/{plan_id}/")
    pins = dict(line.split() for line in project.git.ask(*asked).splitlines())
    if (newest_run := newest_mirror(pins, plan_id)) is None:
        return 0
    try:
        text = project.git.ask("cat-file", "commit", pins[newest_run.journal])
        return end_of(text.encode(errors="surrogateescape")).seq
    except (WindlassError, UnicodeError):
        return 0  # damaged: it proves nothing


def refuse_behind(project: Project, plan_id: str, last: int) -> None:
    """A resting journal that is behind its mirror has lost its end."""
    if (until := mirrored_until(project, plan_id)) > last:
        raise behind(plan_id, last, until)


def why_git_is_older(project: Project, state: RunState) -> str | None:
    """What git lacks of what the journal of a resting run records, and the cure; None if nothing.

    So it is when `.git` was restored from a copy and `.windlass` was not.
    """
    refs = Refs(state.plan.id, state.run)
    known = recorded(state, refs, finished=is_finished(state))
    asked = "".join(f"{commit}\n" for commit in known)
    answer = project.user_git.ask("cat-file", "--batch-check", stdin=asked)
    lost = [line.split()[0] for line in answer.text.splitlines() if line.endswith(" missing")]
    tip = project.git.ask("for-each-ref", "--format=%(objectname)", refs.tip).strip()
    displaced = displaced_tip(state, refs, {refs.tip: tip}) if tip else None
    if not lost and displaced is None:
        return None
    what = displaced or ""
    if lost:
        shown = some([f"{known[commit]} ({commit[:10]})" for commit in lost], _SHOWN)
        what = f"it lacks {shown}"
    again = f"recover {refs.plan}" if tip else f"run {refs.plan} --restart"
    return (
        f"git is older than the journal: {what}. Was .git restored from a copy? Bring the newer "
        f"one back, or go on from what git has: windlass {again}"
    )


class Recovering:
    """The plan's lock, and its runs as git shows them; made by `recovering`."""

    def __init__(self, project: Project, plan_id: str) -> None:
        self._project = project
        self._plan_id = plan_id
        self._folders = project.folders(plan_id)
        identity = inspect.identity(project.user_git)
        self._store = Store(replace(project.origin, identity=identity), self._folders)
        self._store.open("")

    def places(self) -> dict[str, int]:
        """The place of each run among the runs of the plan; the highest is the newest."""
        return anyio.run(self._places)

    async def _places(self) -> dict[str, int]:
        return orders(await self._store.pins(f"refs/windlass/{self._plan_id}/"), self._plan_id)

    def recorded(self, run: str) -> Recorded:
        """The journal of a run as git has it."""
        return anyio.run(recorded_in_git, self._store, Refs(self._plan_id, run))

    def remains(self, run: str, base: str | None) -> Remains:
        """What git shows of a run beside its journal."""
        return anyio.run(remains_of, self._store, Refs(self._plan_id, run), base)

    def record(
        self,
        payloads: Sequence[bytes],
        facts: Sequence[e.Event],
        remains: Remains,
        notice: Notice,
    ) -> Path | None:
        """Make a journal of the records and facts; the old one is kept under another name.

        The state files are written anew; `notice` hears of those that were edited.
        """
        refs = Refs(self._plan_id, remains.run)
        remove_stale_locks(self._store, refs)
        state = engine.replay((*(codec.decode(payload) for payload in payloads), *facts))
        if state is None:
            raise BadInput("there is nothing to record")
        anyio.run(self._put_pins, refs, state, remains)
        state_file = self._folders.run(remains.run) / "state.json"
        aside = self._set_aside()
        # It was made from another journal, and would make this one look cut short.
        remove_durably(state_file)
        with SqliteJournal.open(self._folders.journal, self._project.redactor) as journal:
            journal.restore(payloads)
            if facts:
                Session(journal).note(*facts)
            seq = journal.last
        tell(self._project, state, seq, notice)
        return aside

    async def _put_pins(self, refs: Refs, state: RunState, remains: Remains) -> None:
        """Put the tip where it stood, and the run behind all others: the journal is its own now."""
        now = (await self._store.pins(refs.tip)).get(refs.tip)
        try:
            if not await is_newest(self._store, refs):
                await self._store.pin({await next_order(self._store, refs): remains.base})
            if now is None:
                await self._store.pin({refs.tip: state.tip})
            elif put_back(state, remains):
                await self._store.move(refs.tip, new=state.tip, old=now)
        finally:
            self._store.close()

    def _set_aside(self) -> Path | None:
        """The old journal under a name that is free, with the log that belongs to it."""
        journal = self._folders.journal
        there = [end for end in _BESIDE if Path(f"{journal}{end}").exists()]
        if not there:
            return None
        number = 1
        while any(Path(f"{journal}.damaged-{number}{end}").exists() for end in _BESIDE):
            number += 1
        for end in reversed(there):  # the journal itself last: until then it is found as it was
            Path(f"{journal}{end}").rename(f"{journal}.damaged-{number}{end}")
        fsync_dir(journal.parent)
        return Path(f"{journal}.damaged-{number}")


@contextmanager
def recovering(project: Project, plan_id: str) -> Generator[Recovering]:
    """The plan's lock, and its runs in git, for as long as the block lasts."""
    project.make_home()
    with PlanLock(project.folders(plan_id).lock):
        yield Recovering(project, plan_id)
