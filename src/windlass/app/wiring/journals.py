"""The journals of a project, and what lies beside them: locks, inboxes, folders of runs.

A journal that may not be read is not lost, and is not reported as lost.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

import msgspec
from msgspec.structs import replace

from windlass.adapters.clock import SystemClock
from windlass.adapters.git import inspect
from windlass.adapters.git.layout import Folders, orders
from windlass.adapters.journal.activity import activities_after
from windlass.adapters.journal.inbox import send
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.adapters.locks import PlanLock, holder
from windlass.core.engine import replay
from windlass.core.events import model as e
from windlass.core.exchange import Message
from windlass.core.secrets import Redactor
from windlass.core.state import RunState
from windlass.errors import RepositoryError, WindlassError
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
        redactor: Redactor,
        make_home: Callable[[], None],
    ) -> None:
        self._home = home
        self._git = git
        self._redactor = redactor
        self._make_home = make_home
        self._looks: dict[str, _Look] = {}

    def _folders(self, plan_id: str) -> Folders:
        return Folders(self._home, plan_id)

    def plans(self) -> list[str]:
        """The ids of plans that were ever run here."""
        return plans_with_journals(self._home)

    def entries(self, plan_id: str) -> list[e.Entry]:
        """All that the plan's journal has; only reads."""
        return self._look(plan_id).entries

    def last_run(self, plan_id: str) -> RunState | None:
        """The state of the plan's last run."""
        return self._look(plan_id).state

    def _look(self, plan_id: str) -> "_Look":
        """What the journal says; it is read again only if it has changed since."""
        path = self._folders(plan_id).journal
        stamp = tuple(_stamp(each) for each in (path, path.with_name(f"{path.name}-wal")))
        seen = self._looks.get(plan_id)
        if seen is None or seen.stamp != stamp:
            seen = self._looks[plan_id] = _Look(stamp, path)
        return seen

    @contextmanager
    def reading(self, plan_id: str) -> Generator[Journal]:
        """The plan's journal, to be read again and again beside its writer."""
        with SqliteJournal.read_only(self._folders(plan_id).journal) as journal:
            yield journal

    def activities_after(self, plan_id: str, run: str, offset: int) -> tuple[list[Activity], int]:
        """What agents of a run said after that place in its file, and the place to go on from."""
        return activities_after(self._folders(plan_id).run(run) / "activity.jsonl", offset)

    def state_file(self, plan_id: str) -> Progress | None:
        """The newest state.json: what is left to show of a journal that cannot be read."""
        files = [folder / "state.json" for folder in self.run_folders(plan_id)]
        files = [path for path in files if path.exists()]
        return msgspec.json.decode(files[-1].read_bytes(), type=Progress) if files else None

    def run_folders(self, plan_id: str) -> list[Path]:
        """The folders of the plan's runs, the newest last, by the order that git pins."""
        places: dict[str, int] = {}
        with suppress(WindlassError):
            pins = self._git.ask(
                "for-each-ref", "--format=%(refname)", f"refs/windlass/{plan_id}/"
            ).stdout
            places = orders(pins.split(), plan_id)
        found = (path for path in (self._folders(plan_id).home / "runs").glob("*") if path.is_dir())
        # Only runs of earlier versions have no place; of those the clock is all there is.
        return sorted(found, key=lambda path: (places.get(path.name, 0), path.stat().st_mtime_ns))

    def live_pid(self, plan_id: str) -> int | None:
        """The process that runs the plan now, if any."""
        lock = self._folders(plan_id).lock
        try:
            return holder(lock)
        except PermissionError as error:
            raise _hidden(lock, error) from None

    def send(self, plan_id: str, message: Message) -> Path:
        """Tell a live run something; the file is there until the run has heard it."""
        text = self._redactor.text(message.text)
        now = SystemClock().now()
        return send(self._folders(plan_id).inbox, replace(message, text=text, at=now))

    @contextmanager
    def session(self, plan_id: str) -> Generator[Session]:
        """The one writer of the plan's journal; it holds the plan's lock while the block lasts."""
        self._make_home()
        folders = self._folders(plan_id)
        with PlanLock(folders.lock), SqliteJournal.open(folders.journal, self._redactor) as journal:
            yield Session(journal)

    def own_files(self, plan_id: str | None = None) -> tuple[str, ...]:
        """Paths in the user's checkout that Windlass itself writes, for this plan or another."""
        plans = sorted({*self.plans(), *((plan_id,) if plan_id is not None else ())})
        return (".windlass/", *(path for plan in plans for path in self._written(plan)))

    def _written(self, plan_id: str) -> list[str]:
        """The files that runs of the plan have written their state to."""
        # A journal that cannot be read is said where it matters, not where it hides a warning.
        with suppress(WindlassError, OSError):
            events = (entry.event for entry in self.entries(plan_id))
            starts = (event for event in events if isinstance(event, e.RunStarted))
            plans = [start.plan for start in starts]
            return [path for plan in plans for path in (*writes(plan), continue_here_path(plan))]
        return []


class _Look:
    """A journal as it was when its files bore this stamp."""

    def __init__(self, stamp: tuple[object, ...], path: Path) -> None:
        self.stamp = stamp
        self.entries: list[e.Entry] = []
        if is_there(path):
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
    """The ids of plans that have one; one that is hidden counts, and is told once it is read."""
    try:
        folders = list((home / "plans").iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError as error:
        raise _hidden(home, error) from None
    return sorted(folder.name for folder in folders if _may_be_there(folder / "journal.db"))


def is_there(journal: Path) -> bool:
    """Whether there is such a file; raises where nobody may look."""
    try:
        journal.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError as error:
        raise _hidden(journal, error) from None
    return True


def _may_be_there(journal: Path) -> bool:
    try:
        return is_there(journal)
    except RepositoryError:
        return True


def _hidden(place: Path, error: OSError) -> RepositoryError:
    return RepositoryError(
        f"{place} cannot be read: {error.strerror}",
        hint="run this as whoever it belongs to, or have them let you read it",
    )
