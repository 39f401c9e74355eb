"""What the runner needs of the world: few, tiny protocols. Adapters serve them and decide nothing.

Each port has a memory implementation in `windlass.testing` that passes the same conformance suite
as the real adapter. A call that is cancelled leaves nothing running behind it.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import PurePath
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct, field

from windlass.core.events.landing import Relation
from windlass.core.events.model import CheckResult, Entry, Event, Failure, Usage
from windlass.core.events.values import Amount
from windlass.core.exchange import Authorship, ChangedPaths, Expected, Message
from windlass.core.state.budget import No


class Journal(Protocol):
    """The only record of decisions."""

    def append(self, events: Sequence[Event], *, expected: int) -> tuple[Entry, ...]:
        """Make the events durable after position `expected`, or refuse; return them as stored."""
        ...

    def read(self, after: int = 0) -> Iterator[Entry]:
        """Every entry after that position, verified; damage raises before a wrong one is given."""
        ...

    def records(self, after: int = 0) -> Sequence[bytes]:
        """The records after that position, byte for byte, for a copy elsewhere; no secrets."""
        ...


class Activity(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of an agent's chatter: shown and kept in a file, never folded."""

    task: str
    kind: Literal["tool", "text", "retry", "start", "end"]
    text: str
    whole: str = ""
    """What a tool was given, where the line leaves some of it out; for the file, no screen."""
    role: Literal["player", "coach", ""] = ""
    """Whose it is, and of which start of a Player; nothing where nobody says."""
    n: int = 0
    at: datetime | None = field(default=None, name="ts")
    """When it was, where that is not now: it was read from the file."""


Watch: TypeAlias = Callable[[Activity], None]


class Brief(Struct, frozen=True, kw_only=True):
    """What an agent is asked."""

    task: str
    n: int
    role: Literal["player", "coach"]
    prompt: str
    """All that the agent is told, in words. The fields below it say parts of it as values, for an
    agent that needs no words: a fake, or a program of yours."""
    model: str
    turn: int = 1
    criteria: tuple[str, ...] = ()
    """The acceptance criteria, in their order; a review counts them from 1."""
    checks: tuple[str, ...] = ()
    """The commands that prove the task."""
    names: tuple[str, ...] = ()
    """What an approval must say something about, by name: files and checks. For a Coach."""
    feedback: str = ""
    """Why the work was sent back to this Player; empty where it was not."""
    answer: type[Struct] | None = None
    """What it is to answer with, by schema; None where prose will do."""
    traceparent: str = ""
    """The span it works in, for an agent that has telemetry of its own; else empty."""


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


class Ask(Struct, frozen=True, kw_only=True):
    """What a request of an agent can cost, before it is sent."""

    task: str
    role: str
    model: str
    most: Amount
    least: Amount
    """The most it can cost once its answer is bounded as tightly as it may be."""


class Held(Struct, frozen=True):
    """What is set aside for a request."""

    id: str
    granted: Amount
    """All that the request may come to: its most, or less where less was left."""


class Ledger(Protocol):
    """Where requests of agents are booked. Each call is quick and may come at any moment."""

    def reserve(self, ask: Ask) -> Held | No:
        """Set money aside for a request, or say why it may not be sent now."""
        ...

    def stream(self, id_: str, usage: Usage) -> None:
        """Record what the request has come to so far."""
        ...

    def settle(self, id_: str, usage: Usage, *, broke_off: bool = False) -> None:
        """Record what it came to; `broke_off` where its answer was not seen to the end."""
        ...

    def refuse(self, ask: Ask) -> None:
        """Record that too little is left for what was asked, also where a part of it was sent."""
        ...


class Snapshot(Struct, frozen=True, kw_only=True):
    """A workspace as a pinned commit."""

    commit: str
    tree: str
    changed: bool
    files: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


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


class Seen(Struct, frozen=True, kw_only=True):
    """Where a branch stands."""

    commit: str
    relation: Relation
    rewound: bool = False
    """Whether it does not hold the run's base any more."""


class Change(Struct, frozen=True, kw_only=True):
    """How much of a file differs between two commits, in lines."""

    path: str
    added: int | None
    """None where it has no lines: it is binary."""
    deleted: int | None


class Patch(Struct, frozen=True, kw_only=True):
    """What changed in one file."""

    path: str
    what: str
    """New, deleted, changed, renamed; and its mode, or that it is binary, where that says more."""
    text: str
    """The change as a diff shows it."""
    gone: bool = False
    """Whether the file is not there any more."""
    opaque: bool = False
    """Whether the diff does not tell what is in it: it is binary, or a submodule."""


Changes: TypeAlias = Mapping[tuple[str, str], tuple[Change, ...]]
"""What differs between pairs of commits, as far as git has both."""


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

    async def prepare(
        self,
        task: str,
        n: int,
        start: str,
        onto: str | None,
        *,
        turn: int | None = None,
        by_person: bool = False,
    ) -> PurePath:
        """The task's workspace, at `start` unless it is there already; `onto` merged into it.

        What it starts from is pinned, and the turn, where that is not plainly the first.
        Until it returns, a snapshot of start `n` is just `start`: no Player has begun. Raises
        SetupFailed where the project's own setup commands fail; but a person who is to work there
        gets it all the same, and commits in it under their own name.
        """
        ...

    async def stands(self, task: str, start: str) -> bool:
        """Whether the task's workspace, which began at `start`, was not taken away or emptied.

        One that does not stand holds nobody's work: a snapshot of it is just its start, and the
        next `prepare` makes it anew.
        """
        ...

    async def snapshot(
        self, author: Authorship, kind: Literal["snapshot", "partial"], parents: tuple[str, ...]
    ) -> Snapshot | Refused:
        """Commit what the workspace holds, onto these parents, and pin it."""
        ...

    async def merge(
        self, author: Authorship, candidate: int, commit: str, onto: str
    ) -> Merged | Conflict:
        """Merge the commit onto another in memory and pin the result as a candidate."""
        ...

    async def move_tip(self, tip: str, commit: str) -> str:
        """Move the tip from one commit to the next, or raise; the answer is a word for people."""
        ...

    def throwaway(self, commit: str, label: str) -> AbstractAsyncContextManager[Throwaway]:
        """A checkout of the commit for as long as the block lasts. Raises SetupFailed."""
        ...

    async def diff(self, old: str, new: str) -> tuple[Patch, ...]:
        """What changed between two commits, file by file."""
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

    async def set_aside(self, task: str, until: int) -> None:
        """Keep the workspace of a task that began anew under another name, if it is an older one.

        It is where it was last made ready for the n-th start of a Player, n up to `until`.
        """
        ...

    async def changed(self, pairs: Iterable[tuple[str, str]]) -> ChangedPaths:
        """All that differs between commits, also beyond what a snapshot tells."""
        ...

    async def verify(self, tip: str, expected: Expected) -> tuple[str, ...]:
        """What of that is not so in the tip, a line each."""
        ...

    async def look(self, branch: str, tip: str) -> Seen:
        """Where one of the user's branches stands, and how the tip stands to it."""
        ...

    async def move_branch(self, branch: str, old: str, new: str) -> None:
        """Move one of the user's branches forward, with its checkout where it has one.

        Raises RepositoryError where it stands elsewhere by now, or a file in the way is dirty;
        nothing is changed then. A move that was made already is found made.
        """
        ...


class Checks(Protocol):
    """Runs commands on a throwaway checkout of exactly one commit."""

    async def run(self, commit: str, commands: Sequence[str], log: str) -> tuple[CheckResult, ...]:
        """One result for each command, in order; never raises for what a command does."""
        ...

    async def parse(self, commit: str, paths: Sequence[str]) -> tuple[str, ...]:
        """A line for each of these files that cannot be parsed, as far as a parser is at hand."""
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
    """Messages from people to a live run."""

    def take(self) -> Sequence[tuple[Message, Callable[[], None]]]:
        """Each waiting message with what removes it, to be called once it is recorded."""
        ...


Attributes: TypeAlias = Mapping[str, str | int | float | bool]


class Span(Struct, frozen=True, kw_only=True):
    """A stretch of work that is over, as telemetry tells it."""

    name: str
    trace: str
    """32 hexadecimal digits."""
    id: str
    """16 of them."""
    parent: str | None
    start: datetime
    end: datetime
    attributes: Attributes = {}
    error: str | None = None
    """Why it failed; None where it did not."""


class Instrument(Struct, frozen=True, kw_only=True):
    """Something that is counted, or whose sizes are."""

    name: str
    kind: Literal["counter", "histogram"]
    unit: str
    help: str
    buckets: tuple[float, ...] = ()


class Measured(Struct, frozen=True, kw_only=True):
    """So much of it, of this sort."""

    instrument: Instrument
    value: float
    attributes: Attributes = {}
    times: int = 1
    """0 where it only says that there is this sort, of which there is nothing yet."""


NoticeKind: TypeAlias = Literal["done", "human", "limit", "failed"]


class Notice(Struct, frozen=True, kw_only=True):
    """A word to a person who is not looking."""

    kind: NoticeKind
    title: str
    text: str
    plan: str
    run: str
    task: str = ""
    """Empty where it is about the whole run."""


Projector: TypeAlias = Callable[[Mapping[str, str]], Awaitable[None]]
"""Writes projections, {path: text}, atomically."""
