"""Facts about landing: moving a run's tip into the branch that the run began from."""

from typing import Literal, TypeAlias

from windlass.core.events.fact import Fact

Relation = Literal["behind", "holds", "apart", "gone"]
"""The branch is behind the tip, holds it, has moved apart from it, or is gone."""


class LandRequested(Fact, frozen=True, kw_only=True):
    """A person, or an option they set, asked for the merged work on the base branch."""

    by: str
    anyway: bool = False
    """Whether to land without asking anything else."""
    squash: bool = False
    """Whether the branch gets one commit for each task in place of the merges."""
    signed: bool = False
    """Whether a signed merge ends the landing even if the branch could just move forward."""


class BaseLookStarted(Fact, frozen=True, kw_only=True):
    """Windlass began to read where the branch is now."""

    branch: str
    tip: str


class BaseSeen(Fact, frozen=True, kw_only=True):
    """Where the branch is now."""

    branch: str
    commit: str
    relation: Relation
    rewound: bool = False
    """Whether the branch no longer holds the run's base; a landing would bring the base back."""
    squashed: bool = False
    """Whether the branch holds merges of this run as squashed commits, of an earlier landing."""


class BaseMergeStarted(Fact, frozen=True, kw_only=True):
    """Windlass began to merge the tip onto the branch, which may have moved since the run began."""

    candidate: int
    base: str
    tip: str
    squash: bool = False
    """Whether it writes one commit for each task onto the branch, and no merge."""


class BaseMergeBuilt(Fact, frozen=True, kw_only=True):
    """The result exists as a pinned commit; its checks have not passed yet."""

    candidate: int
    commit: str
    tree: str


class BaseMergeConflicted(Fact, frozen=True, kw_only=True):
    """The branch and the tip cannot be merged without a person."""

    candidate: int
    files: tuple[str, ...]
    detail: str


class BranchMoveStarted(Fact, frozen=True, kw_only=True):
    """The branch is about to move, unless it has moved or a file it would overwrite is dirty."""

    branch: str
    old: str
    new: str


class Landed(Fact, frozen=True, kw_only=True):
    """The branch holds all merged work."""

    branch: str
    commit: str


class LandRefused(Fact, frozen=True, kw_only=True):
    """The branch was not moved, and why."""

    branch: str
    reason: str


LandEvent: TypeAlias = (
    LandRequested
    | BaseLookStarted
    | BaseSeen
    | BaseMergeStarted
    | BaseMergeBuilt
    | BaseMergeConflicted
    | BranchMoveStarted
    | Landed
    | LandRefused
)
