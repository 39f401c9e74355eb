"""Warn once about changes that a person makes during a live run: plan, branches, workspaces.

Law: it only reads. Once a second it compares the times and sizes of a few files; it reads the plan,
or asks git, only if one of them has changed. Files that cannot be read are skipped.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread

from windlass.app.plans import plan_to_resume
from windlass.app.wiring import Project
from windlass.core.state import Phase, RunState
from windlass.errors import PlanError, WindlassError
from windlass.formats import shares, writes
from windlass.views.edits import edited
from windlass.views.progress import integration_branch
from windlass.views.words import one_line

SECONDS = 1.0
MAX_FILES = 2_000
"""Of a plan that is a folder; of a larger one, some files are not watched."""

_EDITED = "was edited"
_AT_WORK = frozenset({Phase.PLAYING, Phase.TAKEN})

Say = Callable[[str, str], None]


class Meanwhile:
    """Watches the plan, the branches and the workspaces of a live run."""

    def __init__(self, project: Project, state: RunState, say: Say) -> None:
        self._project = project
        self._state = state
        self._say = say
        self._plan_print = self._print(self._plan_files())
        self._refs_print = self._print(self._ref_files())
        self._base = self._commit_of(state.base_branch)
        self._shown = self._commit_of(integration_branch(state)) is not None
        self._warned = ""
        """The last warning about the plan; empty while the file is as the run has it."""
        self._missing: set[tuple[str, int]] = set()
        """Tasks and attempts whose workspaces are gone."""

    def see(self, state: RunState) -> None:
        """Take the current state of the run."""
        self._state = state

    async def keep(self) -> None:
        """Check every second, until cancelled."""
        while True:
            await anyio.sleep(SECONDS)
            self._check_workspaces()
            for word, text in await anyio.to_thread.run_sync(self._check, abandon_on_cancel=True):
                self._say(word, text)

    def _check(self) -> list[tuple[str, str]]:
        with suppress(WindlassError, OSError, ValueError, RecursionError):
            return [*self._of_plan(), *self._of_branches()]
        return []

    def _check_workspaces(self) -> None:
        plan, run = self._state.plan.id, self._state.run
        busy = {(t.id, t.last.n) for t in self._state.live if t.phase in _AT_WORK and t.attempts}
        made = {each for each in busy if self._project.is_ready(plan, run, *each)}
        gone = {each for each in made if self._project.ready_workspace(plan, run, *each) is None}
        for task_id, _ in gone - self._missing:
            start = self._state.tasks[task_id].last.start[:10]
            lost = f"the workspace of {task_id} is gone, with the work done in it since {start}"
            self._say("GONE", f"{lost}; the task continues from there, and no turn is used up")
        self._missing = gone

    def _of_plan(self) -> Iterator[tuple[str, str]]:
        now = self._print(self._plan_files())
        if now == self._plan_print:
            return
        self._plan_print = now
        change = self._change_of_plan()
        if change and change != self._warned:
            text = f"{one_line(self._state.plan.path, 200)} {change}: the run keeps the old plan"
            cure = "`windlass pause`, then `windlass resume` takes up the edit"
            yield "PLAN", f"{text}; {cure}" if change == _EDITED else text
        self._warned = change

    def _change_of_plan(self) -> str:
        state = self._state
        if not os.path.lexists(self._project.root / state.plan.path):
            return "is gone"
        try:
            plan = plan_to_resume(self._project, state.plan.id)
        except PlanError as error:
            return f"was edited and cannot be read ({one_line(str(error), 200)})"
        return _EDITED if edited(state, plan) else ""

    def _of_branches(self) -> Iterator[tuple[str, str]]:
        now = self._print(self._ref_files())
        if now == self._refs_print:
            return
        self._refs_print = now
        yield from self._of_base()
        branch = integration_branch(self._state)
        there = self._commit_of(branch) is not None
        if self._shown and not there:
            yield "GONE", f"{branch} was deleted; nothing is lost, the next merge creates it again"
        self._shown = there

    def _of_base(self) -> Iterator[tuple[str, str]]:
        branch, before = self._state.base_branch, self._base
        self._base = self._commit_of(branch)
        landing = self._state.landing is not None  # then the run itself moves it
        if branch is None or self._base == before or landing:
            return
        where = f"has moved to {self._base[:10]}" if self._base else "is gone"
        yield "BASE", f"{branch} {where}; the run continues from {self._state.base[:10]}"

    def _commit_of(self, branch: str | None) -> str | None:
        with suppress(WindlassError):
            return self._project.git.branch_commit(branch) if branch is not None else None
        return None

    def _plan_files(self) -> Iterator[Path]:
        """The plan's files, except those that only the run writes."""
        plan, root = self._state.plan, self._project.root
        ours = {root / path for path in set(writes(plan)) - set(shares(plan))}
        named = {root / plan.path, *(root / task.path for task in plan.tasks if task.path)}
        inside = _files_of(root / plan.path) if (root / plan.path).is_dir() else ()
        yield from sorted({*named, *inside} - ours)

    def _ref_files(self) -> Iterator[Path]:
        """Where git can keep the two branches."""
        git_dir = self._project.origin.git_dir
        for branch in (self._state.base_branch, integration_branch(self._state)):
            if branch is not None:
                yield git_dir / "refs" / "heads" / branch
        yield git_dir / "packed-refs"
        yield git_dir / "reftable" / "tables.list"

    @staticmethod
    def _print(paths: Iterator[Path]) -> list[tuple[int, int] | None]:
        return [_stat(path) for path in paths]


def _stat(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _files_of(folder: Path) -> list[Path]:
    found: list[Path] = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(place, name) for name in names if not name.startswith(".")]
        if len(found) > MAX_FILES:
            break
    return found[:MAX_FILES]
