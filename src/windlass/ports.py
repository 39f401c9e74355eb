"""What the runner needs of the world: few, tiny protocols. Adapters serve them and decide nothing.

Each port has a memory implementation in `windlass.testing` that passes the same conformance suite
as the real adapter. A call that is cancelled leaves nothing running behind it.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from windlass.events.model import CheckResult, Entry, Event, Failure, Usage


class Journal(Protocol):
    """The only record of decisions."""

    def append(self, events: Sequence[Event], *, expected: int) -> tuple[Entry, ...]:
        """Make the events durable after position `expected`, or refuse; return them as stored."""
        ...

    def read(self, after: int = 0) -> Iterator[Entry]:
        """Every entry after that position, verified; damage raises before a wrong one is given."""
        ...


class Activity(Struct, frozen=True, kw_only=True):
    """One line of an agent's chatter: shown and kept in a file, never folded."""

    task: str
    kind: Literal["tool", "text", "retry", "start", "end"]
    text: str


Watch: TypeAlias = Callable[[Activity], None]


class Brief(Struct, frozen=True, kw_only=True):
    """What an agent is asked."""

    task: str
    n: int
    role: Literal["player"]
    prompt: str
    model: str


class Report(Struct, frozen=True, kw_only=True):
    """What came of it."""

    summary: str = ""
    usage: Usage = Usage()
    failure: Failure | None = None
    message: str = ""
    retry_at: datetime | None = None


class Agent(Protocol):
    """A coding agent; every call is a fresh context."""

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        """Let the agent work in the workspace; failures are reports, not exceptions."""
        ...


class Snapshot(Struct, frozen=True, kw_only=True):
    """A workspace as a pinned commit."""

    commit: str
    tree: str
    changed: bool
    files: tuple[str, ...] = ()


class Refused(Struct, frozen=True, kw_only=True):
    """A workspace that must not be committed as it is."""

    reason: str


class Merged(Struct, frozen=True, kw_only=True):
    """A merge as a pinned commit."""

    commit: str
    tree: str


class Conflict(Struct, frozen=True, kw_only=True):
    """A merge that needs a Player."""

    files: tuple[str, ...]
    detail: str


class Authorship(Struct, frozen=True, kw_only=True):
    """What a commit of Windlass says about itself."""

    task: str
    title: str
    n: int
    turn: int


class Repository(Protocol):
    """The only record of code: one run's pins, workspaces and merges in one git repository.

    Every method may be repeated after a crash: it finds what it made and goes on from there.
    """

    async def prepare(self, task: str, n: int, start: str, onto: str | None) -> PurePath:
        """The task's workspace, at `start` unless it is there already; `onto` merged into it.

        Until it returns, a snapshot of start `n` is just `start`: no Player has begun. Raises
        SetupFailed where the project's own setup commands fail.
        """
        ...

    async def snapshot(
        self, author: Authorship, kind: Literal["snapshot", "partial"], parents: tuple[str, ...]
    ) -> Snapshot | Refused:
        """Commit what the workspace holds, onto these parents, and pin it."""
        ...

    async def merge(
        self, author: Authorship, candidate: int, commit: str, tip: str
    ) -> Merged | Conflict:
        """Merge the commit onto the tip in memory and pin the result as a candidate."""
        ...

    async def move_tip(self, tip: str, commit: str) -> str:
        """Move the tip from one commit to the next, or raise; the answer is a word for people."""
        ...

    async def release(self, task: str) -> None:
        """Let a merged task's workspace go."""
        ...


class Checks(Protocol):
    """Runs commands on a throwaway checkout of exactly one commit."""

    async def run(self, commit: str, commands: Sequence[str], log: str) -> tuple[CheckResult, ...]:
        """One result for each command, in order; never raises for what a command does."""
        ...


class Clock(Protocol):
    """The time, and waiting for it."""

    def now(self) -> datetime:
        """The present, in UTC."""
        ...

    async def sleep_until(self, moment: datetime) -> None:
        """Return at that moment, at once when it is past."""
        ...


class Inbox(Protocol):
    """Commands from people to a live run."""

    def take(self) -> Sequence[tuple[str, Callable[[], None]]]:
        """Each waiting command with what removes it, to be called once it is recorded."""
        ...


Projector: TypeAlias = Callable[[Mapping[str, str]], Awaitable[None]]
"""Writes projections, {path: text}, atomically."""
