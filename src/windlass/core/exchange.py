"""Values that pass between the core and the world and are no facts: what is asked and said."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

MAX_LISTED = 100
"""How many of its changed paths a snapshot tells."""

ChangedPaths: TypeAlias = Mapping[tuple[str, str], Mapping[str, bool]]
"""Every path that differs between pairs of commits, as far as git has both, and whether it is new.
"""


class Expected(Struct, frozen=True, kw_only=True):
    """What a stage that is done should have left in git."""

    merges: Mapping[str, tuple[str, str]]
    """For each merged task its merge, and the commit that was approved."""
    files: Mapping[str, str]
    """Files that must be there, each with the task it is from."""
    kept: Mapping[str, str]
    """Tasks that were given up, each with the newest commit of its work."""


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person says to a live run."""

    command: Annotated[str, Meta(min_length=1)]
    task: str = ""
    text: str = ""
    run: str = ""
    """Which run it was said to; empty where it is for whoever hauls the plan at that moment."""
    meaning: str = ""
    """The digest of the task's text that the person saw; empty where any text is meant."""
    at: datetime | None = None
    """When it was said, where that is known."""


class Authorship(Struct, frozen=True, kw_only=True):
    """What a commit of Windlass says about itself."""

    task: str
    """Empty where it is about the whole run."""
    title: str
    n: int
    turn: int
    by_person: bool = False
    """A person worked there: commits of their own are kept, with whoever they name as author."""
    text: str = ""
    """A digest of what the task asks for; its merge says for which text it was made."""


class WorkStep(Struct, frozen=True, kw_only=True):
    """What one attempt of a task changed."""

    start: str
    commit: str | None
    files: tuple[str, ...]
    created: tuple[str, ...]


class MergedWork(Struct, frozen=True, kw_only=True):
    """What a run knows of a merged task."""

    task: str
    merge: str | None
    approved: str
    """The commit that was let through."""
    steps: tuple[WorkStep, ...]
    creates: tuple[str, ...]
    """Files that the plan says are to be there."""
    in_stage: bool
    """Whether the task is of the stage that is done."""


class StageWork(Struct, frozen=True, kw_only=True):
    """What a run knows of all that is merged, when a stage is done."""

    merged: tuple[MergedWork, ...]
    kept: Mapping[str, str]
    """Tasks of the stage that were given up, each with the newest commit of its work."""
