"""Facts about one task's turns: Player, snapshot, checks, Coach, and what the gate made of them."""

from datetime import datetime
from typing import Literal

from windlass.core.events.fact import Fact
from windlass.core.events.review import Review
from windlass.core.events.values import CheckResult, Failure, Usage


class TipTaken(Fact, frozen=True, kw_only=True):
    """All else is merged: the scenario is to be tried on the tip, before any Player works."""

    task: str
    n: int
    commit: str
    tree: str


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
    created: tuple[str, ...] = ()
    """Those of them that were not there before."""
    deleted: tuple[str, ...] = ()
    """Those of them that are not there any more."""


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
    unshown: tuple[str, ...] = ()
    """Files, or folders of many, that it was not shown in full and had to look at itself."""


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


class WaitStarted(Fact, frozen=True, kw_only=True):
    """The task waits, counting nothing, until a moment."""

    task: str
    until: datetime
    failure: Failure


class TimerFired(Fact, frozen=True, kw_only=True):
    """That moment came."""

    task: str
