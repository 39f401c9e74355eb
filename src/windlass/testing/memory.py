"""A whole world in memory: repository, agent, checks, clock, inbox; with places to crash at.

Everything here behaves as the real adapter does in what the runner can see, so that thousands of
runs, each killed somewhere, take seconds. A crash is a `Crashed` raised at a numbered point, before
or after an effect; what was done stays done, and nothing else of the process survives.
"""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import PurePath, PurePosixPath
from typing import Literal

import anyio.lowlevel
from msgspec import Struct

from windlass.errors import RepositoryError
from windlass.events.model import Absence, CheckResult, Entry, Event, Outcome, Usage
from windlass.events.review import Review
from windlass.ports import (
    Activity,
    Authorship,
    Brief,
    Conflict,
    Merged,
    Message,
    Refused,
    Report,
    Snapshot,
    Watch,
)
from windlass.testing.agents import approval
from windlass.testing.journal import MemoryJournal

Files = Mapping[str, str]


class Crashed(BaseException):
    """The process is gone; nothing may catch this but the test that asked for it."""


class CrashPoints:
    """Counts the places a process can die at, and dies at one of them."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.reached = 0
        self.names: list[str] = []

    def reach(self, name: str) -> None:
        """Die here, if this is the place."""
        self.reached += 1
        self.names.append(name)
        if self.at is not None and self.reached >= self.at:  # the dead do nothing more
            raise Crashed(name)


class Commit(Struct, frozen=True):
    """A commit of the memory repository."""

    tree: str
    parents: tuple[str, ...]
    message: str


class MemoryThrowaway(Struct, frozen=True):
    """A checkout that nothing flows back from."""

    path: PurePath
    before: Files
    now: Files

    async def touched(self) -> tuple[str, ...]:
        """The files of the commit that are not what they were."""
        return tuple(path for path in self.before if self.now.get(path) != self.before[path])


class MemoryRepository:
    """One run's commits, pins and workspaces; three-way merges by whole files."""

    def __init__(self, base: Files, points: CrashPoints | None = None) -> None:
        self.points = points or CrashPoints()
        self.trees: dict[str, Files] = {}
        self.commits: dict[str, Commit] = {}
        self.pins: dict[str, str] = {}
        self.workspaces: dict[str, dict[str, str]] = {}
        self.prepared: dict[str, tuple[int, str, str | None]] = {}
        """What each workspace was last made ready for: n, start and onto."""
        self.base = self._commit(base, (), "base")
        self.tip = self.base

    async def prepare(self, task: str, n: int, start: str, onto: str | None) -> PurePath:
        """The task's workspace as a dictionary under the task's name."""
        self.points.reach("prepare:before")
        self.pins[f"task/{task}/{n}/start"] = start
        await anyio.lowlevel.checkpoint()
        fresh = task not in self.workspaces
        if fresh:
            self.workspaces[task] = dict(self.files(start))
        # The same merge again would undo what a Player settled and could not get committed.
        if onto is not None and (fresh or self.prepared.get(task, ())[1:] != (start, onto)):
            self.workspaces[task] = self._combined(start, onto)[0]
        self.points.reach("prepare:during")
        self.prepared[task] = n, start, onto
        self.points.reach("prepare:after")
        return PurePosixPath(task)

    async def snapshot(
        self, author: Authorship, kind: Literal["snapshot", "partial"], parents: tuple[str, ...]
    ) -> Snapshot | Refused:
        """Commit the workspace, or find the commit that a crash left unrecorded."""
        self.points.reach("snapshot:before")
        await anyio.lowlevel.checkpoint()
        files = self.workspaces.get(author.task)
        pin = f"task/{author.task}/{author.n}/{kind}"
        if pin in self.pins:
            return self._told(self.pins[pin], parents)
        if files is None or self.prepared.get(author.task, (0,))[0] != author.n:
            return self._told(parents[0], parents)
        if "FORBIDDEN" in files:
            return Refused(reason="FORBIDDEN must not be committed")
        commit = parents[0]
        if len(parents) > 1 or files != self.files(commit):
            commit = self._commit(files, parents, f"{author.task} {author.turn}")
            self.pins[pin] = commit
        self.points.reach("snapshot:after")
        return self._told(commit, parents)

    async def merge(
        self, author: Authorship, candidate: int, commit: str, tip: str
    ) -> Merged | Conflict:
        """Merge by whole files; two sides that changed one file differently conflict."""
        self.points.reach("merge:before")
        await anyio.lowlevel.checkpoint()
        files, conflicts = self._combined(tip, commit)
        if conflicts:
            return Conflict(files=conflicts, detail=", ".join(conflicts))
        made = self._commit(files, (tip, commit), f"merge {author.task} {candidate}")
        self.pins[f"candidate/{candidate}"] = made
        self.points.reach("merge:after")
        return Merged(commit=made, tree=self.commits[made].tree)

    async def move_tip(self, tip: str, commit: str) -> str:
        """Move the tip by compare-and-swap; a move that was made already is found made."""
        self.points.reach("move_tip:before")
        if self.tip != commit:
            if self.tip != tip:
                raise RepositoryError(f"the tip stands at {self.tip}, not at {tip}")
            self.tip = commit
        self.points.reach("move_tip:after")
        return ""

    @asynccontextmanager
    async def throwaway(self, commit: str, label: str) -> AsyncGenerator[MemoryThrowaway]:
        """A checkout under the label's name, for as long as the block lasts."""
        self.points.reach("throwaway:before")
        self.workspaces[label] = dict(self.files(commit))
        try:
            yield MemoryThrowaway(PurePosixPath(label), self.files(commit), self.workspaces[label])
        finally:
            self.workspaces.pop(label, None)

    async def diff(self, old: str, new: str) -> str:
        """The names of what changed."""
        return "\n".join(self._told(new, (old,)).files)

    async def keep(self, task: str, n: int, what: str, text: str) -> None:
        """Remember the text under its pin."""
        self.points.reach("keep:before")
        self.pins[f"task/{task}/{n}/{what}"] = text
        self.points.reach("keep:after")

    async def kept(self, task: str, n: int, what: str) -> str | None:
        """The text under its pin."""
        return self.pins.get(f"task/{task}/{n}/{what}")

    async def release(self, task: str) -> None:
        """Forget the workspace."""
        self.workspaces.pop(task, None)

    def files(self, commit: str) -> Files:
        """What a commit holds."""
        return self.trees[self.commits[commit].tree]

    def _told(self, commit: str, parents: tuple[str, ...]) -> Snapshot:
        old, new = self.files(parents[0]), self.files(commit)
        changed = tuple(path for path in {**old, **new} if old.get(path) != new.get(path))
        return Snapshot(
            commit=commit,
            tree=self.commits[commit].tree,
            changed=bool(changed),
            files=tuple(sorted(changed)),
            created=tuple(sorted(path for path in changed if path not in old)),
        )

    def _commit(self, files: Files, parents: tuple[str, ...], message: str) -> str:
        tree = _digest(sorted(files.items()))
        self.trees[tree] = dict(files)
        made = Commit(tree, parents, message)
        name = _digest((made.tree, made.parents, made.message))
        self.commits[name] = made
        return name

    def _combined(self, ours: str, theirs: str) -> tuple[dict[str, str], tuple[str, ...]]:
        ancestor = self.files(self._common_ancestor(ours, theirs))
        left, right = self.files(ours), self.files(theirs)
        files: dict[str, str] = {}
        conflicts: list[str] = []
        for path in sorted({*ancestor, *left, *right}):
            a, b, c = ancestor.get(path), left.get(path), right.get(path)
            merged = c if a == b else b
            if a not in {b, c} and b != c:
                conflicts.append(path)
                merged = f"<<<<<<<\n{b}\n=======\n{c}\n>>>>>>>"
            if merged is not None:
                files[path] = merged
        return files, tuple(conflicts)

    def _common_ancestor(self, ours: str, theirs: str) -> str:
        reachable = set(self.ancestry(ours))
        return next(commit for commit in self.ancestry(theirs) if commit in reachable)

    def ancestry(self, commit: str) -> list[str]:
        """The commit and everything it descends from, nearest first."""
        seen = {commit: None}
        for name in seen_in_order(seen, lambda name: self.commits[name].parents):
            seen.setdefault(name)
        return list(seen)


def seen_in_order(
    start: Mapping[str, None], parents: Callable[[str], Sequence[str]]
) -> Sequence[str]:
    """Breadth first over a graph of names."""
    order = list(start)
    for name in order:
        order.extend(parent for parent in parents(name) if parent not in order)
    return order


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

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        """Edit the workspace as the script says."""
        self.points.reach("agent:before")
        (self.calls if brief.role == "player" else self.reviews).append((brief.task, brief.n))
        watch(Activity(task=brief.task, kind="tool", text="Writing"))
        await anyio.lowlevel.checkpoint()
        turn = int(brief.prompt.split("Turn: ")[1].split("\n")[0])
        files = self.repository.workspaces[str(workspace)]
        self.points.reach("agent:during")
        if brief.role == "coach":
            return self._coach(brief, turn, files)
        report = self.plays[brief.task](brief.n, turn, files)
        self.points.reach("agent:after")
        return report or Report(summary=f"did {brief.task}", usage=Usage(cost_usd=0.01))

    def _coach(self, brief: Brief, turn: int, files: dict[str, str]) -> Report:
        said = self.coach(brief.task, turn, files) if self.coach is not None else None
        self.points.reach("agent:after")
        if isinstance(said, Report):
            return said
        return Report(answer=said or approval(brief.prompt), usage=Usage(cost_usd=0.005))


class MemoryChecks:
    """A command passes when a function of the files says so; None says it collected nothing."""

    def __init__(
        self,
        repository: MemoryRepository,
        rule: Callable[[str, Files], bool | None],
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

    def _result(self, command: str, commit: str) -> CheckResult:
        said = self.rule(command, self.repository.files(commit))
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

    def read(self, after: int = 0):  # noqa: ANN201  as the journal has it
        """Every entry."""
        return self.journal.read(after)


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


def _digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:40]
