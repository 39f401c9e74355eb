"""A whole world in memory: repository, agent, checks, clock, inbox; with places to crash at.

Everything here behaves as the real adapter does in what the runner can see, so that thousands of
runs, each killed somewhere, take seconds. A crash is a `Crashed` raised at a numbered point, before
or after an effect; what was done stays done, and nothing else of the process survives.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import PurePath

import anyio.lowlevel

from windlass.core.events.model import Absence, CheckResult, Entry, Event, Outcome, Usage
from windlass.core.events.review import Review
from windlass.core.exchange import Message
from windlass.ports import Activity, Brief, Report, Watch
from windlass.testing.agents import approval
from windlass.testing.journal import MemoryJournal
from windlass.testing.memory_repository import Crashed, CrashPoints, Files, MemoryRepository

__all__ = ["CrashPoints", "Crashed", "Files", "MemoryRepository"]

Play = Callable[[int, int, dict[str, str]], Report | None]
"""What a Player does: given start and turn, it edits the files and may report a failure."""


Coach = Callable[[str, int, dict[str, str]], Review | Report | None]
"""What a Coach says of a task's turn, seeing its files; None approves."""


class MemoryAgent:
    """Plays by a function per task, and counts what it is paid for."""

    def __init__(
        self,
        repository: MemoryRepository,
        plays: Mapping[str, Play],
        points: CrashPoints | None = None,
        coach: Coach | None = None,
    ) -> None:
        self.repository = repository
        self.plays = plays
        self.points = points or CrashPoints()
        self.coach = coach
        self.calls: list[tuple[str, int]] = []
        self.reviews: list[tuple[str, int]] = []
        self.briefs: list[Brief] = []
        """What was asked so far, in order."""

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        """Edit the workspace as the script says."""
        self.points.reach("agent:before")
        self.briefs.append(brief)
        (self.calls if brief.role == "player" else self.reviews).append((brief.task, brief.n))
        watch(Activity(task=brief.task, kind="tool", text="Writing"))
        await anyio.lowlevel.checkpoint()
        files = self.repository.workspaces[str(workspace)]
        self.points.reach("agent:during")
        if brief.role == "coach":
            return self._coach(brief, files)
        report = self.plays[brief.task](brief.n, brief.turn, files)
        self.points.reach("agent:after")
        return report or Report(summary=f"did {brief.task}", usage=Usage(cost_usd=0.01))

    def _coach(self, brief: Brief, files: dict[str, str]) -> Report:
        said = self.coach(brief.task, brief.turn, files) if self.coach is not None else None
        self.points.reach("agent:after")
        if isinstance(said, Report):
            return said
        return Report(answer=said or approval(brief), usage=Usage(cost_usd=0.005))


class MemoryChecks:
    """A command passes when a function of the files says so; None says it collected nothing."""

    def __init__(
        self,
        repository: MemoryRepository,
        rule: Callable[[str, Files], bool | CheckResult | None],
        points: CrashPoints | None = None,
    ) -> None:
        self.repository = repository
        self.rule = rule
        self.points = points or CrashPoints()
        self.runs: list[tuple[str, str]] = []

    async def run(self, commit: str, commands: Sequence[str], log: str) -> tuple[CheckResult, ...]:
        """Judge exactly this commit."""
        self.points.reach("checks:before")
        self.runs.extend((log, command) for command in commands)
        await anyio.lowlevel.checkpoint()
        results = tuple(self._result(command, commit) for command in commands)
        self.points.reach("checks:after")
        return results

    async def parse(self, commit: str, paths: Sequence[str]) -> tuple[str, ...]:
        """A file that says so cannot be parsed."""
        files = self.repository.files(commit)
        return tuple(f"{path}: no syntax" for path in paths if "SYNTAX" in files.get(path, ""))

    def _result(self, command: str, commit: str) -> CheckResult:
        said = self.rule(command, self.repository.files(commit))
        if isinstance(said, CheckResult):
            return said
        if said is None:
            return CheckResult(
                command=command, outcome=Outcome.ABSENT, absence=Absence.COLLECTED_NOTHING
            )
        outcome = Outcome.PASS if said else Outcome.FAIL
        return CheckResult(command=command, outcome=outcome, exit_code=int(not said))


class CrashingJournal:
    """A journal that a crash can come before or after."""

    def __init__(self, journal: MemoryJournal, points: CrashPoints) -> None:
        self.journal = journal
        self.points = points

    def append(self, events: Sequence[Event], *, expected: int) -> tuple[Entry, ...]:
        """Append, unless the process dies first."""
        self.points.reach("journal:before")
        entries = self.journal.append(events, expected=expected)
        self.points.reach("journal:after")
        return entries

    def read(self, after: int = 0) -> Iterator[Entry]:
        """Every entry."""
        return self.journal.read(after)

    def records(self, after: int = 0) -> list[bytes]:
        """Every record."""
        return self.journal.records(after)


class VirtualClock:
    """Time that passes only when somebody looks or waits."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self.time = start

    def now(self) -> datetime:
        """The present; a millisecond later each time it is asked."""
        self.time += timedelta(milliseconds=1)
        return self.time

    async def sleep_until(self, moment: datetime) -> None:
        """Jump there."""
        await anyio.lowlevel.checkpoint()
        self.time = max(self.time, moment)


class MemoryInbox:
    """Messages that a test puts in; a bare word is a command."""

    def __init__(self, *messages: str | Message) -> None:
        self.messages = [Message(command=m) if isinstance(m, str) else m for m in messages]

    def take(self) -> Sequence[tuple[Message, Callable[[], None]]]:
        """All of them, once."""
        return [(message, lambda m=message: self.messages.remove(m)) for message in self.messages]


async def no_signals() -> AsyncIterator[str]:
    """A world in which nobody sends signals."""
    await anyio.sleep_forever()
    yield ""
