"""What the runner needs of the world: few, tiny protocols. Adapters serve them and decide nothing.

Each port has a memory implementation in `windlass.testing` that passes the same conformance suite
as the real adapter. A call that is cancelled leaves nothing running behind it.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import PurePath
from typing import Annotated, Literal, Protocol, TypeAlias

from msgspec import Meta, Struct

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
    role: Literal["player", "coach"]
    prompt: str
    model: str
    answer: type[Struct] | None = None
    """What it is to answer with, by schema; None where prose will do."""


class Report(Struct, frozen=True, kw_only=True):
    """What came of it."""

    summary: str = ""
    answer: Struct | None = None
    """What it answered by schema; None where it said nothing that fits. Never an approval."""
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
    created: tuple[str, ...] = ()


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


class Throwaway(Protocol):
    """A checkout of exactly one commit, fit to build and test in; nothing flows back from it."""

    @property
    def path(self) -> PurePath:
        """Where it is."""
        ...

    async def touched(self) -> tuple[str, ...]:
        """The tracked files that whoever worked here has changed."""
        ...


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

    def throwaway(self, commit: str, label: str) -> AbstractAsyncContextManager[Throwaway]:
        """A checkout of the commit for as long as the block lasts. Raises SetupFailed."""
        ...

    async def diff(self, old: str, new: str) -> str:
        """What changed between two commits, as text."""
        ...

    async def keep(self, task: str, n: int, what: str, text: str) -> None:
        """Pin a text beside the commits of the n-th start of a task's Player."""
        ...

    async def kept(self, task: str, n: int, what: str) -> str | None:
        """The text that was pinned so, if any."""
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


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person says to a live run."""

    command: Annotated[str, Meta(min_length=1)]
    task: str = ""
    text: str = ""


class Inbox(Protocol):
    """Messages from people to a live run."""

    def take(self) -> Sequence[tuple[Message, Callable[[], None]]]:
        """Each waiting message with what removes it, to be called once it is recorded."""
        ...


Projector: TypeAlias = Callable[[Mapping[str, str]], Awaitable[None]]
"""Writes projections, {path: text}, atomically."""
