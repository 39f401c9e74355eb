"""The world of one run: a real adapter for every port."""

import secrets
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path

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
from windlass.adapters.git.commits import Commits
from windlass.adapters.git.layout import Refs
from windlass.adapters.git.mirror import JournalMirror
from windlass.adapters.git.reconcile import reconcile, remove_stale_locks
from windlass.adapters.git.repository import GitRepository
from windlass.adapters.git.signing import Signer
from windlass.adapters.git.store import Store
from windlass.adapters.journal.activity import ActivityLog
from windlass.adapters.journal.inbox import FileInbox
from windlass.adapters.processes.guardian import guarded
from windlass.adapters.processes.leftovers import end_leftovers
from windlass.adapters.sandbox.box import may_run_commands
from windlass.adapters.sandbox.guard import Guard, GuardedAgent, GuardedChecks
from windlass.app.wiring.agents import vendor_of
from windlass.app.wiring.instructions import read_instructions
from windlass.app.wiring.metering import OwnMeter, open_agent
from windlass.app.wiring.project import Project
from windlass.app.wiring.state_files import only_state_differs, projections, write_state_files
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
    """Builds the adapters of a run, and runs it."""

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
        """`notice` gets messages about edited state files, `remark` about workspaces.

        `traceparent` returns the header for the agent of a task and a role. `plan` reads the plan's
        files again, or returns why they cannot be read.
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
        # Of this process alone: the guardian of a killed one ends what that one started, and may
        # still be at it.
        self._own_mark = f"{self._mark}/{run}/{secrets.token_hex(4)}"
        self.sandbox = project.walls.sandbox(settings, self._own_mark)
        self._setup_cache = SetupCache(
            self._store, self.refs, self.sandbox, settings.workspace, project.redactor
        )
        self._repository = GitRepository(
            self._store,
            self.refs,
            setup=self._setup_cache,
            settings=settings.workspace,
            environment=without_secrets(project.environment),
            commits=Commits(
                self._store,
                run=run,
                settings=settings.git,
                co_author=vendor_of(settings.agent).co_author if agent is None else "",
                signer=Signer(project.user_git, identity),
            ),
            notice=remark,
            ours=self._only_state_differs,
        )
        self._state_files = projections(project, plan_id, run, notice)
        self._last_shown: tuple[RunState, int] | None = None
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
        """Start or resume a run with these first facts, and run it to its end.

        `beside` runs at the same time, and is cancelled at the end of the run.
        """
        with guarded(self._own_mark):
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
        found = await self._prepare(
            before,
            base=began.base if isinstance(began, e.RunStarted) else before.base if before else "",
            reconciling=isinstance(began, e.RunResumed | e.LandRequested),
        )
        if isinstance(began, e.RunResumed):
            # Only what was found in git just now counts as verified.
            first = (replace(began, found=found), *first[1:])
        activity_log = ActivityLog(self._run_folder / "activity.jsonl", self._clock)

        def observer(entry: e.Entry, state: RunState) -> None:
            observe(entry, state)
            self._last_shown = (state, entry.seq)
            self._state_files.show(state, entry.seq)

        def watcher(activity: Activity) -> None:
            cleaned = self._project.redactor.event(activity)
            activity_log.write(cleaned)
            watch(cleaned)

        try:
            async with (
                open_agent(
                    self._settings.agent,
                    self.sandbox,
                    self._project.environment,
                    self._agent,
                    redact=self._project.redactor.text,
                ) as (agent, ledger),
                anyio.create_task_group() as group,
            ):
                self._setup_cache.watch = watcher
                self._session.observe(observer)
                runner = Runner(self._ports(agent, watcher), self._session)
                ledger.run = runner
                self._open_network(runner, before)
                group.start_soon(self._state_files.keep)
                group.start_soon(self._mirror.keep)
                if beside is not None:
                    group.start_soon(beside)
                with activity_log:
                    ended = await runner.run(*first)
                await self._mirror.flush()
                group.cancel_scope.cancel()
                return ended
        except ExceptionGroup as failures:
            failure = first_of(failures)
            if isinstance(failure, Trespass):
                self._record_trespass(failure)
            raise failure from failure.__cause__
        finally:
            self._state_files.close()
            with anyio.CancelScope(shield=True):
                await self._repository.close()
            self._close()
        raise AssertionError("the block above returns or raises")

    def _open_network(self, runner: Runner, before: RunState | None) -> None:
        """Let agents reach the hosts that setup reached, and record what boxes ask for."""
        ways_out = self.sandbox.ways_out
        if ways_out is None:
            return
        ways_out.allow(before.hosts_reached if before is not None else ())
        ways_out.tell = lambda asked: runner.hear(
            asked.role, asked.task, asked.reached, asked.refused
        )

    async def make_taken_workspace(self, before: RunState, take: Callable[[], TaskState]) -> None:
        """Make the workspace of a task that a person takes, while its run is not live.

        `take` records that, and is called only if git has every commit that the journal names.
        """
        await self._prepare(before, base=before.base, reconciling=True)
        taken = take()
        try:
            await lend(self._repository, lent_workspace(taken))
            await self._mirror.flush()
        finally:
            self._close()

    async def catch_up(self, state: RunState, seq: int) -> None:
        """Finish the work of a process that was killed just after it had ended the run."""
        await self._prepare(state, base=state.base)
        write_state_files(self._project, state, seq, self._notice)
        await self._mirror.flush()
        self._close()

    def _close(self) -> None:
        """End the git processes; the session copies what is recorded after this."""
        self._store.close()
        self._session.mirrored = max(self._session.mirrored, self._mirror.until)

    async def _only_state_differs(self, checkout: Path, commit: str) -> list[str]:
        """The plan's files that differ from a commit only by the state; a landing may replace them.

        Their state is written again once the landing's outcome is recorded.
        """
        if self._last_shown is None or checkout != self._project.root:
            return []
        committed: dict[str, str] = {}
        for path in writes_of(self._last_shown[0].plan):
            asked = ("cat-file", "blob", f"{commit}:{path}")
            if not (found := await self._store.trees(*asked, ok=(0, 128))).code:
                committed[path] = found.stdout
        paths = only_state_differs(self._project, self._last_shown[0], committed)
        self._state_files.let_go(*(checkout / path for path in paths))
        return paths

    def _record_trespass(self, trespass: Trespass) -> None:
        """End the run; a person can look at the trespass and resume it."""
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
            # Redact before cutting: half a secret would not be recognized.
            instructions={
                name: redact(text) for name, text in read_instructions(self._project.root).items()
            },
        )

    async def _prepare(
        self, before: RunState | None, *, base: str, reconciling: bool = False
    ) -> tuple[str, ...]:
        """Clean up after an earlier process, then open the repository for this run.

        Returns the merged tasks whose commits were found in git.
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
