"""The world of one run: real adapters behind every port."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio
import msgspec
from msgspec.structs import replace

from windlass.adapters.activity import ActivityLog
from windlass.adapters.checks import CommandChecks
from windlass.adapters.clock import SystemClock
from windlass.adapters.furnish import Furnisher
from windlass.adapters.git import inspect
from windlass.adapters.git.checkouts import remove
from windlass.adapters.git.layout import Refs
from windlass.adapters.git.reconcile import reconcile, remove_stale_locks
from windlass.adapters.git.repository import GitRepository
from windlass.adapters.git.store import Store
from windlass.adapters.git.throwaways import Throwaways
from windlass.adapters.guard import Guard, GuardedAgent, GuardedChecks
from windlass.adapters.inbox import FileInbox
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.adapters.leftovers import end_leftovers
from windlass.adapters.projections import Projections, Shown
from windlass.cli.wiring.guidance import said_to_agents
from windlass.cli.wiring.metering import employed, is_metered
from windlass.cli.wiring.project import Project
from windlass.dialects import project as project_dialect
from windlass.dialects import shares, writes
from windlass.events import model as e
from windlass.ports import Activity, Agent, Checks
from windlass.runner import Ports, Runner
from windlass.settings import Settings
from windlass.state import RunState
from windlass.views.progress import progress

Observe = Callable[[e.Entry, RunState], None]


class World:
    """Everything one run needs, composed."""

    def __init__(
        self,
        project: Project,
        plan_id: str,
        run: str,
        settings: Settings,
        journal: SqliteJournal,
        *,
        agent: Agent | None = None,
        writes: tuple[str, ...] = (),
        notice: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._project = project
        self._notice = notice
        self._journal = journal
        self._folders = project.folders(plan_id)
        self.refs = Refs(plan_id, run)
        identity = inspect.identity(project.user_git)
        inspect.refuse_clashing_branches(project.user_git, self.refs)
        self._store = Store(replace(project.origin, identity=identity), self._folders)
        self._mark = f"{project.mark}/{plan_id}"
        self.sandbox = project.sandbox(settings, f"{self._mark}/{run}")
        self._furnisher = Furnisher(self._store, self.sandbox, settings.workspace)
        self._repository = GitRepository(
            self._store,
            self.refs,
            furnish=self._furnisher,
            max_file_bytes=settings.workspace.max_file_mb * 1e6,
        )
        self._clock = SystemClock()
        self._run_folder = self._folders.run(run)
        self._checks: Checks = CommandChecks(
            Throwaways(self._store, self._furnisher),
            self.sandbox,
            timeout=settings.check_timeout,
            network=settings.sandbox.network,
            logs=self._run_folder / "logs",
        )
        self._settings = settings
        self._agent = agent
        self.metered = agent is None and is_metered(project.credentials())
        self._guard: Guard | None = None
        if self.sandbox.level == "checkout":
            self._guard = Guard(project.origin, (*project.own_files(plan_id), *writes))
            self._checks = GuardedChecks(self._checks, self._guard)

    async def haul(
        self,
        first: Sequence[e.Event],
        before: RunState | None,
        *,
        observe: Observe,
        watch: Callable[[Activity], None],
    ) -> RunState:
        """Run until the run ends, from these first facts; `before` is what is resumed, if any."""
        await self._clear_up(first[0], before)
        projections = self._projections()
        chatter = ActivityLog(self._run_folder / "activity.jsonl", self._clock)

        def observer(entry: e.Entry, state: RunState) -> None:
            observe(entry, state)
            projections.show(state, entry.seq)

        def watcher(activity: Activity) -> None:
            cleaned = replace(activity, text=self._project.redactor.text(activity.text))
            chatter.write(cleaned)
            watch(cleaned)

        try:
            async with (
                employed(
                    self._settings.agent, self.sandbox, self._project.credentials(), self._agent
                ) as (agent, books),
                anyio.create_task_group() as group,
            ):
                runner = Runner(
                    self._ports(agent, watcher),
                    seq=self._journal.last,
                    state=before,
                    observer=observer,
                )
                books.runner = runner
                group.start_soon(projections.keep)
                with chatter:
                    ended = await runner.run(*first)
                group.cancel_scope.cancel()
                return ended
        except ExceptionGroup as failures:
            # The first says why it failed; the others are what that tore down.
            raise _first(failures) from None
        finally:
            projections.flush()
        raise AssertionError("a block that is left without an error has returned")

    async def catch_up(self, state: RunState, seq: int) -> None:
        """Do what a process had no time for that was killed just after it had ended the run."""
        await self._clear_up(None, state)
        projections = self._projections()
        projections.show(state, seq)
        projections.flush()

    def _ports(self, agent: Agent, watch: Callable[[Activity], None]) -> Ports:
        return Ports(
            journal=self._journal,
            agent=agent if self._guard is None else GuardedAgent(agent, self._guard),
            repository=self._repository,
            checks=self._checks,
            clock=self._clock,
            inbox=FileInbox(self._folders.inbox),
            watch=watch,
            metered=self.metered,
            redact=self._project.redactor.text,
            said=said_to_agents(self._project.root),
        )

    async def _clear_up(self, first: e.Event | None, before: RunState | None) -> None:
        """End and mend what an earlier process left, then open the repository for this run."""
        end_leftovers(f"{self._mark}/")
        remove_stale_locks(self._store, self.refs)
        await remove(self._folders.throwaway)
        self._store.open(self._furnisher.exclude_text())
        if before is not None and isinstance(first, e.RunResumed):
            await reconcile(self._store, self.refs, before)
        base = first.base if isinstance(first, e.RunStarted) else before.base if before else ""
        await self._repository.open(base)
        for task_id in before.done if before is not None and before.run == self.refs.run else ():
            await self._repository.release(task_id)

    def _projections(self) -> Projections:
        memory = self._run_folder / "projected.json"
        return Projections(self._render, memory=memory, notice=self._notice)

    def _render(self, state: RunState, seq: int) -> Mapping[Path, Shown]:
        own = msgspec.json.format(msgspec.json.encode(progress(state, seq)), indent=2).decode()
        root, redact = self._project.root, self._project.redactor.text
        found = ((path, _text(root / path)) for path in writes(state.plan))
        texts = {path: text for path, text in found if text is not None}
        shared = shares(state.plan)
        shown = {
            root / path: Shown(text, shared=path in shared)
            for path, text in project_dialect(state, seq, texts, redact).items()
        }
        return {self._run_folder / "state.json": Shown(own + "\n"), **shown}


def _text(path: Path) -> str | None:
    """A file of the user's as it is at this moment; None where it is gone, or no text now."""
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None


def _first(failure: Exception) -> Exception:
    while isinstance(failure, ExceptionGroup):
        failure = failure.exceptions[0]  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return failure  # pyright: ignore[reportUnknownVariableType]
