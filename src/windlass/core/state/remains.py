"""What git shows of a run without its journal: commits with trailers, and pins. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct

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
