"""Every port in memory: repository, agent, checks, clock, inbox; with points to crash at.

To the runner, everything here behaves like the real adapter, so thousands of runs with a crash each
take seconds. A crash is a `Crashed` raised at a numbered point, before or after an effect. Finished
effects stay; nothing else of the process survives.
"""

from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
"""What a Player does: it gets the start, the turn and the files, edits them, and may fail."""


Coach = Callable[[str, int, dict[str, str]], Review | Report | None]
"""What a Coach answers: it gets the task, the turn and the files; None approves."""


class MemoryAgent:
    """Plays a function per task, and counts its calls."""

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
        """The briefs of all calls, in order."""

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        """Play the task's function on the workspace, or review it."""
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
        answer = self.coach(brief.task, brief.turn, files) if self.coach is not None else None
        self.points.reach("agent:after")
        if isinstance(answer, Report):
            return answer
        return Report(answer=answer or approval(brief), usage=Usage(cost_usd=0.005))


class MemoryChecks:
    """A command passes if `rule` returns true for the files; None means it collected no tests."""

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
        """Run the commands on this commit."""
        self.points.reach("checks:before")
        self.runs.extend((log, command) for command in commands)
        await anyio.lowlevel.checkpoint()
        results = tuple(self._result(command, commit) for command in commands)
        self.points.reach("checks:after")
        return results

    async def parse(self, commit: str, paths: Sequence[str]) -> tuple[str, ...]:
        """Files that contain `SYNTAX` cannot be parsed."""
        files = self.repository.files(commit)
        return tuple(f"{path}: no syntax" for path in paths if "SYNTAX" in files.get(path, ""))

    def _result(self, command: str, commit: str) -> CheckResult:
        result = self.rule(command, self.repository.files(commit))
        if isinstance(result, CheckResult):
            return result
        if result is None:
            return CheckResult(
                command=command, outcome=Outcome.ABSENT, absence=Absence.COLLECTED_NOTHING
            )
        outcome = Outcome.PASS if result else Outcome.FAIL
        return CheckResult(command=command, outcome=outcome, exit_code=int(not result))


class CrashingJournal:
    """A journal with crash points before and after each append."""

    def __init__(self, journal: MemoryJournal, points: CrashPoints) -> None:
        self.journal = journal
        self.points = points

    def append(self, events: Sequence[Event], *, expected: int) -> tuple[Entry, ...]:
        self.points.reach("journal:before")
        entries = self.journal.append(events, expected=expected)
        self.points.reach("journal:after")
        return entries

    def read(self, after: int = 0) -> Iterator[Entry]:
        return self.journal.read(after)

    def records(self, after: int = 0) -> list[bytes]:
        return self.journal.records(after)

    def restore(self, records: Sequence[bytes]) -> None:
        self.journal.restore(records)


class VirtualClock:
    """Time that passes only when the clock is read or waited on."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self.time = start

    def now(self) -> datetime:
        """The time, a millisecond later at each call."""
        self.time += timedelta(milliseconds=1)
        return self.time

    async def sleep_until(self, moment: datetime) -> None:
        """Move the time forward to that moment."""
        await anyio.lowlevel.checkpoint()
        self.time = max(self.time, moment)


class MemoryInbox:
    """The messages of a test; a string stands for a command."""

    def __init__(self, *messages: str | Message) -> None:
        self.messages = [Message(command=m) if isinstance(m, str) else m for m in messages]

    def take(self) -> Sequence[tuple[Message, Callable[[], None]]]:
        """Every message, with a function that removes it."""
        return [(message, lambda m=message: self.messages.remove(m)) for message in self.messages]


@contextmanager
def no_signals() -> Generator[AsyncIterator[str]]:
    """No signal ever arrives."""
    yield _silence()


async def _silence() -> AsyncIterator[str]:
    await anyio.sleep_forever()
    yield ""
