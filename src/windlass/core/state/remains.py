"""What git shows of a run without its journal: commits with trailers, and pins. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from windlass.core.events.review import Review


def attempt_pins(n: int, start: str, onto: str | None, turn: int | None) -> dict[str, str]:
    """The pins of a task's n-th Player start; the first one needs no pin for its turn."""
    pins = {"start": start}
    if turn is not None and n > 1:
        pins[f"turn-{turn}"] = start
    if onto is not None:
        pins["onto"] = onto
    return pins


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
    """A digest of the text that a merge was made for; empty if an older version made it."""


Kind: TypeAlias = Literal["snapshot", "partial"]


class Kept(Struct, frozen=True, kw_only=True):
    """The pins of one start of a Player."""

    n: int
    start: str | None = None
    turn: int | None = None
    onto: str | None = None
    kind: Kind | None = None
    commit: str | None = None
    files: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    reviews: Mapping[int, Review] = {}


class Remains(Struct, frozen=True, kw_only=True):
    run: str
    base: str
    tip: str | None = None
    """The tip's pin, or else the run's integration branch."""
    tip_is_pinned: bool = True
    commits: Mapping[str, Made] = {}
    """The base, and all later commits that the run's pins reach."""
    attempts: Mapping[str, Mapping[int, Kept]] = {}
    """By task and number of the Player start."""
    candidates: Mapping[int, str] = {}
    notes: tuple[str, ...] = ()
    """What could not be read."""


def attempts_of(remains: Remains, task: str, tip: str) -> dict[int, Kept]:
    """The Player starts of a task: the pins of each, and what the next start shows of its work.

    This finds work whose own pin is gone, and turns that changed nothing, whose work has no pin.
    `tip` is the journal's.
    """
    found = dict(remains.attempts.get(task, {}))
    lines = [chain(remains.commits, remains.base, end) for end in (tip, remains.tip or tip)]
    merged = {made.commit for line in lines for made in line or ()}
    for n in range(max(found, default=0) - 1, 0, -1):
        kept, after = found.get(n, Kept(n=n)), found[n + 1]
        # A Player starts from the task's newest work, or from the tip if the task started over.
        work = remains.commits.get(after.start or "")
        own = work is not None and (work.run, work.task) == (remains.run, task)
        if not own or after.start in {kept.start, *merged}:
            work = None
        found[n] = _completed(kept, after, work) if kept.kind is None else kept
    return found


def _completed(kept: Kept, after: Kept, work: Made | None) -> Kept:
    """A start whose work has no pin, by the next start and the work that it began with."""
    if work is None:
        if kept.start is None or kept.start != after.start:
            return kept
        turn, commit = kept.turn, None
    else:
        turn, commit = kept.turn or work.turn, work.commit
    known = turn or (1 if kept.n == 1 else None)
    returned = known is not None and after.turn is not None and after.turn > known
    # A round of merging that was interrupted without any work is repeated from the same start.
    unmerged = after.onto is not None and (work is not None or kept.onto is None)
    if returned or unmerged:
        return replace(kept, kind="snapshot", turn=turn, commit=commit)
    return replace(kept, kind="partial", turn=turn, commit=commit) if work is not None else kept


def chain(commits: Mapping[str, Made], base: str, tip: str) -> tuple[Made, ...] | None:
    """The commits from the base to the tip by first parents; None if they do not connect."""
    found: list[Made] = []
    at = tip
    while at != base:
        made = commits.get(at)
        if made is None or not made.parents:
            return None
        found.append(made)
        at = made.parents[0]
    return tuple(reversed(found))
