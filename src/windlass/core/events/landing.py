"""Facts about the way of a run's tip into the branch it began from."""

from typing import Literal, TypeAlias

from windlass.core.events.fact import Fact

Relation = Literal["behind", "holds", "apart", "gone"]
"""How the branch stands to the tip: behind it, holding it, both have moved, or there is none."""


class LandRequested(Fact, frozen=True, kw_only=True):
    """A person, or an option of theirs, wants the base branch to have what was merged."""

    by: str
    anyway: bool = False
    """Whether they want it whatever else they would be asked about."""


class BaseLookStarted(Fact, frozen=True, kw_only=True):
    """Windlass began to look where the branch stands now."""

    branch: str
    tip: str


class BaseSeen(Fact, frozen=True, kw_only=True):
    """Where it stands."""

    branch: str
    commit: str
    relation: Relation
    rewound: bool = False
    """Whether it does not hold the run's base any more, which a landing would bring back."""


class BaseMergeStarted(Fact, frozen=True, kw_only=True):
    """The branch has moved since the run began: Windlass began to merge the tip onto it."""

    candidate: int
    base: str
    tip: str


class BaseMergeBuilt(Fact, frozen=True, kw_only=True):
    """That merge exists as a pinned commit; it has yet to pass."""

    candidate: int
    commit: str
    tree: str


class BaseMergeConflicted(Fact, frozen=True, kw_only=True):
    """The branch and the tip cannot be merged without a person."""

    candidate: int
    files: tuple[str, ...]
    detail: str


class BranchMoveStarted(Fact, frozen=True, kw_only=True):
    """The branch is about to move, if nobody moved it and no file in the way is dirty."""

    branch: str
    old: str
    new: str


class Landed(Fact, frozen=True, kw_only=True):
    """The branch holds all that was merged."""

    branch: str
    commit: str


class LandRefused(Fact, frozen=True, kw_only=True):
    """The branch has not moved, and why."""

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
"""All of them."""
