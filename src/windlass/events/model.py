"""The facts a run is made of: a closed union, frozen, each stamped by whoever records it.

Rule 1: a fact is never changed once released; a new meaning is a new type or a new field with a
default. Rule 2: whatever the future needs to go on is in here, for nothing else is read back.

Facts ending in `Started` or `Requested` are intents: they are durable before the effect they
announce begins, so that a crash at any point leaves a trace of what was being done.
"""

from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct

from windlass.events.review import Review
from windlass.events.values import Absence, CheckResult, Failure, Outcome, RunEnd, Usage
from windlass.plan import Plan
from windlass.settings import Level, Settings

__all__ = ["Absence", "CheckResult", "Failure", "Outcome", "RunEnd", "Usage"]  # said here as well


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
    metered: bool = False
    """Whether every request of an agent passes the meter; then its own account counts nothing."""


class RunResumed(Fact, frozen=True, kw_only=True):
    """Another process took the run over; whatever was under way is not any more."""

    settings: Settings
    sandbox: Level
    metered: bool = False
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
    question: str | None = None
    """What a person must decide before anyone can go on."""


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


class CoachStarted(Fact, frozen=True, kw_only=True):
    """A fresh Coach was given exactly this commit, the k-th of this start of the Player."""

    task: str
    n: int
    k: int
    commit: str


class CoachAnswered(Fact, frozen=True, kw_only=True):
    """The Coach answered by schema; whether that approves anything is the gate's to say."""

    task: str
    n: int
    k: int
    commit: str
    review: Review
    usage: Usage
    model: str = ""
    touched: tuple[str, ...] = ()
    """Tracked files it changed in its throwaway checkout; nothing of it went anywhere."""


class CoachFailed(Fact, frozen=True, kw_only=True):
    """There is no answer that could be used: the Coach failed, or said nothing by schema."""

    task: str
    n: int
    k: int
    failure: Failure
    message: str
    usage: Usage
    retry_at: datetime | None = None
    jitter: float = 0.0


class TurnReturned(Fact, frozen=True, kw_only=True):
    """The gate sent the work back to a fresh Player, with this feedback."""

    task: str
    cause: Literal["unchanged", "refused", "checks", "review", "conflict", "merged_checks"]
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


class CheckpointPassed(Fact, frozen=True, kw_only=True):
    """A person let a task start that is too complex to start unasked."""

    task: str
    by: str


class Answered(Fact, frozen=True, kw_only=True):
    """A person answered what a task needed help with; the next Player is told."""

    task: str
    text: str
    by: str


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


class SpendReserved(Fact, frozen=True, kw_only=True):
    """A request of an agent is about to be sent; until it is settled it counts at its worst."""

    id: str
    task: str
    role: str
    model: str
    usd: float


class SpendSettled(Fact, frozen=True, kw_only=True):
    """What that request really came to."""

    id: str
    task: str
    usage: Usage


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
    | CoachStarted
    | CoachAnswered
    | CoachFailed
    | TurnReturned
    | TaskApproved
    | TaskAbandoned
    | HelpNeeded
    | CheckpointPassed
    | Answered
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
    | SpendReserved
    | SpendSettled
    | StopRequested
    | RunEnded
)
"""Facts about the run as a whole."""

Event: TypeAlias = TaskEvent | RunEvent


class Entry(Struct, frozen=True, kw_only=True):
    """A fact at its place in the journal."""

    seq: int
    event: Event
