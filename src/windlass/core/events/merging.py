"""Facts about the way of approved commits onto the tip.

Several that wait at once go as one batch: each is merged onto the merge before it, and the tip
moves to the last of them that passes.
"""

from windlass.core.events.fact import Fact


class MergeStarted(Fact, frozen=True, kw_only=True):
    """Windlass began to merge an approved commit onto the tip, in memory."""

    task: str
    candidate: int
    commit: str
    onto: str
    """The tip, or the merge of the task before it in the batch."""


class MergeBuilt(Fact, frozen=True, kw_only=True):
    """The merge exists as a pinned commit that no branch shows yet."""

    task: str
    candidate: int
    commit: str
    tree: str


class MergeConflicted(Fact, frozen=True, kw_only=True):
    """The approved commit and what it was to be merged onto do not go together unaided."""

    task: str
    candidate: int
    files: tuple[str, ...]
    detail: str


class MergeSetAside(Fact, frozen=True, kw_only=True):
    """The task leaves its batch and waits for the next: what it was merged onto never came in.

    Or it conflicts with another of the batch, of which nobody knows yet whether it will.
    """

    task: str


class TipMoveStarted(Fact, frozen=True, kw_only=True):
    """The merges passed; the tip is about to move to the last of them, if nobody moved it."""

    tasks: tuple[str, ...]
    """In the order they were merged onto each other."""
    commit: str
    tip: str


class TaskMerged(Fact, frozen=True, kw_only=True):
    """The task's work is in the tip, and git says so."""

    task: str
    candidate: int
    commit: str
    tip: str = ""
    """Where the tip stands now: at the last merge of the batch. Empty: at this one."""
    note: str = ""
    """What a person should know: the integration branch could not follow, and why."""
    text: str = ""
    """A digest of the text it was merged for, where it was read in git. Empty: the plan's own."""
