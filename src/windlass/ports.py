"""The runner's needs as small protocols. Adapters implement them and decide nothing.

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
from windlass.core.events.values import Amount, SetupFailure
from windlass.core.exchange import Authorship, ChangedPaths, Expected, Message
from windlass.core.state.budget import No


class Journal(Protocol):
    """The only record of decisions."""

    def append(self, events: Sequence[Event], *, expected: int) -> tuple[Entry, ...]:
        """Make the events durable after position `expected`, or refuse; return them as stored."""
        ...

    def read(self, after: int = 0) -> Iterator[Entry]:
        """Every entry after that position; a damaged journal raises before a wrong one is given."""
        ...

    def records(self, after: int = 0) -> Sequence[bytes]:
        """The records after that position, byte for byte, for a copy elsewhere; no secrets."""
        ...

    def restore(self, records: Sequence[bytes]) -> None:
        """Fill an empty journal with the records of a lost one, byte for byte, or refuse."""
        ...


class Activity(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of what an agent or the setup does: shown and kept in a file, never folded."""

    task: str
    """Empty for the base and the tip."""
    kind: Literal["tool", "text", "retry", "start", "end", "setup"]
    text: str
    """What an agent does or says, or the setup command that runs."""
    whole: str = ""
    """What a tool was given, where `text` shortens it; for the file, not for the screen."""
    role: Literal["player", "coach", ""] = ""
    """Who it comes from, and which start of a Player; empty where that is unknown."""
    n: int = 0
    took: float | None = None
    """Seconds, when a setup command has ended."""
    at: datetime | None = field(default=None, name="ts")
    """When it happened, if it was read from the file; None means now."""


Watch: TypeAlias = Callable[[Activity], None]


class Brief(Struct, frozen=True, kw_only=True):
    task: str
    n: int
    role: Literal["player", "coach"]
    prompt: str
    """The whole prompt. The fields below repeat parts of it as values, for an agent that reads no
    prose: a fake, or a program of yours."""
    model: str
    model_source: str = ""
    """What names the model: the task, a file or a variable; empty: an option, or the default."""
    turn: int = 1
    criteria: tuple[str, ...] = ()
    """The acceptance criteria, in their order; a review counts them from 1."""
    checks: tuple[str, ...] = ()
    """The commands that prove the task."""
    names: tuple[str, ...] = ()
    """The files and checks that an approval must name. For a Coach."""
    feedback: str = ""
    """Why the work was sent back to this Player; empty if it was not."""
    answer: type[Struct] | None = None
    """The schema of its answer; None if prose is enough."""
    traceparent: str = ""
    """The span it works in, for an agent that has telemetry of its own; else empty."""


class Report(Struct, frozen=True, kw_only=True):
    summary: str = ""
    answer: Struct | None = None
    """Its answer by schema; None if it gave none that fits. None is never an approval."""
    usage: Usage = Usage()
    failure: Failure | None = None
    message: str = ""
    retry_at: datetime | None = None
    setup: SetupFailure | None = None
    """The setup command that failed before the agent could start."""
    unreached: bool = False
    """Whether it failed because its provider could not be reached; `message` says why."""
    lasting: bool = False
    """Whether it will fail again until a person changes something."""


class Agent(Protocol):
    """A coding agent; every call is a fresh context."""

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        """Let the agent work in the workspace; failures are reports, not exceptions."""
        ...


class Ask(Struct, frozen=True, kw_only=True):
    """What an agent's request can cost, before it is sent."""

    task: str
    role: str
    model: str
    most: Amount
    least: Amount
    """The most it can cost once its answer is limited as tightly as possible."""


class Held(Struct, frozen=True):
    """A reservation for a request."""

    id: str
    granted: Amount
    """The most that the request may cost: what was asked for, or what was left."""


class Ledger(Protocol):
    """Books the requests of agents. Each call is quick and may come at any moment."""

    def reserve(self, ask: Ask) -> Held | No:
        """Reserve money for a request, or say why it may not be sent now."""
        ...

    def stream(self, id_: str, usage: Usage) -> None:
        """Record what the request has cost so far."""
        ...

    def settle(self, id_: str, usage: Usage, *, broke_off: bool = False) -> None:
        """Record what it cost; `broke_off` if its answer was not read to the end."""
        ...

    def refuse(self, ask: Ask) -> None:
        """Record that too little was left for the request, even if a part of it was sent."""
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
    """A workspace that must not be committed as it is, and why."""

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
    """Whether it no longer contains the run's base."""
    squashed: bool = False
    """Whether it has some of the run's merges as squashed commits."""


class Change(Struct, frozen=True, kw_only=True):
    """How much of a file differs between two commits, in lines."""

    path: str
    added: int | None
    """None for a binary file."""
    deleted: int | None


class Patch(Struct, frozen=True, kw_only=True):
    path: str
    what: str
    """New, deleted, changed or renamed; with the mode, or that it is binary, where it matters."""
    text: str
    gone: bool = False
    """Whether the file was deleted."""
    opaque: bool = False
    """Whether the diff does not show the content: it is binary, or a submodule."""


class PatchText(Struct, frozen=True, kw_only=True):
    """All that differs between two commits, as git writes it."""

    text: str
    files_left: int = 0
    """Files that are not in it, because they or the whole are too large."""


Changes: TypeAlias = Mapping[tuple[str, str], tuple[Change, ...]]
"""What differs between pairs of commits, where git has both."""

Patches: TypeAlias = Mapping[tuple[str, str], PatchText]


class Throwaway(Protocol):
    """A checkout of exactly one commit, fit to build and test in; nothing flows back from it."""

    @property
    def path(self) -> PurePath: ...

    async def touched(self) -> tuple[str, ...]:
        """The tracked files that were changed here."""
        ...


class Repository(Protocol):
    """The only record of code: one run's pins, workspaces and merges in one git repository.

    Every method may be repeated after a crash: it finds what it made and continues from there.
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
        """Make the task's workspace at `start`, unless it exists, and merge `onto` into it.

        Pins what it starts from, and the turn if it is not the first. Until it returns, a snapshot
        of start `n` is just `start`: no Player has begun. Raises SetupFailed if the project's setup
        commands fail; a person who is to work there gets the workspace anyway, and commits in it
        under their own name.
        """
        ...

    async def stands(self, task: str, start: str) -> bool:
        """Whether the task's workspace, which began at `start`, was neither removed nor emptied.

        If it does not stand, it holds no work: a snapshot of it is just its start, and the next
        `prepare` makes it again.
        """
        ...

    async def snapshot(
        self, author: Authorship, kind: Literal["snapshot", "partial"], parents: tuple[str, ...]
    ) -> Snapshot | Refused:
        """Commit the workspace's content onto these parents, and pin it."""
        ...

    async def merge(
        self, author: Authorship, candidate: int, commit: str, onto: str
    ) -> Merged | Conflict:
        """Merge the commit onto another in memory and pin the result as a candidate."""
        ...

    async def move_tip(self, tip: str, commit: str) -> str:
        """Move the tip from one commit to the next, or raise; the answer is a note for people."""
        ...

    def throwaway(self, commit: str, label: str) -> AbstractAsyncContextManager[Throwaway]:
        """A checkout of the commit while the block lasts. Raises SetupFailed."""
        ...

    async def diff(self, old: str, new: str) -> tuple[Patch, ...]:
        """What changed between two commits, file by file."""
        ...

    async def keep(self, task: str, n: int, what: str, text: str) -> None:
        """Pin a text next to the commits of the n-th start of a task's Player."""
        ...

    async def kept(self, task: str, n: int, what: str) -> str | None:
        """The text pinned by `keep`, if any."""
        ...

    async def release(self, task: str) -> None:
        """Delete a merged task's workspace."""
        ...

    async def set_aside(self, task: str, until: int) -> None:
        """Rename the workspace of a task that began again, if it is of an older start.

        Older: it was last prepared for the n-th start of a Player, n up to `until`.
        """
        ...

    async def changed(self, pairs: Iterable[tuple[str, str]]) -> ChangedPaths:
        """Every path that differs between commits, also beyond what a snapshot lists."""
        ...

    async def verify(self, tip: str, expected: Expected) -> tuple[str, ...]:
        """What is expected and not true of the tip, a line each."""
        ...

    async def look(self, branch: str, tip: str) -> Seen:
        """The position of one of the user's branches, and its relation to the tip.

        A branch that has every merge up to the tip as a squashed commit holds the tip. Raises
        RepositoryError if its own commits brought what Windlass cannot work with.
        """
        ...

    async def squash(self, tip: str, onto: str) -> Merged | Conflict:
        """Write one commit onto `onto` for each merge that it lacks, in order; pin the last.

        Its tree is that of a merge of the tip onto `onto`: the tip's own, if that has not moved.
        """
        ...

    async def move_branch(self, branch: str, old: str, new: str) -> None:
        """Move one of the user's branches forward, and its checkout if it has one.

        Raises RepositoryError if the branch has moved, or a file in the way is dirty; then nothing
        is changed. Repeating a move that was made is harmless.
        """
        ...


class Checks(Protocol):
    """Runs commands on a throwaway checkout of one commit."""

    async def run(self, commit: str, commands: Sequence[str], log: str) -> tuple[CheckResult, ...]:
        """One result per command, in order; never raises for what a command does."""
        ...

    async def parse(self, commit: str, paths: Sequence[str]) -> tuple[str, ...]:
        """A line for each of these files that does not parse, where a parser is available."""
        ...


class Clock(Protocol):
    def now(self) -> datetime:
        """The current time, in UTC."""
        ...

    async def sleep_until(self, moment: datetime) -> None:
        """Return at that moment; at once if it has passed."""
        ...


class Inbox(Protocol):
    """Messages from people to a live run."""

    def take(self) -> Sequence[tuple[Message, Callable[[], None]]]:
        """Each waiting message with a function that removes it, to call once it is recorded."""
        ...


Attributes: TypeAlias = Mapping[str, str | int | float | bool]


class Span(Struct, frozen=True, kw_only=True):
    """A finished piece of work, for telemetry."""

    name: str
    trace: str
    """32 hexadecimal digits."""
    id: str
    """16 hexadecimal digits."""
    parent: str | None
    start: datetime
    end: datetime
    attributes: Attributes = {}
    error: str | None = None
    """Why it failed; None if it did not."""


class Instrument(Struct, frozen=True, kw_only=True):
    """A counter, a gauge or a histogram."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    unit: str
    help: str
    buckets: tuple[float, ...] = ()


class Measured(Struct, frozen=True, kw_only=True):
    """A value for an instrument: added to a counter, put in place of a gauge's last value."""

    instrument: Instrument
    value: float
    attributes: Attributes = {}
    times: int = 1
    """0 to announce a set of attributes that has no value yet."""


NoticeKind: TypeAlias = Literal["done", "human", "limit", "failed"]


class Notice(Struct, frozen=True, kw_only=True):
    """A message to a person who is not watching."""

    kind: NoticeKind
    title: str
    text: str
    plan: str
    run: str
    task: str = ""
    """Empty if it is about the whole run."""


Projector: TypeAlias = Callable[[Mapping[str, str]], Awaitable[None]]
"""Writes projections, {path: text}, atomically."""
