"""The state machines of a task and of a run, as tables.

Rule 1: every phase and every transition is in this file; the diagrams in the docs are drawn from
it. Rule 2: an event that the table does not list for a phase is a defect and raises.

Phases ending in -ING have an effect under way. A resumed run has none: `RunResumed` takes each of
them back to where the effect is decided again, which is all of recovery.
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from windlass.core.events import model as e
from windlass.errors import IllegalEvent


class Phase(enum.StrEnum):
    PENDING = "pending"
    PLAYING = "playing"
    PLAYED = "played"
    LEFT = "left"
    """The Player ended early; its work is not pinned yet."""
    PINNING = "pinning"
    FAILED = "failed"
    """The partial work is pinned; the retry table decides how to go on."""
    WAITING = "waiting"
    SAVING = "saving"
    SAVED = "saved"
    REFUSED = "refused"
    CHECKING = "checking"
    CHECKED = "checked"
    REVIEWING = "reviewing"
    REVIEWED = "reviewed"
    UNREVIEWED = "unreviewed"
    """The Coach gave no usable answer; the retry table decides how to go on."""
    WAITING_FOR_COACH = "waiting_for_coach"
    RETURNED = "returned"
    """A fresh Player gets the feedback."""
    APPROVED = "approved"
    MERGING = "merging"
    CONFLICTED = "conflicted"
    BUILT = "built"
    """The merge exists; its checks have not passed yet."""
    CHECKING_MERGE = "checking_merge"
    MOVING = "moving"
    MERGED = "merged"
    STALE = "stale"
    """Merged for another text than the plan has now. A person decides what happens to it."""
    ABANDONED = "abandoned"
    TAKEN = "taken"
    """A person works on it."""
    HELP_TO_START = "help_to_start"
    """Too complex to start without approval."""
    ASKED = "asked"
    """An agent asked a question for a person."""
    HELP_TO_PLAY = "help_to_play"
    HELP_TO_CHECK = "help_to_check"
    HELP_TO_REVIEW = "help_to_review"
    HELP_TO_MERGE = "help_to_merge"


class RunPhase(enum.StrEnum):
    NEW = "new"
    CHECKING_BASE = "checking_base"
    OPEN = "open"
    VERIFYING = "verifying"
    VERIFIED = "verified"


def _helped(to: Phase) -> dict[type[e.Event], Phase]:
    return {e.RunResumed: to, e.Answered: to, e.TaskTaken: Phase.TAKEN}


_WAYS: Mapping[Phase, Mapping[type[e.Event], Phase]] = MappingProxyType(
    {
        Phase.PENDING: {
            e.PlayerStarted: Phase.PLAYING,
            e.HelpNeeded: Phase.HELP_TO_START,
            e.TipTaken: Phase.SAVED,
            e.TaskAdopted: Phase.MERGED,
            e.TaskTaken: Phase.TAKEN,
            # task_fold then restores the phase from before the reset.
            e.TaskResetUndone: Phase.PENDING,
        },
        Phase.PLAYING: {
            e.PlayerFinished: Phase.PLAYED,
            e.PlayerFailed: Phase.LEFT,
            e.RunResumed: Phase.LEFT,
        },
        Phase.PLAYED: {e.SnapshotStarted: Phase.SAVING},
        Phase.LEFT: {e.SnapshotStarted: Phase.PINNING, e.TaskTaken: Phase.TAKEN},
        Phase.PINNING: {
            e.SnapshotTaken: Phase.FAILED,
            e.SnapshotRefused: Phase.FAILED,
            e.RunResumed: Phase.LEFT,
        },
        Phase.FAILED: {
            e.PlayerStarted: Phase.PLAYING,
            e.WaitStarted: Phase.WAITING,
            e.HelpNeeded: Phase.HELP_TO_PLAY,
            e.TaskTaken: Phase.TAKEN,
            e.RunResumed: Phase.RETURNED,
        },
        Phase.WAITING: {e.TimerFired: Phase.RETURNED, e.RunResumed: Phase.FAILED},
        Phase.SAVING: {
            e.SnapshotTaken: Phase.SAVED,
            e.SnapshotRefused: Phase.REFUSED,
            e.RunResumed: Phase.PLAYED,
        },
        Phase.SAVED: {
            e.ChecksStarted: Phase.CHECKING,
            e.CoachStarted: Phase.REVIEWING,
            e.TurnReturned: Phase.RETURNED,
            e.MergeStands: Phase.MERGED,
            e.HelpNeeded: Phase.ASKED,
        },
        Phase.REFUSED: {e.TurnReturned: Phase.RETURNED},
        Phase.CHECKING: {e.ChecksFinished: Phase.CHECKED, e.RunResumed: Phase.SAVED},
        Phase.CHECKED: {
            e.ChecksStarted: Phase.CHECKING,
            e.CoachStarted: Phase.REVIEWING,
            e.TurnReturned: Phase.RETURNED,
            e.HelpNeeded: Phase.HELP_TO_CHECK,
        },
        Phase.REVIEWING: {
            e.CoachAnswered: Phase.REVIEWED,
            e.CoachFailed: Phase.UNREVIEWED,
            e.RunResumed: Phase.SAVED,
        },
        Phase.REVIEWED: {
            e.TurnReturned: Phase.RETURNED,
            e.TaskApproved: Phase.APPROVED,
            e.HelpNeeded: Phase.ASKED,
            # An approval without evidence is no answer.
            e.CoachFailed: Phase.UNREVIEWED,
        },
        Phase.UNREVIEWED: {
            e.CoachStarted: Phase.REVIEWING,
            e.WaitStarted: Phase.WAITING_FOR_COACH,
            e.HelpNeeded: Phase.HELP_TO_REVIEW,
            e.RunResumed: Phase.SAVED,
        },
        Phase.WAITING_FOR_COACH: {e.TimerFired: Phase.SAVED, e.RunResumed: Phase.UNREVIEWED},
        Phase.RETURNED: {
            e.TipTaken: Phase.SAVED,
            e.PlayerStarted: Phase.PLAYING,
            e.TaskAbandoned: Phase.ABANDONED,
            e.HelpNeeded: Phase.HELP_TO_PLAY,
            e.TaskTaken: Phase.TAKEN,
        },
        # A scenario approved on the tip itself needs no merge.
        Phase.APPROVED: {
            e.MergeStarted: Phase.MERGING,
            e.TaskMerged: Phase.MERGED,
            e.TurnReturned: Phase.RETURNED,
        },
        Phase.MERGING: {
            e.MergeBuilt: Phase.BUILT,
            e.MergeConflicted: Phase.CONFLICTED,
            e.RunResumed: Phase.APPROVED,
        },
        Phase.CONFLICTED: {e.TurnReturned: Phase.RETURNED, e.MergeSetAside: Phase.APPROVED},
        Phase.BUILT: {
            e.ChecksStarted: Phase.CHECKING_MERGE,
            e.TipMoveStarted: Phase.MOVING,
            e.MergeSetAside: Phase.APPROVED,
            e.TurnReturned: Phase.RETURNED,
            e.HelpNeeded: Phase.HELP_TO_MERGE,
        },
        Phase.CHECKING_MERGE: {e.ChecksFinished: Phase.BUILT, e.RunResumed: Phase.BUILT},
        Phase.MOVING: {e.TaskMerged: Phase.MERGED, e.RunResumed: Phase.BUILT},
        Phase.MERGED: {e.TaskReopened: Phase.PENDING},
        # An edit of the plan leads here, and undoing it leads back: see EDITED.
        Phase.STALE: {e.TaskReopened: Phase.PENDING, e.TaskAccepted: Phase.MERGED},
        Phase.ABANDONED: {e.TaskReopened: Phase.RETURNED, e.TaskTaken: Phase.TAKEN},
        Phase.TAKEN: {e.TaskGiven: Phase.PLAYED},
        # Resuming means that a person fixed the cause; finished work is kept.
        Phase.HELP_TO_PLAY: _helped(Phase.RETURNED),
        Phase.HELP_TO_CHECK: _helped(Phase.SAVED),
        Phase.HELP_TO_REVIEW: _helped(Phase.SAVED),
        Phase.HELP_TO_MERGE: _helped(Phase.APPROVED),
        # These two wait for an answer, not for a fix.
        Phase.HELP_TO_START: {e.CheckpointPassed: Phase.PENDING, e.TaskTaken: Phase.TAKEN},
        Phase.ASKED: {e.Answered: Phase.RETURNED, e.TaskTaken: Phase.TAKEN},
    }
)

RESETTABLE = frozenset(
    {
        Phase.PLAYED,
        Phase.LEFT,
        Phase.FAILED,
        Phase.SAVED,
        Phase.CHECKED,
        Phase.UNREVIEWED,
        Phase.RETURNED,
        Phase.APPROVED,
        Phase.MERGED,
        Phase.STALE,
        Phase.ABANDONED,
        Phase.TAKEN,
        Phase.ASKED,
        Phase.HELP_TO_PLAY,
        Phase.HELP_TO_CHECK,
        Phase.HELP_TO_REVIEW,
        Phase.HELP_TO_MERGE,
    }
)
"""Phases in which a person may reset the task: started, and no effect under way."""

REDO_UNDOABLE = (RESETTABLE | {Phase.PENDING, Phase.HELP_TO_START}) - {Phase.MERGED, Phase.STALE}
"""Phases in which a person may take a retry of a merged task back: no effect is under way."""


def _by_people(phase: Phase) -> dict[type[e.Event], Phase]:
    """What a person may do in many phases."""
    ways: dict[type[e.Event], Phase] = {}
    if phase in RESETTABLE:
        ways[e.TaskReset] = Phase.PENDING
    if phase in REDO_UNDOABLE:
        ways[e.RedoUndone] = Phase.MERGED  # task_fold restores the merge
    return ways


TASK_TRANSITIONS: Mapping[Phase, Mapping[type[e.Event], Phase]] = MappingProxyType(
    {phase: {**ways, **_by_people(phase)} for phase, ways in _WAYS.items()}
)

RUN_TRANSITIONS: Mapping[RunPhase, Mapping[type[e.Event], RunPhase]] = MappingProxyType(
    {
        RunPhase.NEW: {e.BaselineStarted: RunPhase.CHECKING_BASE},
        RunPhase.CHECKING_BASE: {e.BaselineFinished: RunPhase.OPEN, e.RunResumed: RunPhase.NEW},
        RunPhase.OPEN: {e.VerificationStarted: RunPhase.VERIFYING},
        RunPhase.VERIFYING: {
            e.VerificationFinished: RunPhase.VERIFIED,
            e.RunResumed: RunPhase.OPEN,
        },
        # A red tip is verified again after a resume, or once the tip has moved.
        RunPhase.VERIFIED: {
            e.RunResumed: RunPhase.OPEN,
            e.VerificationStarted: RunPhase.VERIFYING,
        },
    }
)

REVISED: Mapping[Phase, Phase] = MappingProxyType(
    {
        Phase.CHECKED: Phase.SAVED,
        Phase.REVIEWED: Phase.SAVED,
        Phase.APPROVED: Phase.SAVED,
        Phase.CONFLICTED: Phase.SAVED,
        Phase.BUILT: Phase.SAVED,
        Phase.HELP_TO_CHECK: Phase.SAVED,
        Phase.HELP_TO_MERGE: Phase.SAVED,
        Phase.HELP_TO_START: Phase.PENDING,
    }
)
"""Where a task goes back to after its text changed, because it was judged by the old text.

From other phases it need not go back: the next agent gets the new text. An abandoned task stays
abandoned until a person reopens it; a merged one is stale.
"""

EDITED: Mapping[Phase, Phase] = MappingProxyType(
    {Phase.MERGED: Phase.STALE, Phase.STALE: Phase.MERGED}
)
"""Where an edit takes a merged task: away from the text it was merged for, or back to it."""

IN_TIP = frozenset({Phase.MERGED, Phase.STALE})
"""Phases of tasks whose work the tip holds."""

UNDER_WAY = frozenset(
    {
        Phase.PLAYING,
        Phase.PINNING,
        Phase.WAITING,
        Phase.SAVING,
        Phase.CHECKING,
        Phase.REVIEWING,
        Phase.WAITING_FOR_COACH,
        Phase.MERGING,
        Phase.CHECKING_MERGE,
        Phase.MOVING,
    }
)
"""Phases that have an effect running."""

HELPLESS = frozenset(
    {
        Phase.STALE,
        Phase.TAKEN,
        Phase.HELP_TO_START,
        Phase.ASKED,
        Phase.HELP_TO_PLAY,
        Phase.HELP_TO_CHECK,
        Phase.HELP_TO_REVIEW,
        Phase.HELP_TO_MERGE,
    }
)
"""Phases that wait for a person."""

WITH_AGENT = frozenset({Phase.PLAYING, Phase.REVIEWING})
"""Phases that keep an agent busy."""

PLAYER_FAILED = frozenset({Phase.LEFT, Phase.PINNING, Phase.FAILED, Phase.WAITING})
COACH_FAILED = frozenset({Phase.UNREVIEWED, Phase.WAITING_FOR_COACH})
"""From an agent's failure until the next one may start."""

IN_MERGE = frozenset({Phase.MERGING, Phase.BUILT, Phase.CHECKING_MERGE, Phase.MOVING})
"""Phases of tasks in the current batch of the merge queue."""

Status = Literal[
    "pending", "in_progress", "failed", "verifying", "verified", "merging", "completed", "stale",
    "abandoned", "needs_human",
]  # fmt: skip
"""The status words in screens and files; `blocked` is added for tasks that wait for others."""

STATUS: Mapping[Phase, Status] = MappingProxyType(
    {
        Phase.PENDING: "pending",
        Phase.PLAYING: "in_progress",
        Phase.PLAYED: "in_progress",
        Phase.LEFT: "in_progress",
        Phase.PINNING: "in_progress",
        Phase.FAILED: "failed",
        Phase.WAITING: "failed",
        Phase.SAVING: "in_progress",
        Phase.SAVED: "verifying",
        Phase.REFUSED: "verifying",
        Phase.CHECKING: "verifying",
        Phase.CHECKED: "verifying",
        Phase.REVIEWING: "verifying",
        Phase.REVIEWED: "verifying",
        Phase.UNREVIEWED: "verifying",
        Phase.WAITING_FOR_COACH: "verifying",
        Phase.RETURNED: "failed",
        Phase.APPROVED: "verified",
        Phase.MERGING: "merging",
        Phase.CONFLICTED: "merging",
        Phase.BUILT: "merging",
        Phase.CHECKING_MERGE: "merging",
        Phase.MOVING: "merging",
        Phase.MERGED: "completed",
        Phase.STALE: "stale",
        Phase.ABANDONED: "abandoned",
        Phase.TAKEN: "needs_human",
        Phase.HELP_TO_START: "needs_human",
        Phase.ASKED: "needs_human",
        Phase.HELP_TO_PLAY: "needs_human",
        Phase.HELP_TO_CHECK: "needs_human",
        Phase.HELP_TO_REVIEW: "needs_human",
        Phase.HELP_TO_MERGE: "needs_human",
    }
)
"""The one table from phases to status words."""


def next_phase(task: str, phase: Phase, event: e.Event) -> Phase:
    """The task's phase after the event. Raises IllegalEvent if it cannot happen there."""
    try:
        return TASK_TRANSITIONS[phase][type(event)]
    except KeyError:
        name = type(event).__name__
        raise IllegalEvent(f"task {task!r} cannot take {name} while {phase.value}") from None


def next_run_phase(phase: RunPhase, event: e.Event) -> RunPhase:
    """The run's phase after the event. Raises IllegalEvent if it cannot happen there."""
    try:
        return RUN_TRANSITIONS[phase][type(event)]
    except KeyError:
        name = type(event).__name__
        raise IllegalEvent(f"the run cannot take {name} while {phase.value}") from None
