"""Worlds in memory for tests: a plan, what Players do, and a way to run it to the end."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import anyio
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.plan import Plan, Task, validated
from windlass.core.settings import PolicySettings, Settings
from windlass.core.state import RunState, fold
from windlass.ports import Activity, Report
from windlass.runner import Observer, Ports, Runner, Session
from windlass.testing.journal import MemoryJournal
from windlass.testing.memory import (
    Coach,
    Crashed,
    CrashingJournal,
    CrashPoints,
    Files,
    MemoryAgent,
    MemoryChecks,
    MemoryInbox,
    MemoryRepository,
    Play,
    VirtualClock,
    no_signals,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def plan_of(*tasks: Task, dialect: str = "milestone", checks: tuple[str, ...] = ()) -> Plan:
    """A valid plan; it stops on a failure if plans of its dialect do."""
    stops = dialect in {"milestone", "layers"}
    return validated(
        Plan(
            id="p",
            title="P",
            dialect=dialect,
            path="p.md",
            tasks=tasks,
            checks=checks,
            stops_on_failure=stops,
        )
    )


def writes(path: str, content: str) -> Play:
    """A Player that writes one file."""

    def play(_n: int, _turn: int, files: dict[str, str]) -> Report | None:
        files[path] = content
        return None

    return play


def named(settings: Settings) -> Settings:
    """Settings with the agent and the model by name, as every run records them."""
    agent = replace(settings.agent, name=settings.agent.name or "claude")
    return replace(settings, agent=agent, model=settings.model or "claude-sonnet-4-5")


def all_pass(_command: str, _files: Files) -> bool | None:
    return True


class World:
    """One repository, one journal, any number of processes."""

    def __init__(
        self,
        plan: Plan,
        plays: Mapping[str, Play],
        *,
        rule: Callable[[str, Files], bool | e.CheckResult | None] = all_pass,
        settings: Settings | None = None,
        base: Files | None = None,
        inbox: MemoryInbox | None = None,
        coach: Coach | None = None,
    ) -> None:
        self.plan = plan
        self.settings = named(settings or Settings(checks=("test",)))
        self.repository = MemoryRepository(base or {"README": "hello"})
        self.agent = MemoryAgent(self.repository, plays, coach=coach)
        self.checks = MemoryChecks(self.repository, rule)
        self.journal = MemoryJournal()
        self.repository.mirror.records = lambda after: self.journal.storage[after:]
        self.clock = VirtualClock()
        self.inbox = inbox or MemoryInbox()
        self.activity: list[Activity] = []
        self.metered = False
        self.attended = False
        self.file: Plan | str | None = None
        """The plan that a process reads when it reads the plan files again."""
        self._folded: tuple[object, RunState | None] = (None, None)
        self.observers: list[Observer] = []
        """Called with every fact that a process records, once it is stored."""

    @property
    def events(self) -> list[e.Event]:
        return [entry.event for entry in self.journal.read()]

    @property
    def state(self) -> RunState:
        stored = (self.journal, len(self.journal.storage))
        if self._folded[0] != stored:
            self._folded = stored, fold(self.events)
        state = self._folded[1]
        assert state is not None
        return state

    def go(
        self,
        *,
        crash_at: int | None = None,
        settings: Settings | None = None,
        revised: Plan | None = None,
    ) -> CrashPoints:
        """One process: start or resume the run, until it ends or dies at that point.

        `revised` is the plan if it was edited since the last process.
        """
        points = CrashPoints(crash_at)
        self.repository.points = self.agent.points = self.checks.points = points
        ports = Ports(
            agent=self.agent,
            repository=self.repository,
            checks=self.checks,
            clock=self.clock,
            inbox=self.inbox,
            watch=self.activity.append,
            roll=lambda: 0.5,
            signals=no_signals,
            plan=lambda: self.file,
        )
        self.repository.mirror.copy()
        session = Session(CrashingJournal(self.journal, points))
        session.observe(self._observe)
        self.runner = runner = Runner(ports, session)
        try:
            first = self.first(session.before, settings)
            then = [e.PlanRevised(at=self.clock.now(), plan=revised)] if revised else []
            anyio.run(runner.run, first, *then)
            self.repository.mirror.copy()
        except* Crashed:
            pass
        return points

    def _observe(self, entry: e.Entry, state: RunState) -> None:
        for observer in self.observers:
            observer(entry, state)

    def first(
        self, state: RunState | None, settings: Settings | None
    ) -> e.RunStarted | e.RunResumed:
        settings = settings or self.settings
        if state is not None:
            return e.RunResumed(
                at=self.clock.now(),
                settings=settings,
                sandbox="none",
                metered=self.metered,
                attended=self.attended,
            )
        return e.RunStarted(
            at=self.clock.now(),
            run="r1",
            plan=self.plan,
            settings=settings,
            base=self.repository.base,
            base_branch="main",
            sandbox="none",
            version="0",
            metered=self.metered,
            attended=self.attended,
        )


def with_policy(settings: Settings, **policy: str) -> Settings:
    return replace(settings, policy=replace(PolicySettings(), **policy))
