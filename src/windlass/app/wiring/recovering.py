"""Restores a journal from git, and finds journals and repositories that were cut short."""

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
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
from windlass.app.wiring.facts import last_run_state, state_file_position
from windlass.app.wiring.project import Project
from windlass.app.wiring.state_files import Notice, write_state_files
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
"""How many of the commits that git lacks are named."""

_BESIDE = ("", "-wal", "-shm")
"""The endings of a journal's files."""


def plans_in_git(project: Project) -> dict[str, list[str]]:
    """Every plan that has pins, with its runs; changes nothing."""
    return anyio.run(pinned_runs, Store(project.origin, project.folders("")))


def why_lost(project: Project, plan_id: str, pinned: Sequence[str]) -> str | None:
    """Why the plan's journal is lost; None if it is good.

    A journal of a newer Windlass, or one without read permission, is not lost: this raises.
    """
    try:
        entries = project.journals.entries(plan_id)
        state = last_run_state(entries)
    except JournalDamaged as damage:
        return damage.message
    if state is None:
        exists = project.folders(plan_id).journal.exists()
        return "it is empty" if exists else "there is none"
    if state_file_position(project, plan_id, state.run) > entries[-1].seq:
        return f"it ends at {entries[-1].seq}, and state.json was made from a longer one"
    if (until := mirrored_until(project, plan_id)) > entries[-1].seq:
        return f"it ends at {entries[-1].seq}, and its mirror in git at {until}"
    known = {run.run: run for run in runs(entry.event for entry in entries)}
    return _forgotten(project, plan_id, pinned, known)


def _forgotten(
    project: Project, plan_id: str, pinned: Sequence[str], known: dict[str, RunState]
) -> str | None:
    """How the pins in git contradict the journal; None if they do not.

    A run without pinned tasks may have died before its first fact was recorded.
    """
    for run in pinned:
        refs = Refs(plan_id, run)
        held = project.git.ask("for-each-ref", "--format=%(refname)", f"{refs.root}/task/").split()
        state = known.get(run)
        ref = held[0] if held and state is None else None
        if state is not None:
            ref = forgotten_pin(state, refs, held)
        if ref is not None:
            return f"it is behind git, and does not know {ref}"
        tip = project.git.ask("for-each-ref", "--format=%(objectname)", refs.tip).strip()
        if state is not None and (why := displaced_tip(state, refs, {refs.tip: tip})) is not None:
            return f"it disagrees with git: {why}"
    return None


def mirrored_until(project: Project, plan_id: str) -> int:
    """The last record in the mirror of the plan's newest run; 0 if there is no mirror."""
    asked = ("for-each-ref", "--format=%(refname) %(objectname)", f"refs/windlass/{plan_id}/")
    pins = dict(line.split() for line in project.git.ask(*asked).splitlines())
    if (newest_run := newest_mirror(pins, plan_id)) is None:
        return 0
    try:
        text = project.git.ask("cat-file", "commit", pins[newest_run.journal])
        return end_of(text.encode(errors="surrogateescape")).seq
    except (WindlassError, UnicodeError):
        return 0  # a damaged mirror proves nothing


def refuse_behind(project: Project, plan_id: str, last: int) -> None:
    """Raise if a journal is behind its mirror: it has lost its end. The run must be at rest."""
    if (until := mirrored_until(project, plan_id)) > last:
        raise behind(plan_id, last, until)


def why_git_is_older(project: Project, state: RunState) -> str | None:
    """Which recorded commits of a resting run git lacks, with the cure; None if it has them all.

    This happens if `.git` was restored from a copy and `.windlass` was not.
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
    command = f"recover {refs.plan}" if tip else f"run {refs.plan} --restart"
    return (
        f"git is older than the journal: {what}. Was .git restored from a copy? Restore the newer "
        f"one, or continue from what git has: windlass {command}"
    )


class Recovery:
    """Reads a plan's runs from git, and writes a new journal; made by `open_recovery`."""

    def __init__(
        self,
        project: Project,
        plan_id: str,
        open_session: Callable[[], AbstractContextManager[Session]],
    ) -> None:
        self._project = project
        self._plan_id = plan_id
        self._open_session = open_session
        self._folders = project.folders(plan_id)
        identity = inspect.identity(project.user_git)
        self._store = Store(replace(project.origin, identity=identity), self._folders)
        self._store.open("")

    def places(self) -> dict[str, int]:
        """The position of each run among the runs of the plan; the newest has the highest."""
        return anyio.run(self._places)

    async def _places(self) -> dict[str, int]:
        return orders(await self._store.pins(f"refs/windlass/{self._plan_id}/"), self._plan_id)

    def recorded(self, run: str) -> Recorded:
        """The journal of a run, from its mirror in git."""
        return anyio.run(recorded_in_git, self._store, Refs(self._plan_id, run))

    def remains(self, run: str, base: str | None) -> Remains:
        """What git has of a run besides its journal."""
        return anyio.run(remains_of, self._store, Refs(self._plan_id, run), base)

    def record(
        self,
        payloads: Sequence[bytes],
        facts: Sequence[e.Event],
        remains: Remains,
        notice: Notice,
    ) -> Path | None:
        """Write a journal of these records and facts; the old one is kept under another name.

        Also writes the state files; `notice` hears of those that were edited.
        """
        refs = Refs(self._plan_id, remains.run)
        remove_stale_locks(self._store, refs)
        state = engine.replay((*(codec.decode(payload) for payload in payloads), *facts))
        if state is None:
            raise BadInput("there is nothing to record")
        anyio.run(self._put_pins, refs, state, remains)
        state_file = self._folders.run(remains.run) / "state.json"
        aside = self._set_aside()
        # It was made from the old journal, and would make the new one look cut short.
        remove_durably(state_file)
        with self._open_session() as session:
            session.restore(payloads)
            if facts:
                session.note(*facts)
            write_state_files(self._project, state, session.seq, notice)
        return aside

    async def _put_pins(self, refs: Refs, state: RunState, remains: Remains) -> None:
        """Put the tip back, and make the run the newest: the journal is its own now."""
        found = (await self._store.pins(refs.tip)).get(refs.tip)
        try:
            if not await is_newest(self._store, refs):
                await self._store.pin({await next_order(self._store, refs): remains.base})
            if found is None:
                await self._store.pin({refs.tip: state.tip})
            elif put_back(state, remains):
                await self._store.move(refs.tip, new=state.tip, old=found)
        finally:
            self._store.close()

    def _set_aside(self) -> Path | None:
        """Rename the files of the old journal to a free name; return it."""
        journal = self._folders.journal
        endings = [end for end in _BESIDE if Path(f"{journal}{end}").exists()]
        if not endings:
            return None
        number = 1
        while any(Path(f"{journal}.damaged-{number}{end}").exists() for end in _BESIDE):
            number += 1
        for end in reversed(endings):  # the journal itself last, so that a crash leaves it in place
            Path(f"{journal}{end}").rename(f"{journal}.damaged-{number}{end}")
        fsync_dir(journal.parent)
        return Path(f"{journal}.damaged-{number}")


@contextmanager
def open_recovery(project: Project, plan_id: str) -> Generator[Recovery]:
    """Hold the plan's lock until the block ends."""
    with project.journals.locked(plan_id) as open_session:
        yield Recovery(project, plan_id, open_session)
