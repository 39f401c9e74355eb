"""A project on disk: the repository around a folder, and what Windlass keeps in it."""

import hashlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from windlass.adapters.files import make_folder, write_durably
from windlass.adapters.git import inspect
from windlass.adapters.git.inspect import Base
from windlass.adapters.git.layout import Folders, Refs
from windlass.adapters.git.store import Origin
from windlass.adapters.inbox import send
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.adapters.lock import PlanLock, holder
from windlass.adapters.plan_files import PlanFiles
from windlass.adapters.sandbox import Sandbox
from windlass.adapters.sandbox.bubblewrap import Bubblewrap
from windlass.adapters.sandbox.choose import choose
from windlass.adapters.sandbox.plain import Plain
from windlass.dialects import writes
from windlass.errors import WindlassError
from windlass.events import model as e
from windlass.ports import Message
from windlass.secrets import Redactor
from windlass.settings import Level, Settings
from windlass.views.progress import Progress

__all__ = ["CREDENTIALS", "Base", "Project"]

CREDENTIALS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_OAUTH_TOKEN",
)
"""The variables an agent may need to reach its model; no other secret goes near it."""


WritableJournal = SqliteJournal
"""The journal as the one who holds the lock has it."""


class Project:
    """The repository around a folder, and what Windlass keeps in it."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self.directory = directory
        self.environment = environment
        self.user_git = inspect.UserGit(directory, environment)
        self.origin: Origin = inspect.locate(self.user_git)
        self.redactor = Redactor(environment)
        self.root = self.origin.root
        self.home = self.root / ".windlass"
        # The same plan may run in two clones of one repository; each ends only its own leftovers.
        self.mark = hashlib.sha256(bytes(self.root)).hexdigest()[:12]

    def folders(self, plan_id: str) -> Folders:
        """Where a plan's things lie."""
        return Folders(self.home, plan_id)

    def plans(self) -> list[str]:
        """The ids of plans that were ever run here."""
        return sorted(path.parent.name for path in self.home.glob("plans/*/journal.db"))

    def entries(self, plan_id: str) -> list[e.Entry]:
        """All that the plan's journal has, for those who only look."""
        path = self.folders(plan_id).journal
        if not path.exists():
            return []
        with SqliteJournal.read_only(path) as journal:
            return list(journal.read())

    def state_file(self, plan_id: str) -> Progress | None:
        """The newest state.json: what is left to show of a journal that cannot be read."""
        files = sorted(
            self.folders(plan_id).home.glob("runs/*/state.json"), key=lambda p: p.stat().st_mtime
        )
        return msgspec.json.decode(files[-1].read_bytes(), type=Progress) if files else None

    def live_pid(self, plan_id: str) -> int | None:
        """The process that runs the plan now, if any."""
        return holder(self.folders(plan_id).lock)

    def send(self, plan_id: str, message: Message) -> None:
        """Tell a live run something."""
        send(self.folders(plan_id).inbox, message)

    def own_files(self, plan_id: str) -> tuple[str, ...]:
        """Paths in the user's checkout that Windlass itself writes, for this plan or another."""
        plans = sorted({*self.plans(), plan_id})
        return (".windlass/", *(path for plan in plans for path in self._written(plan)))

    def _written(self, plan_id: str) -> list[str]:
        """The files that runs of the plan have written their state to."""
        # A journal that cannot be read is said where it matters, not where it hides a warning.
        with suppress(WindlassError, OSError):
            events = (entry.event for entry in self.entries(plan_id))
            starts = (event for event in events if isinstance(event, e.RunStarted))
            return [path for start in starts for path in writes(start.plan)]
        return []

    def base(self, wanted: str | None, plan_id: str) -> Base:
        """The commit a new run would work from."""
        return inspect.base(self.user_git, wanted, self.own_files(plan_id))

    def why_not_in(self, base: Base, commit: str) -> str | None:
        """Why the base does not hold a commit, or None where it does."""
        return inspect.why_not_in(self.user_git, base.commit, commit)

    def full_name(self, commit: str) -> str:
        """The whole hash of a commit that is there."""
        return inspect.full_name(self.user_git, commit)

    def refuse_unfit(self, settings: Settings, plan_id: str) -> None:
        """Raise for what would keep a run of the plan from working here; nothing is changed."""
        inspect.identity(self.user_git)
        inspect.refuse_clashing_branches(self.user_git, Refs(plan_id, ""))
        self._bubblewrap(settings, "probe")
        if settings.sandbox.level == "bwrap":
            self.sandbox(settings, "probe")

    def git(self, *args: str) -> str:
        """Ask the user's git something that only reads."""
        return self.user_git.ask(*args).stdout

    def listed(self) -> list[str]:
        """Every file of the checkout that is tracked or could be: nothing that git ignores."""
        which = ("--cached", "--others", "--exclude-standard")
        answer = self.user_git.ask("-C", str(self.root), "ls-files", "-z", *which)
        return sorted(set(answer.fields))

    def write(self, name: str, text: str) -> None:
        """Put a file at the root of the user's checkout, which only happens at their word."""
        write_durably(self.root / name, text)

    def plan_files(self) -> PlanFiles:
        """One reading of a plan's files."""
        return PlanFiles(self.root)

    def make_home(self) -> None:
        """Windlass's own folder, which the user's git is not to see."""
        make_folder(self.home)
        ignore = self.home / ".gitignore"
        if not ignore.exists():
            write_durably(ignore, "*\n")

    @contextmanager
    def holding(self, plan_id: str) -> Generator[SqliteJournal]:
        """The plan's lock and its journal, for whoever writes."""
        self.make_home()
        folders = self.folders(plan_id)
        with PlanLock(folders.lock), SqliteJournal.open(folders.journal, self.redactor) as journal:
            yield journal

    def sandbox(self, settings: Settings, marker: str) -> Sandbox:
        """The walls for this run: nothing weaker than asked for."""

        def plain(level: Level) -> Plain:
            empty = self.home / "empty-home"
            make_folder(empty)
            return Plain(
                level,
                home=empty,
                environment=self.environment,
                pass_env=settings.sandbox.env,
                marker=marker,
            )

        bubblewrap = self._bubblewrap(settings, marker)
        return choose(settings.sandbox.level, bubblewrap=bubblewrap, plain=plain)

    def why_no_walls(self, settings: Settings) -> str | None:
        """Why bubblewrap does not work here, or None."""
        return self._bubblewrap(settings, "probe").probe()

    def _bubblewrap(self, settings: Settings, marker: str) -> Bubblewrap:
        return Bubblewrap(
            home=Path(self.environment.get("HOME", "/nonexistent")),
            repository=self.root,
            objects=self.origin.objects,
            masked=(self.origin.git_dir,),
            path=self.environment.get("PATH", ""),
            environment=self.environment,
            marker=marker,
            read=tuple(Path(folder).expanduser() for folder in settings.sandbox.read),
            pass_env=settings.sandbox.env,
        )

    def credentials(self) -> dict[str, str]:
        """What the agent reaches its model with."""
        set_ones = (name for name in CREDENTIALS if self.environment.get(name, "").strip())
        return {name: self.environment[name] for name in set_ones}
