"""A world that costs nothing: whatever a run in it takes, Windlass takes.

Agents, checks and git answer at once and remember nothing, by dice where misfortunes are asked
for; time jumps. The loop, its decisions, the facts and what they fold to are the real ones.
"""

import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import PurePath, PurePosixPath
from typing import Literal

import anyio
import anyio.lowlevel

from windlass.core.events import model as e
from windlass.core.events.review import CriterionEvidence, Review, TestResults
from windlass.core.events.values import Amount
from windlass.core.exchange import Expected
from windlass.core.plan import Plan, Stage, Task
from windlass.core.settings import PolicySettings, Settings
from windlass.core.state import RunState
from windlass.ports import (
    Ask,
    Authorship,
    Brief,
    Conflict,
    Held,
    Journal,
    Merged,
    Patch,
    Refused,
    Report,
    Snapshot,
    Watch,
)
from windlass.runner import Ports, Runner, Session
from windlass.testing.memory import MemoryChecks, MemoryInbox, VirtualClock, no_signals
from windlass.testing.memory_repository import Files, MemoryRepository, MemoryThrowaway

PLACE = PurePosixPath("nowhere")
LONG_QUEUE = 16
LESSON = "expected the total of the invoice to be rounded once, at the end, and not line by line\n"
"""What a failing check prints again and again, and a review asks for."""


def plan_of(tasks: int, *, stages: int = 0) -> Plan:
    """Tasks that wait for nothing but, where there are stages, for the stage before."""
    per_stage = -(-tasks // stages) if stages else tasks
    return Plan(
        id="p",
        title="p",
        dialect="milestone",
        path="p.md",
        tasks=tuple(
            Task(
                id=f"{i // per_stage + 1}.{i % per_stage + 1}",
                title=f"Part {i} of the whole",
                text=LESSON,
                acceptance_criteria=("It adds up.", "It says so."),
                stage=f"Stage {i // per_stage + 1}" if stages else None,
            )
            for i in range(tasks)
        ),
        stages=tuple(Stage(name=f"Stage {i + 1}") for i in range(stages)),
    )


class IdleRepository(MemoryRepository):
    """Commits are names, and nothing is kept of them: the thousandth costs what the first did."""

    def __init__(self, roll: Callable[[float], bool]) -> None:
        super().__init__({})
        self._roll = roll
        self._made = 0

    def name(self) -> str:
        """A hash that nothing was hashed for."""
        self._made += 1
        return f"{self._made:040x}"

    async def prepare(
        self,
        task: str,  # noqa: ARG002
        n: int,  # noqa: ARG002
        start: str,  # noqa: ARG002
        onto: str | None,  # noqa: ARG002
        *,
        turn: int | None = None,  # noqa: ARG002
        by_person: bool = False,  # noqa: ARG002
    ) -> PurePath:
        """A workspace that holds nothing."""
        await anyio.lowlevel.checkpoint()
        return PLACE

    async def stands(self, task: str, start: str) -> bool:  # noqa: ARG002
        """It is there, whatever it holds."""
        return True

    async def snapshot(
        self,
        author: Authorship,
        kind: Literal["snapshot", "partial"],  # noqa: ARG002
        parents: tuple[str, ...],  # noqa: ARG002
    ) -> Snapshot | Refused:
        """A commit of two files; once in a while something that must not be committed."""
        await anyio.lowlevel.checkpoint()
        if self._roll(0.01):
            return Refused(reason=f"{author.task}.bin is larger than a file may be")
        files = (f"src/{author.task}.py", f"tests/test_{author.task}.py")
        return Snapshot(commit=self.name(), tree=self.name(), changed=True, files=files)

    async def merge(
        self,
        author: Authorship,
        candidate: int,  # noqa: ARG002
        commit: str,  # noqa: ARG002
        onto: str,  # noqa: ARG002
    ) -> Merged | Conflict:
        """A merge, or a conflict."""
        await anyio.lowlevel.checkpoint()
        if self._roll(0.05):
            return Conflict(files=(f"src/{author.task}.py",), detail=LESSON)
        return Merged(commit=self.name(), tree=self.name())

    @asynccontextmanager
    async def throwaway(self, commit: str, label: str) -> AsyncGenerator[MemoryThrowaway]:  # noqa: ARG002
        """A checkout of nothing."""
        yield MemoryThrowaway(PLACE, {}, {})

    async def move_tip(self, tip: str, commit: str) -> str:  # noqa: ARG002
        """A move that always succeeds."""
        return ""

    async def diff(self, old: str, new: str) -> tuple[Patch, ...]:  # noqa: ARG002
        """Nothing to see."""
        return ()

    async def keep(self, task: str, n: int, what: str, text: str) -> None:
        """Keep nothing."""

    async def release(self, task: str) -> None:
        """There is nothing to let go."""

    def files(self, commit: str) -> Files:  # noqa: ARG002
        """No commit holds anything."""
        return {}

    async def verify(self, tip: str, expected: Expected) -> tuple[str, ...]:  # noqa: ARG002
        """Everything is as it should be."""
        return ()


class IdleAgent:
    """Sends a few requests through the books and is done, or fails, by dice."""

    def __init__(self, roll: Callable[[float], bool], requests: int, seconds: float) -> None:
        self._roll = roll
        self._requests = requests
        self._seconds = seconds
        self._asked = 0
        self.runner: Runner | None = None
        """Whose books the requests pass through."""

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:  # noqa: ARG002
        """Spend, and say something."""
        await self._take_time()
        for _ in range(self._requests):
            await self._ask(brief)
        if self._roll(0.15):
            failure = e.Failure.TRANSIENT if self._roll(0.7) else e.Failure.CRASHED
            return Report(failure=failure, message="the connection was reset")
        if brief.role == "player":
            return Report(summary=LESSON)
        return Report(answer=self._review())

    async def _take_time(self) -> None:
        """Sleep, and longer while merges do not keep up, as they do with agents that think."""
        while self._seconds:
            await anyio.sleep(self._seconds)
            if self.runner is None or len(self.runner.state.queue) <= LONG_QUEUE:
                return

    async def _ask(self, brief: Brief) -> None:
        if self.runner is not None:
            most = Amount(usd=0.03, tokens=20_000)
            ask = Ask(task=brief.task, role=brief.role, model=brief.model, most=most, least=most)
            held = self.runner.reserve(ask)
            await anyio.lowlevel.checkpoint()
            if isinstance(held, Held):
                usage = e.Usage(cost_usd=0.0123, input_tokens=12_345, output_tokens=678)
                self.runner.settle(held.id, usage)

    def _review(self) -> Review:
        asks = self._roll(0.5)
        self._asked += 1
        seen = tuple(
            CriterionEvidence(
                criterion=i, met=not asks, evidence="src/total.py:17 adds line by line"
            )
            for i in (1, 2)
        )
        return Review(
            decision="feedback" if asks else "approve",
            summary=LESSON,
            test_results=TestResults(passed=True),
            evidence=seen,
            feedback=f"{LESSON}once more: {self._asked}" if asks else None,
        )


class IdleChecks(MemoryChecks):
    """Checks that pass, or fail by dice, never twice with the same words."""

    def __init__(self, repository: MemoryRepository, roll: Callable[[float], bool]) -> None:
        super().__init__(repository, lambda _command, _files: True)
        self._roll = roll
        self._runs = 0

    async def run(
        self, commit: str, commands: Sequence[str], log: str
    ) -> tuple[e.CheckResult, ...]:
        """What each command says."""
        await anyio.lowlevel.checkpoint()
        self._runs += 1
        return tuple(
            e.CheckResult(
                command=command,
                outcome=e.Outcome.FAIL if red else e.Outcome.PASS,
                exit_code=int(red),
                seconds=1.5,
                output=f"{commit} {log} {self._runs}\n{LESSON * 8}" if red else "all is well\n",
            )
            for command in commands
            for red in [self._roll(_chance_of_red(log))]
        )


def _chance_of_red(log: str) -> float:
    if log in {"base", "tip"}:
        return 0.0
    return 0.02 if log.endswith("-merged") else 0.3


async def haul(
    plan: Plan,
    journal: Journal,
    observe: Callable[[e.Entry, RunState], None],
    *,
    agents: int = 16,
    requests: int = 0,
    seconds: float = 0.0,
    luck: random.Random | None = None,
) -> RunState:
    """Run the plan from its first fact to its end; without dice nothing goes wrong.

    Every agent makes so many requests, and takes so many seconds of real time at least, in which it
    sleeps.
    """

    def roll(chance: float) -> bool:
        return luck is not None and luck.random() < chance

    agent = IdleAgent(roll, requests, seconds)
    ports = Ports(
        agent=agent,
        repository=(repository := IdleRepository(roll)),
        checks=IdleChecks(repository, roll),
        clock=(clock := VirtualClock()),
        inbox=MemoryInbox(),
        watch=lambda _activity: None,
        metered=bool(requests),
        roll=lambda: 0.5,
        signals=no_signals,
    )
    session = Session(journal)
    session.observe(observe)
    runner = agent.runner = Runner(ports, session)
    settings = Settings(
        agents=agents,
        test_slots=agents,
        checks=("make check", "make test"),
        max_turns=100,
        max_cost=100_000,
        policy=PolicySettings(on_failure="block"),
    )
    ended = await runner.run(
        e.RunStarted(
            at=clock.now(),
            run="r1",
            plan=plan,
            settings=settings,
            base="base",
            base_branch="main",
            sandbox="none",
            version="0",
            metered=bool(requests),
        )
    )
    # Else it would measure how a run comes to nothing.
    assert ended.index.merged > 0.9 * len(plan.tasks), ended.reason
    return ended
