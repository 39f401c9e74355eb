"""A project on disk: the repository around a folder, and what Windlass keeps in it."""

import hashlib
import os
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

import msgspec
from msgspec.structs import replace

from windlass.adapters.activity import heard_after
from windlass.adapters.clock import SystemClock
from windlass.adapters.disk import Trouble, trouble
from windlass.adapters.files import (
    make_folder,
    read_plainly,
    refuse_unsafe,
    remove_unfinished,
    write_durably,
)
from windlass.adapters.git import inspect
from windlass.adapters.git.excludes import kept_folders
from windlass.adapters.git.inspect import Base
from windlass.adapters.git.layout import Folders, Refs, orders
from windlass.adapters.git.prepared import Prepared, is_ready
from windlass.adapters.git.stats import changes
from windlass.adapters.git.store import Origin
from windlass.adapters.inbox import send
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.adapters.limits import Limits
from windlass.adapters.lock import PlanLock, holder
from windlass.adapters.plan_files import PlanFiles
from windlass.adapters.sandbox import Sandbox
from windlass.adapters.sandbox.bubblewrap import Bubblewrap
from windlass.adapters.sandbox.choose import choose
from windlass.adapters.sandbox.plain import Plain
from windlass.adapters.sandbox.seatbelt import Seatbelt
from windlass.adapters.sandbox.ways_out import WaysOut
from windlass.cli.wiring.journals import is_there, plans_with_journals
from windlass.cli.wiring.redacting import redactor_for
from windlass.dialects import CONTINUE_HERE, continue_here_path, writes
from windlass.errors import ConfigError, NoWalls, WindlassError
from windlass.events import model as e
from windlass.hosts import BadHost
from windlass.ports import Activity, Changes, Journal, Message
from windlass.settings import WALLED, Level, Settings
from windlass.state import RunState, fold
from windlass.views.progress import Progress
from windlass.views.steps import Ground

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
        self.root = self.origin.root
        self.redactor = redactor_for(self.root, environment)
        self.home = self.root / ".windlass"
        self._looks: dict[str, _Look] = {}
        # The same plan may run in two clones of one repository; each ends only its own leftovers.
        self.mark = hashlib.sha256(bytes(self.root)).hexdigest()[:12]

    def folders(self, plan_id: str) -> Folders:
        """Where a plan's things lie."""
        return Folders(self.home, plan_id)

    def plans(self) -> list[str]:
        """The ids of plans that were ever run here."""
        return plans_with_journals(self.home)

    def entries(self, plan_id: str) -> list[e.Entry]:
        """All that the plan's journal has, for those who only look."""
        return self._look(plan_id).entries

    def last_run(self, plan_id: str) -> RunState | None:
        """The state of the plan's last run."""
        return self._look(plan_id).state

    def _look(self, plan_id: str) -> "_Look":
        """What the journal says; a long one is read once, unless somebody wrote to it since."""
        path = self.folders(plan_id).journal
        stamp = tuple(_stamp(each) for each in (path, path.with_name(f"{path.name}-wal")))
        seen = self._looks.get(plan_id)
        if seen is None or seen.stamp != stamp:
            seen = self._looks[plan_id] = _Look(stamp, path)
        return seen

    @contextmanager
    def reading(self, plan_id: str) -> Generator[Journal]:
        """The plan's journal for whoever looks again and again, beside its writer."""
        with SqliteJournal.read_only(self.folders(plan_id).journal) as journal:
            yield journal

    def heard_after(self, plan_id: str, run: str, offset: int) -> tuple[list[Activity], int]:
        """What agents of a run said after that place in its file, and the place to go on from."""
        return heard_after(self.folders(plan_id).run(run) / "activity.jsonl", offset)

    def state_file(self, plan_id: str) -> Progress | None:
        """The newest state.json: what is left to show of a journal that cannot be read."""
        files = [folder / "state.json" for folder in self.run_folders(plan_id)]
        files = [path for path in files if path.exists()]
        return msgspec.json.decode(files[-1].read_bytes(), type=Progress) if files else None

    def run_folders(self, plan_id: str) -> list[Path]:
        """The folders of the plan's runs, the newest last, by the order that git pins."""
        places: dict[str, int] = {}
        with suppress(WindlassError):
            pins = self.git("for-each-ref", "--format=%(refname)", f"refs/windlass/{plan_id}/")
            places = orders(pins.split(), plan_id)
        found = (path for path in (self.folders(plan_id).home / "runs").glob("*") if path.is_dir())
        # Only runs of earlier versions have no place; of those the clock is all there is.
        return sorted(found, key=lambda path: (places.get(path.name, 0), path.stat().st_mtime_ns))

    def live_pid(self, plan_id: str) -> int | None:
        """The process that runs the plan now, if any."""
        return holder(self.folders(plan_id).lock)

    def send(self, plan_id: str, message: Message) -> Path:
        """Tell a live run something; the file is there until the run has heard it."""
        text = self.redactor.text(message.text)
        now = SystemClock().now()
        return send(self.folders(plan_id).inbox, replace(message, text=text, at=now))

    def lent(self, plan_id: str, run: str, task: str, n: int) -> Path | None:
        """The workspace of a task's n-th start, once it is ready to be worked in."""
        workspace = self.folders(plan_id).workspace(task)
        ready = self.is_ready(plan_id, run, task, n) and workspace.is_dir()
        return workspace if ready else None

    def is_ready(self, plan_id: str, run: str, task: str, n: int) -> bool:
        """Whether the workspace of a task's n-th start was made, even if it is gone by now."""
        return is_ready(self.folders(plan_id), run, task, n)

    def person(self) -> str:
        """Who sits here, as git knows them."""
        return inspect.identity(self.user_git)["GIT_AUTHOR_NAME"]

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
            plans = [start.plan for start in starts]
            return [path for plan in plans for path in (*writes(plan), continue_here_path(plan))]
        return []

    def base(self, wanted: str | None, plan_id: str) -> Base:
        """The commit a new run would work from."""
        return inspect.base(self.user_git, wanted, self.own_files(plan_id))

    def reminders(self, base: str, plan_id: str) -> list[str]:
        """What is worth a word to whoever goes on with a run that began from that commit."""
        return inspect.reminders(self.user_git, base, self.own_files(plan_id))

    def refuse_own_tracked(self) -> None:
        """Raise where a checkout would bring commands and records of runs that nobody made here."""
        inspect.refuse_own_tracked(self.user_git)

    def why_not_in(self, base: Base, commit: str) -> str | None:
        """Why the base does not hold a commit, or None where it does."""
        return inspect.why_not_in(self.user_git, base.commit, commit)

    def stands(self, branch: str) -> str | None:
        """Where one of the user's branches stands; None where there is none of that name."""
        return inspect.branch_stands(self.user_git, branch)

    def ground(self, state: RunState) -> Ground | None:
        """Where the branch stands now that the run began from; None where there is none to ask."""
        if state.base_branch is None:
            return None
        with suppress(WindlassError):
            now = self.stands(state.base_branch)
            holds = now is not None and inspect.why_not_in(self.user_git, now, state.tip) is None
            return Ground(commit=now, holds_tip=holds, has_remote=self.has_remote())
        return None

    def tip(self, state: RunState) -> str:
        """The ref that holds all that the run has merged, whatever other runs come after it."""
        return Refs(state.plan.id, state.run).tip

    def has_remote(self) -> bool:
        """Whether there is any place to push to."""
        return bool(self.git("remote").strip())

    def full_name(self, commit: str) -> str:
        """The whole hash of a commit that is there."""
        return inspect.full_name(self.user_git, commit)

    def refuse_unfit(self, settings: Settings, plan_id: str) -> None:
        """Raise for what would keep a run of the plan from working here; nothing is changed."""
        inspect.identity(self.user_git)
        inspect.refuse_clashing_branches(self.user_git, Refs(plan_id, ""))
        self.refuse_settings(settings)
        self._bubblewrap(settings, "probe")
        if settings.sandbox.level in WALLED:
            self.sandbox(settings, "probe")

    def refuse_settings(self, settings: Settings) -> None:
        """Raise for what would keep a run of any plan from working here with these settings."""
        inspect.refuse_unlinkable(self.origin, settings.workspace)
        kept_folders(settings.workspace.keep)

    def trouble(self, error: Exception) -> Trouble:
        """What ails the disk where the run keeps its things, told by trying; else what was said."""
        return trouble(error, (self.home, self.origin.objects[0]))

    def git(self, *args: str) -> str:
        """Ask the user's git something that only reads."""
        return self.user_git.ask(*args).stdout

    def changes(self, pairs: Iterable[tuple[str, str]]) -> Changes:
        """How much differs between pairs of commits."""
        return changes(self.user_git, pairs)

    def listed(self) -> list[str]:
        """Every file of the checkout that is tracked or could be: nothing that git ignores."""
        which = ("--cached", "--others", "--exclude-standard")
        answer = self.user_git.ask("-C", str(self.root), "ls-files", "-z", *which)
        return sorted(set(answer.fields))

    def write(self, name: str, text: str) -> None:
        """Put a file into the user's checkout, which only happens at their word."""
        path = self.root / name
        if path.parent != self.root:
            make_folder(path.parent, inside=self.root)
        # What a kill leaves unfinished lies in the git directory, until the next time.
        remove_unfinished(self.origin.git_dir)
        write_durably(path, text, inside=self.root, by_way_of=self.origin.git_dir)

    def read(self, name: str) -> str | None:
        """A small text file of the user's checkout; None for whatever else is there, or nothing."""
        return read_plainly(self.root / name, inside=self.root)

    def is_free(self, name: str) -> bool:
        """Whether a file could be made there, in the checkout itself and in nobody's place."""
        if os.path.lexists(self.root / name):
            return False
        try:
            refuse_unsafe(self.root / name, inside=self.root)
        except OSError:
            return False
        return True

    def prepared_for(self, workspace: Path) -> str | None:
        """The run that a workspace was last made ready for, where it says so."""
        note = self.folders(workspace.parents[1].name).prepared(workspace.name)
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(note.read_bytes(), type=Prepared).run
        return None

    def continue_here(self) -> dict[str, str]:
        """What is there of the files that say where a paused run stands, by their paths."""
        found = ((path, read_plainly(self.root / path, inside=self.root)) for path in CONTINUE_HERE)
        return {path: text for path, text in found if text is not None}

    def plan_files(self) -> PlanFiles:
        """One reading of a plan's files."""
        return PlanFiles(self.root)

    def make_home(self) -> None:
        """Windlass's own folder, which the user's git is not to see."""
        make_folder(self.home, inside=self.root)
        ignore = self.home / ".gitignore"
        if not os.path.lexists(ignore):
            write_durably(ignore, "*\n", inside=self.root)

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
                limits=_limits(settings),
            )

        return choose(
            settings.sandbox.level,
            bubblewrap=self._bubblewrap(settings, marker),
            seatbelt=self._seatbelt(settings, marker),
            plain=plain,
        )

    def level(self, settings: Settings) -> Level:
        """The level that a run would have; without walls, and without a word, it is checkout."""
        try:
            return self.sandbox(settings, "probe").level
        except NoWalls:
            return "checkout"

    def why_no_walls(self, settings: Settings) -> str | None:
        """Why the walls of this system do not work here, or None."""
        walls = self._seatbelt if sys.platform == "darwin" else self._bubblewrap
        return walls(settings, "probe").probe()

    def _bubblewrap(self, settings: Settings, marker: str) -> Bubblewrap:
        return Bubblewrap(
            home=Path(self.environment.get("HOME", "/nonexistent")),
            repository=self.root,
            masked=(self.origin.git_dir,),
            path=self.environment.get("PATH", ""),
            environment=self.environment,
            marker=marker,
            read=tuple(Path(folder).expanduser() for folder in settings.sandbox.read),
            pass_env=settings.sandbox.env,
            limits=_limits(settings),
            nested=settings.sandbox.nested,
            ways_out=self._ways_out(settings),
            open_network=settings.sandbox.network == "open",
        )

    def _ways_out(self, settings: Settings) -> WaysOut:
        try:
            return WaysOut(settings.sandbox.hosts, self.environment)
        except BadHost as error:
            hint = "mend [sandbox] hosts in windlass.toml"
            raise ConfigError(f"[sandbox] hosts: {error}", hint=hint) from error

    def _seatbelt(self, settings: Settings, marker: str) -> Seatbelt:
        return Seatbelt(
            home=Path(self.environment.get("HOME", "/nonexistent")),
            repository=self.root,
            path=self.environment.get("PATH", ""),
            environment=self.environment,
            marker=marker,
            places=self.home / "boxes",
            read=tuple(Path(folder).expanduser() for folder in settings.sandbox.read),
            pass_env=settings.sandbox.env,
            limits=_limits(settings),
        )

    def credentials(self) -> dict[str, str]:
        """What the agent reaches its model with."""
        set_ones = (name for name in CREDENTIALS if self.environment.get(name, "").strip())
        return {name: self.environment[name] for name in set_ones}


def _limits(settings: Settings) -> Limits:
    asked = settings.sandbox
    disk = None if asked.disk_mb is None else asked.disk_mb * 1_000_000
    if asked.memory_mb is None:
        return Limits(processes=asked.processes, disk=disk)
    return Limits(memory=asked.memory_mb * 1_000_000, processes=asked.processes, disk=disk)


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
        return fold(entry.event for entry in self.entries)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
