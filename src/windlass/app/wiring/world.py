"""The world of one run: real adapters behind every port."""

from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from threading import Thread

import anyio
from msgspec.structs import replace

from windlass.adapters.agents.settled import SettledAgent
from windlass.adapters.agents.traced import TracedAgent
from windlass.adapters.checks.runner import CommandChecks
from windlass.adapters.checks.setup_cache import SetupCache
from windlass.adapters.clock import SystemClock
from windlass.adapters.concurrently import first_of
from windlass.adapters.files import remove, remove_unfinished
from windlass.adapters.git import inspect
from windlass.adapters.git.layout import Refs
from windlass.adapters.git.mirror import JournalMirror
from windlass.adapters.git.reconcile import reconcile, remove_stale_locks
from windlass.adapters.git.repository import GitRepository
from windlass.adapters.git.store import Store
from windlass.adapters.journal.activity import ActivityLog
from windlass.adapters.journal.inbox import FileInbox
from windlass.adapters.processes.guardian import guarded
from windlass.adapters.processes.leftovers import end_leftovers
from windlass.adapters.sandbox.box import may_run_commands
from windlass.adapters.sandbox.guard import Guard, GuardedAgent, GuardedChecks
from windlass.app.wiring.agents import vendor_of
from windlass.app.wiring.instructions import said_to_agents
from windlass.app.wiring.metering import OwnMeter, employed
from windlass.app.wiring.project import Project
from windlass.app.wiring.state_files import projections, tell, written_alone
from windlass.core.events import model as e
from windlass.core.intents import lent_workspace
from windlass.core.plan import Plan
from windlass.core.secrets import without_secrets
from windlass.core.settings import Settings
from windlass.core.state import RunState, TaskState
from windlass.errors import Trespass
from windlass.formats import writes as writes_of
from windlass.ports import Activity, Agent, Checks
from windlass.runner import Observer, Ports, Runner, Session, lend


class World:
    """Everything one run needs, composed."""

    def __init__(
        self,
        project: Project,
        plan_id: str,
        run: str,
        settings: Settings,
        session: Session,
        *,
        agent: Agent | None = None,
        writes: tuple[str, ...] = (),
        notice: Callable[[str], None] = lambda _text: None,
        remark: Callable[[str], None] = lambda _text: None,
        traceparent: Callable[[str, str], str] | None = None,
        plan: Callable[[], Plan | str | None] = lambda: None,
    ) -> None:
        """Compose it; `notice` hears of edited state files, `remark` of workspaces.

        `traceparent` says in which span an agent of a task and a role works. `plan` reads the
        plan's files as they stand now, or says why they cannot be read.
        """
        self._plan = plan
        self._traceparent = traceparent
        self._project = project
        self._notice = notice
        self._session = session
        self._folders = project.folders(plan_id)
        self.refs = Refs(plan_id, run)
        identity = inspect.identity(project.user_git)
        inspect.refuse_clashing_branches(project.user_git, self.refs)
        self._store = Store(replace(project.origin, identity=identity), self._folders)
        self._mark = f"{project.mark}/{plan_id}"
        self.sandbox = project.walls.sandbox(settings, f"{self._mark}/{run}")
        self._setup_cache = SetupCache(
            self._store, self.refs, self.sandbox, settings.workspace, project.redactor
        )
        self._repository = GitRepository(
            self._store,
            self.refs,
            setup=self._setup_cache,
            settings=settings.workspace,
            environment=without_secrets(project.environment),
            notice=remark,
            ours=self._ours_alone,
        )
        self._state_files = projections(project, plan_id, run, notice)
        self._newest: tuple[RunState, int] | None = None
        self._mirror = JournalMirror(self._store, self.refs, session.records)
        self._clock = SystemClock()
        self._run_folder = self._folders.run(run)
        self._checks: Checks = CommandChecks(
            self._repository.throwaways,
            self.sandbox,
            timeout=settings.check_timeout,
            network=bool(settings.sandbox.network),
            logs=self._run_folder / "logs",
            redactor=project.redactor,
        )
        self._settings = settings
        self._agent = agent
        by_proxy = agent is None and vendor_of(settings.agent).is_metered(project.environment)
        self.metered = by_proxy or isinstance(agent, OwnMeter)
        self.coach_commands = agent is not None or may_run_commands(self.sandbox, "coach")
        self._guard: Guard | None = None
        if self.sandbox.level == "checkout":
            self._guard = Guard(project.origin, (*project.journals.own_files(plan_id), *writes))
            self._checks = GuardedChecks(self._checks, self._guard)

    async def run(
        self,
        first: Sequence[e.Event],
        *,
        observe: Observer,
        watch: Callable[[Activity], None],
        beside: Callable[[], Coroutine[None, None, None]] | None = None,
    ) -> RunState:
        """Run until the run ends, from these first facts: a new run, or one that is taken up.

        What goes on beside it ends with it.
        """
        if self._agent is None:
            # What the agent imports takes a second; the base is checked meanwhile.
            Thread(target=vendor_of(self._settings.agent).load, daemon=True).start()
        with guarded(f"{self._mark}/{self.refs.run}"):
            return await self._run(first, observe, watch, beside)

    async def _run(
        self,
        first: Sequence[e.Event],
        observe: Observer,
        watch: Callable[[Activity], None],
        beside: Callable[[], Coroutine[None, None, None]] | None,
    ) -> RunState:
        began = first[0]
        before = None if isinstance(began, e.RunStarted) else self._session.before
        found = await self._clear_up(
            before,
            base=began.base if isinstance(began, e.RunStarted) else before.base if before else "",
            reconciling=isinstance(began, e.RunResumed | e.LandRequested),
        )
        if isinstance(began, e.RunResumed):
            # What is told as verified is what was found in git just now, and nothing else.
            first = (replace(began, found=found), *first[1:])
        told = self._state_files
        chatter = ActivityLog(self._run_folder / "activity.jsonl", self._clock)

        def observer(entry: e.Entry, state: RunState) -> None:
            observe(entry, state)
            self._newest = (state, entry.seq)
            told.show(state, entry.seq)

        def watcher(activity: Activity) -> None:
            cleaned = self._project.redactor.event(activity)
            chatter.write(cleaned)
            watch(cleaned)

        try:
            async with (
                employed(
                    self._settings.agent,
                    self.sandbox,
                    self._project.environment,
                    self._agent,
                    redact=self._project.redactor.text,
                ) as (agent, books),
                anyio.create_task_group() as group,
            ):
                self._session.observe(observer)
                runner = Runner(self._ports(agent, watcher), self._session)
                books.runner = runner
                self._open_network(runner, before)
                group.start_soon(told.keep)
                group.start_soon(self._mirror.keep)
                if beside is not None:
                    group.start_soon(beside)
                with chatter:
                    ended = await runner.run(*first)
                await self._mirror.flush()
                group.cancel_scope.cancel()
                return ended
        except ExceptionGroup as failures:
            failure = first_of(failures)
            if isinstance(failure, Trespass):
                self._note(failure)
            raise failure from failure.__cause__
        finally:
            told.close()
            with anyio.CancelScope(shield=True):
                await self._repository.close()
            self._store.close()
        raise AssertionError("a block that is left without an error has returned")

    def _open_network(self, runner: Runner, before: RunState | None) -> None:
        """Let agents reach what setup has reached, and record what boxes ask for."""
        ways_out = self.sandbox.ways_out
        if ways_out is None:
            return
        ways_out.allow(before.hosts_reached if before is not None else ())
        ways_out.tell = lambda asked: runner.hear(
            asked.role, asked.task, asked.reached, asked.refused
        )

    async def lend(self, before: RunState, take: Callable[[], TaskState]) -> None:
        """Make the workspace of a task that a person takes while nobody hauls its run.

        That they take it is recorded only where git has all that the journal speaks of.
        """
        await self._clear_up(before, base=before.base, reconciling=True)
        taken = take()
        try:
            await lend(self._repository, lent_workspace(taken))
            await self._mirror.flush()
        finally:
            self._store.close()

    async def catch_up(self, state: RunState, seq: int) -> None:
        """Do what a process had no time for that was killed just after it had ended the run."""
        await self._clear_up(state, base=state.base)
        tell(self._project, state, seq, self._notice)
        await self._mirror.flush()
        self._store.close()

    async def _ours_alone(self, checkout: Path, commit: str) -> list[str]:
        """The plan's files in which its state is all that is new; a landing may write them anew.

        The state is written into them again once that is recorded, however it went.
        """
        if self._newest is None or checkout != self._project.root:
            return []
        committed: dict[str, str] = {}
        for path in writes_of(self._newest[0].plan):
            asked = ("cat-file", "blob", f"{commit}:{path}")
            if not (found := await self._store.trees(*asked, ok=(0, 128))).code:
                committed[path] = found.stdout
        paths = written_alone(self._project, *self._newest, committed)
        self._state_files.let_go(*(checkout / path for path in paths))
        return paths

    def _note(self, trespass: Trespass) -> None:
        """Put a trespass on record; the run can be resumed once somebody has looked."""
        ended = e.RunEnded(at=self._clock.now(), status=e.RunEnd.STOPPED, reason=trespass.message)
        self._session.note(ended)

    def _ports(self, agent: Agent, watch: Callable[[Activity], None]) -> Ports:
        redact = self._project.redactor.text
        if self._traceparent is not None:
            agent = TracedAgent(agent, self._traceparent)
        return Ports(
            agent=SettledAgent(agent if self._guard is None else GuardedAgent(agent, self._guard)),
            repository=self._repository,
            checks=self._checks,
            clock=self._clock,
            inbox=FileInbox(self._folders.inbox),
            watch=watch,
            plan=self._plan,
            metered=self.metered,
            redact=redact,
            # Before they are cut to a length, for half a secret could not be told from any word.
            said={name: redact(text) for name, text in said_to_agents(self._project.root).items()},
        )

    async def _clear_up(
        self, before: RunState | None, *, base: str, reconciling: bool = False
    ) -> tuple[str, ...]:
        """End and mend what an earlier process left, then open the repository for this run.

        The merged tasks are told whose commits git was seen to hold.
        """
        found: tuple[str, ...] = ()
        end_leftovers(f"{self._mark}/")
        remove_stale_locks(self._store, self.refs)
        remove_unfinished(self._run_folder)
        await remove(self._folders.throwaway)
        self._store.open(self._setup_cache.exclude_text())
        await self._mirror.open(begun=before is not None and before.run == self.refs.run)
        if before is not None and reconciling:
            found = await reconcile(self._store, self.refs, before)
        await self._repository.open(base)
        for task_id in before.in_tip if before is not None and before.run == self.refs.run else ():
            await self._repository.release(task_id)
        return found
