"""Facts about the way of an approved commit onto the tip."""

from windlass.events.fact import Fact


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
