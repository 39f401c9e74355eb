"""The journals of a project, with their locks, inboxes and run folders.

A journal without read permission is not lost, and is not reported as lost.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from windlass.adapters.clock import SystemClock
from windlass.adapters.git import inspect
from windlass.adapters.git.layout import Folders, Refs, orders
from windlass.adapters.git.mirror import copy_at_rest
from windlass.adapters.git.reconcile import remove_stale_locks
from windlass.adapters.git.store import Origin, Store
from windlass.adapters.journal.activity import activities_after
from windlass.adapters.journal.inbox import send
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.adapters.locks import PlanLock, holder
from windlass.core.engine import replay
from windlass.core.events import model as e
from windlass.core.exchange import Message
from windlass.core.secrets import Redactor
from windlass.core.state import RunState
from windlass.errors import GitFailed, RepositoryError, WindlassError
from windlass.formats import continue_here_path, writes
from windlass.ports import Activity, Journal
from windlass.runner import Session
from windlass.views.progress import Progress


class Journals:
    """The journals of every plan that was run in a project."""

    def __init__(
        self,
        home: Path,
        git: inspect.UserGit,
        origin: Origin,
        redactor: Redactor,
        make_home: Callable[[], None],
        notice: Callable[[str], None],
    ) -> None:
        self._home = home
        self._git = git
        self._origin = origin
        self._redactor = redactor
        self._make_home = make_home
        self._notice = notice
        self._cached: dict[str, _CachedJournal] = {}

    def _folders(self, plan_id: str) -> Folders:
        return Folders(self._home, plan_id)

    def plans(self) -> list[str]:
        """The ids of all plans that were run here."""
        return plans_with_journals(self._home)

    def entries(self, plan_id: str) -> list[e.Entry]:
        """All entries of the plan's journal."""
        return self._read(plan_id).entries

    def last_run(self, plan_id: str) -> RunState | None:
        """The state of the plan's last run."""
        return self._read(plan_id).state

    def _read(self, plan_id: str) -> "_CachedJournal":
        """The plan's journal; it is read again only if it has changed."""
        path = self._folders(plan_id).journal
        stamp = tuple(_stamp(each) for each in (path, path.with_name(f"{path.name}-wal")))
        cached = self._cached.get(plan_id)
        if cached is None or cached.stamp != stamp:
            cached = self._cached[plan_id] = _CachedJournal(stamp, path)
        return cached

    @contextmanager
    def reading(self, plan_id: str) -> Generator[Journal]:
        """Open the plan's journal for repeated reading, while another process may write to it."""
        with SqliteJournal.read_only(self._folders(plan_id).journal) as journal:
            yield journal

    def activities_after(self, plan_id: str, run: str, offset: int) -> tuple[list[Activity], int]:
        """The agents' activity after that offset of its file, and the next offset."""
        return activities_after(self._folders(plan_id).run(run) / "activity.jsonl", offset)

    def state_file(self, plan_id: str) -> Progress | None:
        """The newest state.json, for when the journal cannot be read."""
        files = [folder / "state.json" for folder in self.run_folders(plan_id)]
        files = [path for path in files if path.exists()]
        return msgspec.json.decode(files[-1].read_bytes(), type=Progress) if files else None

    def run_folders(self, plan_id: str) -> list[Path]:
        """The folders of the plan's runs, the newest last, in the order that is pinned in git."""
        places: dict[str, int] = {}
        with suppress(WindlassError):
            pins = self._git.ask(
                "for-each-ref", "--format=%(refname)", f"refs/windlass/{plan_id}/"
            ).stdout
            places = orders(pins.split(), plan_id)
        found = (path for path in (self._folders(plan_id).home / "runs").glob("*") if path.is_dir())
        # Runs of earlier versions have no pinned order: they are sorted by time.
        return sorted(found, key=lambda path: (places.get(path.name, 0), path.stat().st_mtime_ns))

    def live_pid(self, plan_id: str) -> int | None:
        """The process that runs the plan now, if any."""
        lock = self._folders(plan_id).lock
        try:
            return holder(lock)
        except PermissionError as error:
            raise _unreadable(lock, error) from None

    def send(self, plan_id: str, message: Message) -> Path:
        """Send a message to a live run; the returned file exists until the run has read it."""
        text = self._redactor.text(message.text)
        now = SystemClock().now()
        return send(self._folders(plan_id).inbox, replace(message, text=text, at=now))

    @contextmanager
    def session(self, plan_id: str) -> Generator[Session]:
        """The one writer of the plan's journal; it holds the plan's lock until the block ends."""
        with self.locked(plan_id) as open_session, open_session() as session:
            yield session

    @contextmanager
    def locked(self, plan_id: str) -> Generator[Callable[[], AbstractContextManager[Session]]]:
        """Hold the plan's lock; yields what opens the session under it.

        It is for `recover`, which sets the old journal aside in between.
        """
        self._make_home()
        with PlanLock(self._folders(plan_id).lock) as lock:
            yield partial(self._session, plan_id, lock)

    @contextmanager
    def _session(self, plan_id: str, lock: PlanLock) -> Generator[Session]:
        """The session over the plan's journal; what it recorded is in git when it ends."""
        with SqliteJournal.open(self._folders(plan_id).journal, self._redactor) as journal:
            session = Session(journal, lock)
            began = session.seq
            try:
                yield session
            except BaseException:
                with suppress(WindlassError, OSError):
                    self._mirror(plan_id, session)
                raise
            try:
                self._mirror(plan_id, session)
            except (WindlassError, OSError) as error:
                if session.seq == began:
                    return
                self._notice(
                    "this is recorded in the journal, but git did not take a copy of it, which"
                    f" `windlass recover` would need ({error}); the next run of {plan_id} copies it"
                )

    def _mirror(self, plan_id: str, session: Session) -> None:
        """Copy into git what it lacks of the journal, unless a run has done that already."""
        if session.before is None or session.seq <= session.mirrored:
            return
        folders, refs = self._folders(plan_id), Refs(plan_id, session.state.run)
        records = session.records(0)
        copy = partial(copy_at_rest, self._origin, folders, refs, records, self._identity)
        try:
            copy()
        except GitFailed:
            # A git that was killed left a lock; no other process writes while we hold the plan's.
            remove_stale_locks(Store(self._origin, folders), refs)
            copy()
        session.mirrored = session.seq

    def _identity(self) -> Mapping[str, str]:
        return inspect.identity(self._git)

    def own_files(self, plan_id: str | None = None) -> tuple[str, ...]:
        """Paths in the user's checkout that Windlass writes, for this plan and all others."""
        plans = sorted({*self.plans(), *((plan_id,) if plan_id is not None else ())})
        return (".windlass/", *(path for plan in plans for path in self._written(plan)))

    def _written(self, plan_id: str) -> list[str]:
        """The state files that runs of the plan have written."""
        # Other commands report a journal that cannot be read.
        with suppress(WindlassError, OSError):
            events = (entry.event for entry in self.entries(plan_id))
            starts = (event for event in events if isinstance(event, e.RunStarted))
            plans = [start.plan for start in starts]
            return [path for plan in plans for path in (*writes(plan), continue_here_path(plan))]
        return []


class _CachedJournal:
    """The entries of a journal, as its files were with this stamp."""

    def __init__(self, stamp: tuple[object, ...], path: Path) -> None:
        self.stamp = stamp
        self.entries: list[e.Entry] = []
        if _exists(path):
            with SqliteJournal.read_only(path) as journal:
                self.entries = list(journal.read())

    @cached_property
    def state(self) -> RunState | None:
        """The state of the plan's last run."""
        return replay(entry.event for entry in self.entries)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def plans_with_journals(home: Path) -> list[str]:
    """The ids of plans with a journal, readable or not."""
    try:
        folders = list((home / "plans").iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError as error:
        raise _unreadable(home, error) from None
    return sorted(folder.name for folder in folders if _may_exist(folder / "journal.db"))


def _exists(journal: Path) -> bool:
    """Whether the file exists; raises if its folder cannot be read."""
    try:
        journal.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError as error:
        raise _unreadable(journal, error) from None
    return True


def _may_exist(journal: Path) -> bool:
    try:
        return _exists(journal)
    except RepositoryError:
        return True


def _unreadable(place: Path, error: OSError) -> RepositoryError:
    return RepositoryError(
        f"{place} cannot be read: {error.strerror}",
        about=str(place),
        hint="run this as its owner, or get permission to read it",
    )
