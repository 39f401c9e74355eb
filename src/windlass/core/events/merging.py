"""Facts about merging approved commits onto the tip.

Tasks that wait at the same time form one batch: each is merged onto the merge before it, and the
tip moves to the last merge that passes.
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
    """The merge exists as a pinned commit that is on no branch yet."""

    task: str
    candidate: int
    commit: str
    tree: str


class MergeConflicted(Fact, frozen=True, kw_only=True):
    """The approved commit conflicts with the commit it was merged onto."""

    task: str
    candidate: int
    files: tuple[str, ...]
    detail: str


class MergeSetAside(Fact, frozen=True, kw_only=True):
    """The task leaves its batch and waits for the next one.

    The merge below it in the batch was not accepted, or it conflicts with a merge of the batch that
    may not be accepted either.
    """

    task: str


class TipMoveStarted(Fact, frozen=True, kw_only=True):
    """The merges passed; the tip is about to move to the last one, unless it has moved."""

    tasks: tuple[str, ...]
    """In the order in which they were merged onto each other."""
    commit: str
    tip: str


class TaskMerged(Fact, frozen=True, kw_only=True):
    """The task's work is in the tip, as git shows."""

    task: str
    candidate: int
    commit: str
    tip: str = ""
    """The new tip: the last merge of the batch. Empty: this merge."""
    note: str = ""
    """Why the integration branch could not follow, for people to read."""
    text: str = ""
    """A digest of the text it was merged for, as read from git. Empty: the plan's text."""
