"""The facts a run is made of: a closed union, frozen, each stamped by whoever records it.

Rule 1: a fact is never changed once released; a new meaning is a new type or a new field with a
default. Rule 2: whatever the future needs to go on is in here, for nothing else is read back.

Facts ending in `Started` or `Requested` are intents: they are durable before the effect they
announce begins, so that a crash at any point leaves a trace of what was being done.
"""

import enum
from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct

from windlass.plan import Plan
from windlass.settings import Level, Settings


class Outcome(enum.StrEnum):
    """What a check said. Absent is not a pass and not a fail: it said nothing."""

    PASS = "pass"  # noqa: S105  no password
    FAIL = "fail"
    ABSENT = "absent"


class Absence(enum.StrEnum):
    """Why a check said nothing."""

    UNABLE_TO_START = "unable_to_start"
    TIMED_OUT = "timed_out"
    COLLECTED_NOTHING = "collected_nothing"


class Failure(enum.StrEnum):
    """Why an agent did not finish; told from structured signals only, never from prose."""

    ENVIRONMENT = "environment"
    TRANSIENT = "transient"
    USAGE_LIMIT = "usage_limit"
    AUTH = "auth"
    BUDGET = "budget"
    STALLED = "stalled"
    CRASHED = "crashed"
    INTERRUPTED = "interrupted"


class RunEnd(enum.StrEnum):
    """How a run, or its present stretch, ended. All but the first and last can be resumed."""

    COMPLETED = "completed"
    FAILED = "failed"
    NEEDS_HUMAN = "needs_human"
    STOPPED = "stopped"
    LIMIT = "limit"
    ABANDONED = "abandoned"


class CheckResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one command said about one tree."""

    command: str
    outcome: Outcome
    absence: Absence | None = None
    exit_code: int | None = None
    seconds: float = 0.0
    output: str = ""
    """The end of what it printed; the whole is in the run's logs."""


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent used up."""

    cost_usd: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    known: bool = True
    """False where an agent was killed before it could say."""


class Fact(Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """What every fact has."""

    at: datetime


class RunStarted(Fact, frozen=True, kw_only=True):
    """A run began: everything it was told, and the commit it works from."""

    run: str
    plan: Plan
    settings: Settings
    base: str
    base_branch: str | None
    sandbox: Level
    version: str


class RunResumed(Fact, frozen=True, kw_only=True):
    """Another process took the run over; whatever was under way is not any more."""

    settings: Settings
    sandbox: Level
    base_moved_to: str | None = None


class BaselineStarted(Fact, frozen=True, kw_only=True):
    """The project's own checks began on the base, before anything is spent."""

    commit: str
    checks: tuple[str, ...]


class BaselineFinished(Fact, frozen=True, kw_only=True):
    """What the project's checks say of the base itself."""

    commit: str
    results: tuple[CheckResult, ...]


class PlayerStarted(Fact, frozen=True, kw_only=True):
    """A fresh Player was given the task; `n` counts every start, `turn` only those that count."""

    task: str
    n: int
    turn: int
    start: str
    """The commit its workspace stands at."""
    onto: str | None = None
    """The tip merged into the workspace, markers and all, in a round that settles a conflict."""


class PlayerFinished(Fact, frozen=True, kw_only=True):
    """The Player said it is done. A claim, never evidence."""

    task: str
    n: int
    summary: str
    usage: Usage
    model: str = ""


class PlayerFailed(Fact, frozen=True, kw_only=True):
    """The Player did not finish, for a reason that is not the code's."""

    task: str
    n: int
    failure: Failure
    message: str
    usage: Usage
    retry_at: datetime | None = None
    """When the provider said to come back."""
    jitter: float = 0.0
    """Rolled by the runner, between 0 and 1, so that the core stays free of dice."""


class SnapshotStarted(Fact, frozen=True, kw_only=True):
    """Windlass began to commit what the workspace holds."""

    task: str
    n: int
    kind: Literal["snapshot", "partial"]


class SnapshotTaken(Fact, frozen=True, kw_only=True):
    """What the workspace held, as a pinned commit. Everything after speaks of this commit."""

    task: str
    n: int
    kind: Literal["snapshot", "partial"]
    commit: str
    tree: str
    changed: bool
    """Whether the tree differs from the one the Player started from."""
    files: tuple[str, ...] = ()
    """Changed paths, the first hundred."""


class SnapshotRefused(Fact, frozen=True, kw_only=True):
    """The workspace holds something that must not be committed; the Player has to mend it."""

    task: str
    n: int
    reason: str


class ChecksStarted(Fact, frozen=True, kw_only=True):
    """Checks began on a throwaway checkout of exactly this commit."""

    task: str
    commit: str
    tree: str
    checks: tuple[str, ...]


class ChecksFinished(Fact, frozen=True, kw_only=True):
    """What the checks said of that tree."""

    task: str
    commit: str
    tree: str
    results: tuple[CheckResult, ...]


class TurnReturned(Fact, frozen=True, kw_only=True):
    """The gate sent the work back to a fresh Player, with this feedback."""

    task: str
    cause: Literal["unchanged", "refused", "checks", "conflict", "merged_checks"]
    feedback: str


class TaskApproved(Fact, frozen=True, kw_only=True):
    """The gate let this commit through to the merge queue."""

    task: str
    commit: str
    checked: bool
    """False where there were no checks at all."""


class TaskAbandoned(Fact, frozen=True, kw_only=True):
    """The task used up its turns; its workspace is kept."""

    task: str
    reason: str


class HelpNeeded(Fact, frozen=True, kw_only=True):
    """The task cannot go on without a person."""

    task: str
    question: str


class WaitStarted(Fact, frozen=True, kw_only=True):
    """The task waits, counting nothing, until a moment."""

    task: str
    until: datetime
    failure: Failure


class TimerFired(Fact, frozen=True, kw_only=True):
    """That moment came."""

    task: str


class MergeStarted(Fact, frozen=True, kw_only=True):
    """Windlass began to merge an approved commit onto the tip, in memory."""

    task: str
    candidate: int
    commit: str
    tip: str


class MergeBuilt(Fact, frozen=True, kw_only=True):
    """The merge exists as a pinned commit that no branch shows yet."""

    task: str
    candidate: int
    commit: str
    tree: str


class MergeConflicted(Fact, frozen=True, kw_only=True):
    """The approved commit and the tip cannot be merged without a Player."""

    task: str
    candidate: int
    files: tuple[str, ...]
    detail: str


class TipMoveStarted(Fact, frozen=True, kw_only=True):
    """The merge passed; the tip is about to move, if nobody moved it."""

    task: str
    candidate: int
    commit: str
    tip: str


class TaskMerged(Fact, frozen=True, kw_only=True):
    """The task's work is in the tip, and git says so."""

    task: str
    candidate: int
    commit: str
    note: str = ""
    """What a person should know: the integration branch could not follow, and why."""


class VerificationStarted(Fact, frozen=True, kw_only=True):
    """All is merged: every merged task's checks began once more on the tip."""

    commit: str
    tree: str
    checks: tuple[str, ...]


class VerificationFinished(Fact, frozen=True, kw_only=True):
    """What those checks say of the tip."""

    commit: str
    tree: str
    results: tuple[CheckResult, ...]


class StopRequested(Fact, frozen=True, kw_only=True):
    """A person or a signal asked the run to stop."""

    by: str


class RunEnded(Fact, frozen=True, kw_only=True):
    """The run, or its present stretch, is over."""

    status: RunEnd
    reason: str = ""


TaskEvent: TypeAlias = (
    PlayerStarted
    | PlayerFinished
    | PlayerFailed
    | SnapshotStarted
    | SnapshotTaken
    | SnapshotRefused
    | ChecksStarted
    | ChecksFinished
    | TurnReturned
    | TaskApproved
    | TaskAbandoned
    | HelpNeeded
    | WaitStarted
    | TimerFired
    | MergeStarted
    | MergeBuilt
    | MergeConflicted
    | TipMoveStarted
    | TaskMerged
)
"""Facts about one task; each has a `task`."""

RunEvent: TypeAlias = (
    RunStarted
    | RunResumed
    | BaselineStarted
    | BaselineFinished
    | VerificationStarted
    | VerificationFinished
    | StopRequested
    | RunEnded
)
"""Facts about the run as a whole."""

Event: TypeAlias = TaskEvent | RunEvent


class Entry(Struct, frozen=True, kw_only=True):
    """A fact at its place in the journal."""

    seq: int
    event: Event
