"""Facts about one task's turns: Player, snapshot, checks, Coach, and the gate's decision."""

from datetime import datetime
from typing import Literal

from windlass.core.events.fact import Fact
from windlass.core.events.review import Review
from windlass.core.events.values import CheckResult, Failure, SetupFailure, Usage


class TipTaken(Fact, frozen=True, kw_only=True):
    """All other tasks are merged: the scenario is tried on the tip before any Player works."""

    task: str
    n: int
    commit: str
    tree: str


class PlayerStarted(Fact, frozen=True, kw_only=True):
    """A fresh Player got the task; `n` counts every start, `turn` only those that use up a turn."""

    task: str
    n: int
    turn: int
    start: str
    """The commit of its workspace."""
    onto: str | None = None
    """The tip merged into the workspace, with conflict markers, when it must resolve a conflict."""


class PlayerFinished(Fact, frozen=True, kw_only=True):
    """The Player says it is done. A claim, never evidence."""

    task: str
    n: int
    summary: str
    usage: Usage
    model: str = ""
    question: str | None = None
    """What a person must decide before the task can continue."""


class PlayerFailed(Fact, frozen=True, kw_only=True):
    """The Player did not finish, for a reason other than the code."""

    task: str
    n: int
    failure: Failure
    message: str
    usage: Usage
    retry_at: datetime | None = None
    """When the provider said to retry."""
    jitter: float = 0.0
    """Drawn by the runner, between 0 and 1, because the core has no randomness."""
    setup: SetupFailure | None = None
    """The setup command that failed in its workspace, before it could start."""
    unreached: bool = False
    """Whether the provider could not be reached; `message` says why."""
    lasting: bool = False
    """Whether it would fail again until a person changes something."""


class SnapshotStarted(Fact, frozen=True, kw_only=True):
    """Windlass began to commit the content of the workspace."""

    task: str
    n: int
    kind: Literal["snapshot", "partial"]


class SnapshotTaken(Fact, frozen=True, kw_only=True):
    """The content of the workspace as a pinned commit. All later steps use this commit."""

    task: str
    n: int
    kind: Literal["snapshot", "partial"]
    commit: str
    tree: str
    changed: bool
    """Whether the tree differs from the Player's start."""
    files: tuple[str, ...] = ()
    """Changed paths, the first hundred."""
    created: tuple[str, ...] = ()
    """Those that are new."""
    deleted: tuple[str, ...] = ()
    """Those that were deleted."""


class SnapshotRefused(Fact, frozen=True, kw_only=True):
    """The workspace holds something that must not be committed; the Player must fix it."""

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
    """The results of the checks on that tree."""

    task: str
    commit: str
    tree: str
    results: tuple[CheckResult, ...]


class CoachStarted(Fact, frozen=True, kw_only=True):
    """A fresh Coach got exactly this commit; it is the k-th Coach for this start of the Player."""

    task: str
    n: int
    k: int
    commit: str


class CoachAnswered(Fact, frozen=True, kw_only=True):
    """The Coach gave a structured answer; the gate decides whether it approves the commit."""

    task: str
    n: int
    k: int
    commit: str
    review: Review
    usage: Usage
    model: str = ""
    touched: tuple[str, ...] = ()
    """Tracked files it changed in its throwaway checkout; the changes were discarded."""
    unshown: tuple[str, ...] = ()
    """Files, or folders with many files, that its prompt did not show in full."""


class CoachFailed(Fact, frozen=True, kw_only=True):
    """There is no usable answer: the Coach failed, gave no structured answer, or no evidence."""

    task: str
    n: int
    k: int
    failure: Failure
    message: str
    usage: Usage
    retry_at: datetime | None = None
    jitter: float = 0.0
    setup: SetupFailure | None = None
    """The setup command that failed in its checkout, before it could start."""
    unreached: bool = False
    lasting: bool = False


class TurnReturned(Fact, frozen=True, kw_only=True):
    """The gate sent the work back to a fresh Player, with this feedback."""

    task: str
    cause: Literal["unchanged", "refused", "checks", "review", "conflict", "merged_checks"]
    feedback: str


class TaskApproved(Fact, frozen=True, kw_only=True):
    """The gate passed this commit to the merge queue."""

    task: str
    commit: str
    checked: bool
    """False if there were no checks at all."""


class TaskAbandoned(Fact, frozen=True, kw_only=True):
    """The task used up its turns; its workspace is kept."""

    task: str
    reason: str


class WaitStarted(Fact, frozen=True, kw_only=True):
    """The task waits until a time; waiting uses up no turn."""

    task: str
    until: datetime
    failure: Failure


class TimerFired(Fact, frozen=True, kw_only=True):
    """That time came."""

    task: str
