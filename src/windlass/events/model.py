"""The facts a run is made of: a closed union, frozen, each stamped by whoever records it.

Rule 1: a fact is never changed once released; a new meaning is a new type or a new field with a
default. Rule 2: whatever the future needs to go on is in here, for nothing else is read back.
"""

from typing import TypeAlias

from msgspec import Struct

from windlass.events.merging import (
    MergeBuilt,
    MergeConflicted,
    MergeStarted,
    TaskMerged,
    TipMoveStarted,
)
from windlass.events.run import (
    BaselineFinished,
    BaselineStarted,
    PlanRevised,
    RunEnded,
    RunResumed,
    RunStarted,
    SpendReserved,
    SpendSettled,
    StopRequested,
    VerificationFinished,
    VerificationStarted,
)
from windlass.events.turn import (
    Answered,
    CheckpointPassed,
    ChecksFinished,
    ChecksStarted,
    CoachAnswered,
    CoachFailed,
    CoachStarted,
    HelpNeeded,
    PlayerFailed,
    PlayerFinished,
    PlayerStarted,
    SnapshotRefused,
    SnapshotStarted,
    SnapshotTaken,
    TaskAbandoned,
    TaskAdopted,
    TaskApproved,
    TaskReopened,
    TimerFired,
    TipTaken,
    TurnReturned,
    WaitStarted,
)
from windlass.events.values import Absence, CheckResult, Estimate, Failure, Outcome, RunEnd, Usage

# Said here as well.
__all__ = ["Absence", "CheckResult", "Estimate", "Failure", "Outcome", "RunEnd", "Usage"]

TaskEvent: TypeAlias = (
    TipTaken
    | PlayerStarted
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
    | TaskAdopted
    | TaskReopened
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
    | PlanRevised
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
