"""What is left of a run in git when its journal is gone, and what is put there for that day. Pure.

Law: git must be enough. Most of a run shows in its pins: where each Player started and in which
turn, what it left, what the Coach said, which merges the tip has. What no commit can show, how the
run began and what people said, is pinned as text: see `TOLD`.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct

from windlass.events import codec
from windlass.events import model as e
from windlass.events.review import Review
from windlass.state.model import RunState

TOLD = (
    e.PlanRevised,
    e.TaskAdopted,
    e.TaskAccepted,
    e.CheckpointPassed,
    e.Answered,
    e.TaskReopened,
    e.MergeStands,
    e.TaskReset,
    e.TaskResetUndone,
    e.TaskTaken,
    e.TaskGiven,
)
"""Facts that no commit shows, and without which work would be done or asked for again."""


def attempt_pins(n: int, start: str, onto: str | None, turn: int | None) -> dict[str, str]:
    """What is pinned when the n-th Player of a task starts; the first is of the first turn."""
    pins = {"start": start}
    if turn is not None and n > 1:
        pins[f"turn-{turn}"] = start
    if onto is not None:
        pins["onto"] = onto
    return pins


class Mark(Struct, frozen=True, kw_only=True):
    """How far a run was when something was said."""

    tip: str
    moving: tuple[str, ...] = ()
    """Merges that the tip was about to move to: it has them, or was to get them next."""
    attempts: Mapping[str, int]
    """How many Players each task had had."""
    reviews: Mapping[str, int]
    """How many Coaches had looked at the last of them."""


class Told(Struct, frozen=True, kw_only=True):
    """A fact that no commit shows, and its place in the run."""

    fact: e.Event
    mark: Mark


class _Told(Struct, frozen=True, kw_only=True):
    record: Raw
    mark: Mark


def began_text(fact: e.RunStarted) -> str:
    """The run's first fact as it is pinned."""
    return codec.encode(fact).decode()


def told_text(fact: e.Event, state: RunState) -> str:
    """The fact as it is pinned, with its place; `state` is the one it led to."""
    begun = {task.id: task.attempts for task in state.all_tasks if task.attempts}
    if isinstance(fact, e.TaskTaken):  # what it began came after it
        begun[fact.task] = begun[fact.task][:-1]
    begun = {id_: attempts for id_, attempts in begun.items() if attempts}
    mark = Mark(
        tip=state.tip,
        moving=tuple(
            task.candidate_commit
            for task in state.all_tasks
            if task.moving_as is not None and task.candidate_commit is not None
        ),
        attempts={id_: len(attempts) for id_, attempts in begun.items()},
        reviews={id_: len(attempts[-1].coachings) for id_, attempts in begun.items()},
    )
    return msgspec.json.encode(_Told(record=Raw(codec.encode(fact)), mark=mark)).decode()


def read_began(text: str) -> e.RunStarted | None:
    """The run's first fact; None where the text is no such thing."""
    fact = codec.decode(text.encode())
    return fact if isinstance(fact, e.RunStarted) else None


def read_told(text: str) -> Told:
    """A fact that was pinned so, with its place. Raises MsgspecError or JournalError."""
    read = msgspec.json.decode(text.encode(), type=_Told)
    return Told(fact=codec.decode(bytes(read.record)), mark=read.mark)


class Made(Struct, frozen=True, kw_only=True):
    """A commit, and what its trailers say."""

    commit: str
    tree: str
    parents: tuple[str, ...]
    at: datetime
    run: str = ""
    task: str = ""
    turn: int | None = None
    text: str = ""
    """A digest of the text that a merge was made for; empty where an older version made it."""


Kind: TypeAlias = Literal["snapshot", "partial"]


class Kept(Struct, frozen=True, kw_only=True):
    """What is pinned of one start of a Player."""

    n: int
    start: str | None = None
    turn: int | None = None
    onto: str | None = None
    tip: str | None = None
    """What was tried, where nobody played: the tip as it stood."""
    kind: Kind | None = None
    commit: str | None = None
    files: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    reviews: Mapping[int, Review] = {}


class Remains(Struct, frozen=True, kw_only=True):
    """All that git shows of a run."""

    run: str
    order: int = 0
    """The run's place among the runs of its plan; 0 for a run of a version that did not count."""
    began: e.RunStarted | None
    told: tuple[Told, ...]
    told_until: int = 0
    """The highest number of a text that was told, readable or not."""
    base: str
    tip: str
    commits: Mapping[str, Made]
    """The base, and every commit that the run's pins lead to beyond it."""
    attempts: Mapping[str, Mapping[int, Kept]]
    """What is pinned of each task, by the number of its Player."""
    candidates: Mapping[int, str]
    notes: tuple[str, ...] = ()
    """What could not be read, and what was assumed."""

    @property
    def merges(self) -> tuple[Made, ...]:
        """What the tip has beyond the base, first parents only, oldest first."""
        return chain(self.commits, self.base, self.tip) or ()

    @property
    def age(self) -> tuple[float, ...]:
        """Sorts runs of one plan, oldest first: by place, and by time where none was counted."""
        if self.order:
            return (self.order,)
        began = self.began.at if self.began is not None else self.commits[self.base].at
        return 0, began.timestamp(), self.at.timestamp()

    @property
    def at(self) -> datetime:
        """When anything was last seen to be done."""
        began = (self.began.at,) if self.began is not None else ()
        made = (made.at for made in self.commits.values() if made.run == self.run)
        return max((*began, *made), default=self.commits[self.base].at)


def chain(commits: Mapping[str, Made], base: str, tip: str) -> tuple[Made, ...] | None:
    """The commits from the base to the tip by first parents; None where they do not lead there."""
    found: list[Made] = []
    at = tip
    while at != base:
        made = commits.get(at)
        if made is None or not made.parents:
            return None
        found.append(made)
        at = made.parents[0]
    return tuple(reversed(found))
