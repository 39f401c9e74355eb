"""Finds the folders and pins of a plan, and deletes them.

`views/cleaning.py` decides which workspaces may be deleted.
"""

import re
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from windlass.adapters.files import remove_durably, remove_empty_folder
from windlass.adapters.git import inspect
from windlass.adapters.git.cleaning import Cleaning, WorkspaceContents, is_partly_removed
from windlass.adapters.git.layout import Refs, note_of
from windlass.adapters.git.reconcile import remove_stale_locks
from windlass.adapters.git.store import Store
from windlass.adapters.processes.leftovers import end_leftovers
from windlass.adapters.projections import hash_of
from windlass.app.wiring.project import Project
from windlass.app.wiring.state_files import written_by_runs
from windlass.core.state import RunState, TaskState
from windlass.errors import RepositoryError
from windlass.formats import shares, writes
from windlass.views.cleaning import Item, last_commit, why_it_stays
from windlass.views.outcome import is_finished
from windlass.views.words import one_line, plural

_KEPT = re.compile(r"(?P<task>.+)\.(?P<run>[0-9a-zA-Z_-]+)\+*")
_SOME = 3

Delete = Callable[[], Awaitable[None]]


class Removal(Struct, frozen=True):
    """An item, and the function that deletes it; None if it stays."""

    item: Item
    delete: Delete | None = None


class CleanupOptions(Struct, frozen=True, kw_only=True):
    """What to delete besides the things that are always safe to delete."""

    ignored: bool = False
    """Workspaces with files that git ignores: a pin cannot hold those."""
    runs: bool = False
    """The logs of finished runs, except the last run."""
    pins: bool = False
    """Pins of finished runs that one of the user's branches contains too."""


class _Work(Struct, frozen=True):
    """A folder in which an agent or a person worked on a task."""

    folder: Path
    refs: Refs
    task: str
    parent: str
    index: Path
    """Windlass's own index, in its private folder."""

    def ref(self, held: WorkspaceContents) -> str:
        """The ref that pins its contents."""
        return f"{self.refs.root}/kept/{self.task}/{held.tree[:12]}"


class Cleanup:
    """The folders and pins of a plan, and what to do with each."""

    def __init__(self, project: Project, states: list[RunState], options: CleanupOptions) -> None:
        self._project = project
        self._states = states
        self._options = options
        last = states[-1]
        self._folders = project.folders(last.plan.id)
        # For the commits that pin workspaces; their messages name Windlass.
        identity = inspect.identity(project.user_git)
        store = Store(replace(project.origin, identity=identity), self._folders)
        remove_stale_locks(store, Refs(last.plan.id, last.run))
        settings = last.settings.workspace
        self._git = Cleaning(store, max_file_bytes=settings.max_file_mb * 1e6, keep=settings.keep)
        self._refs = partial(Refs, last.plan.id)

    async def look(self) -> list[Removal]:
        """Find everything, and decide what can be deleted."""
        found = [*self._caches(), *self._runs()]
        found += [await self._workspace(each) for each in _inside(self._folders.workspaces)]
        found += [await self._set_aside(each) for each in _inside(self._folders.kept)]
        found += await self._state_files()
        if self._options.pins:
            found += [await self._pins(state) for state in self._states]
        return found

    def end_leftovers(self) -> None:
        """End processes that a dead run left in these folders."""
        end_leftovers(f"{self._project.mark}/{self._folders.plan}/")

    async def close(self) -> None:
        """Remove temporary files of `look`."""
        await self._git.close()

    def _caches(self) -> Iterator[Removal]:
        """Things that Windlass can make again at any time."""
        kinds = {
            self._folders.throwaway: "a temporary checkout",
            self._folders.home / "pool": "a checkout for reuse",
            self._folders.histories: "packs of the history in workspaces; made again when needed",
            self._folders.setup_results: "results of setup commands; made again when needed",
        }
        for place, why in kinds.items():
            for path in _inside(place):
                yield self._removable(path, why)

    def _runs(self) -> Iterator[Removal]:
        if not self._options.runs:
            return
        last = self._states[-1].run
        finished = {state.run for state in self._states if is_finished(state)} - {last}
        for folder in _inside(self._folders.home / "runs"):
            if folder.name in finished:
                yield self._removable(folder, "logs of a finished run; the journal keeps its facts")
            else:
                why = "the last run" if folder.name == last else "not a finished run of the plan"
                yield self._kept(folder, why)

    async def _state_files(self) -> list[Removal]:
        """State files in the user's checkout, as far as Windlass itself wrote them."""
        plans = [state.plan for state in self._states]
        shared = {path for plan in plans for path in shares(plan)}
        paths = dict.fromkeys(path for plan in plans for path in writes(plan))
        written = written_by_runs(self._project, self._states[-1].plan.id)
        return [
            self._state_file(path, written.get(path, frozenset()))
            for path in paths
            if path not in shared and (self._project.root / path).is_file()
        ]

    def _state_file(self, path: str, written: frozenset[str]) -> Removal:
        file = self._project.root / path
        if not is_finished(self._states[-1]):
            return self._kept(file, "the run is not finished, and keeps it up to date")
        if self._project.git.ask("ls-files", "--", path).strip():
            return self._kept(file, "git tracks it")
        if hash_of(file, inside=self._project.root) not in written:
            return self._kept(file, "another tool wrote or changed it")
        item = Item(name=self._shown(file), goes=True, why="a state file, as Windlass wrote it")
        return Removal(item, partial(self._delete_state_file, file, written))

    async def _delete_state_file(self, file: Path, written: frozenset[str]) -> None:
        """Look again, because another tool may have written it since."""
        if hash_of(file, inside=self._project.root) not in written:
            raise RepositoryError("another tool has just changed it")
        remove_durably(file, inside=self._project.root)
        if file.parent != self._project.root:
            remove_empty_folder(file.parent, inside=self._project.root)

    async def _workspace(self, folder: Path) -> Removal:
        if is_partly_removed(folder):
            return self._removable(folder, "already half removed")
        if not folder.is_dir() or folder.is_symlink():
            return self._kept(folder, "not a workspace of Windlass")
        if folder.name.startswith(".") and folder.name.endswith(".building"):
            return self._removable(folder, "half made and never used")
        note = note_of(self._folders, folder.name)
        state, task = self._find_task(folder.name, note.run if note is not None else None)
        if task is None:
            return self._kept(folder, "no run of the plan has such a task")
        if (why := why_it_stays(state, task)) is not None:
            return self._kept(folder, why)
        return await self._pinned_first(folder, state, task, self._folders.index(task.id))

    async def _set_aside(self, folder: Path) -> Removal:
        if is_partly_removed(folder):
            return self._removable(folder, "already half removed")
        named = _KEPT.fullmatch(folder.name)
        if named is None or not folder.is_dir() or folder.is_symlink():
            return self._kept(folder, "not a workspace of Windlass")
        state, task = self._find_task(named["task"], named["run"])
        if task is None:
            return self._kept(folder, "no run of the plan has such a task")
        if any(attempt.by is not None for attempt in task.attempts):
            why = "a person worked on it, and may have commits there; remove it by hand"
            return self._kept(folder, why)
        return await self._pinned_first(folder, state, task, self._folders.index_aside(folder.name))

    async def _pinned_first(
        self, folder: Path, state: RunState, task: TaskState, index: Path
    ) -> Removal:
        work = _Work(folder, self._refs(state.run), task.id, last_commit(state, task), index)
        held = await self._git.look(folder, work.refs, work.parent, index)
        if (why := self._why_unpinnable(held)) is not None:
            return self._kept(folder, why)
        why = "all of it is pinned" if held.pinned else f"pinned first, as {work.ref(held)}"
        item = Item(name=self._shown(folder), goes=True, why=why)
        return Removal(item, partial(self._delete_pinned, work))

    def _why_unpinnable(self, held: WorkspaceContents) -> str | None:
        """Why the contents of a folder cannot be pinned, or not all of them."""
        if held.refused:
            return f"it cannot be pinned: {held.refused}"
        if not held.loose or self._options.ignored:
            return None
        some = ", ".join(held.loose[:_SOME])
        more = f" and {len(held.loose) - _SOME} more" if len(held.loose) > _SOME else ""
        return f"git ignores {some}{more}, so no commit has it; --ignored deletes it"

    async def _delete_pinned(self, work: _Work) -> None:
        """Look again, because a person may have worked there since; pin, then remove."""
        held = await self._git.look(work.folder, work.refs, work.parent, work.index)
        if (why := self._why_unpinnable(held)) is not None:
            raise RepositoryError(why)
        if not held.pinned:
            await self._git.save(work.folder, work.refs, work.task, work.parent, work.ref(held))
        await self._git.remove(work.folder)
        await self._git.remove(work.index.parent)

    async def _pins(self, state: RunState) -> Removal:
        refs = self._refs(state.run)
        pins = await self._git.pins_in_branches(refs, state.tip) if is_finished(state) else {}
        if not pins:
            why = "your branches contain none of them" if is_finished(state) else "not finished"
            return Removal(Item(name=f"{refs.root}/", goes=False, why=why))
        item = Item(
            name=f"{refs.root}/",
            goes=True,
            why=f"{plural(len(pins), 'pin')} that your branches contain too",
        )
        return Removal(item, partial(self._git.unpin, pins))

    def _find_task(self, task_id: str, run: str | None) -> tuple[RunState, TaskState | None]:
        """The run that worked there, or the last one, and its task."""
        state = next((each for each in self._states if each.run == run), self._states[-1])
        return state, state.tasks.get(task_id) or state.withdrawn.get(task_id)

    def _removable(self, folder: Path, why: str) -> Removal:
        item = Item(name=self._shown(folder), goes=True, why=why)
        return Removal(item, partial(self._git.remove, folder))

    def _kept(self, folder: Path, why: str) -> Removal:
        return Removal(Item(name=self._shown(folder), goes=False, why=why))

    def _shown(self, folder: Path) -> str:
        return one_line(str(folder.relative_to(self._project.root)), 300)


def _inside(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []
