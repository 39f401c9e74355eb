"""All facts of a run: a closed union of frozen values, each with the time of its recording.

Rule 1: a released fact never changes; a new meaning is a new type, or a new field with a default.
Rule 2: everything that a later process needs is here, because nothing else is read back.
"""

from typing import TypeAlias

from msgspec import Struct

from windlass.core.events.landing import (
    BaseLookStarted,
    BaseMergeBuilt,
    BaseMergeConflicted,
    BaseMergeStarted,
    BaseSeen,
    BranchMoveStarted,
    Landed,
    LandEvent,
    LandRefused,
    LandRequested,
)
from windlass.core.events.merging import (
    MergeBuilt,
    MergeConflicted,
    MergeSetAside,
    MergeStarted,
    TaskMerged,
    TipMoveStarted,
)
from windlass.core.events.people import (
    Answered,
    BaseAccepted,
    CheckpointPassed,
    HelpAwaited,
    HelpNeeded,
    MergeStands,
    RedoUndone,
    TaskAccepted,
    TaskAdopted,
    TaskGiven,
    TaskReopened,
    TaskReset,
    TaskResetUndone,
    TaskTaken,
)
from windlass.core.events.run import (
    BaselineFinished,
    BaselineStarted,
    HostsAsked,
    PlanRevised,
    RunEnded,
    RunRecovered,
    RunResumed,
    RunStarted,
    SpendRefused,
    SpendReserved,
    SpendSettled,
    SpendStreamed,
    StagePassed,
    StageRetried,
    StopRequested,
    VerificationFinished,
    VerificationStarted,
)
from windlass.core.events.turn import (
    ChecksFinished,
    ChecksStarted,
    CoachAnswered,
    CoachFailed,
    CoachStarted,
    PlayerFailed,
    PlayerFinished,
    PlayerStarted,
    SnapshotRefused,
    SnapshotStarted,
    SnapshotTaken,
    TaskAbandoned,
    TaskApproved,
    TimerFired,
    TipTaken,
    TurnReturned,
    WaitStarted,
)
from windlass.core.events.values import (
    Absence,
    CheckResult,
    Configured,
    Estimate,
    Failure,
    Outcome,
    RunEnd,
    SetupFailure,
    Suite,
    Usage,
)

# Exported again, for `model as e`.
__all__ = [
    "Absence",
    "BaseLookStarted",
    "BaseMergeBuilt",
    "BaseMergeConflicted",
    "BaseMergeStarted",
    "BaseSeen",
    "BranchMoveStarted",
    "CheckResult",
    "Configured",
    "Estimate",
    "Failure",
    "LandRefused",
    "LandRequested",
    "Landed",
    "Outcome",
    "RunEnd",
    "SetupFailure",
    "Suite",
    "Usage",
]

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
    | TaskAccepted
    | TaskReopened
    | HelpNeeded
    | CheckpointPassed
    | Answered
    | WaitStarted
    | TimerFired
    | MergeStarted
    | MergeBuilt
    | MergeConflicted
    | MergeSetAside
    | MergeStands
    | TaskMerged
    | TaskReset
    | TaskResetUndone
    | RedoUndone
    | TaskTaken
    | TaskGiven
)
"""Facts about one task; each has a `task`."""

BatchEvent: TypeAlias = TipMoveStarted
"""A fact about several tasks; it has `tasks`."""

CourseEvent: TypeAlias = (
    RunResumed
    | RunRecovered
    | PlanRevised
    | BaselineStarted
    | BaselineFinished
    | VerificationStarted
    | VerificationFinished
    | SpendReserved
    | SpendStreamed
    | SpendSettled
    | SpendRefused
    | HostsAsked
    | StagePassed
    | StageRetried
    | HelpAwaited
    | BaseAccepted
    | StopRequested
    | LandEvent
    | RunEnded
)
"""Facts about a run that has started."""

RunEvent: TypeAlias = RunStarted | CourseEvent
"""Facts about the run as a whole."""

Event: TypeAlias = TaskEvent | BatchEvent | RunEvent


class Entry(Struct, frozen=True, kw_only=True):
    """A fact and its position in the journal."""

    seq: int
    event: Event
