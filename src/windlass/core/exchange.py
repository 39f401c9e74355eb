"""Values that pass between the core and its callers, and that are not facts."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

MAX_LISTED = 100
"""How many changed paths a snapshot lists."""

ChangedPaths: TypeAlias = Mapping[tuple[str, str], Mapping[str, bool]]
"""The paths that differ between pairs of commits that git has, and whether each is new."""


_LABEL = re.compile(r"(.+?)-\d+(?:-merged|-coach-\d+)?")
"""The labels of checkouts in which a task's checks run, or its Coach works."""


def task_of(label: str) -> str:
    """The task that a throwaway checkout is for, by its label; empty for the base and the tip."""
    found = _LABEL.fullmatch(label)
    return found[1] if found else ""


class Expected(Struct, frozen=True, kw_only=True):
    """What a finished stage should have left in git."""

    merges: Mapping[str, tuple[str, str]]
    """For each merged task its merge and its approved commit."""
    files: Mapping[str, str]
    """Files that must exist, each with its task."""
    kept: Mapping[str, str]
    """Abandoned tasks, each with the newest commit of its work."""


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command from a person to a live run."""

    command: Annotated[str, Meta(min_length=1)]
    task: str = ""
    text: str = ""
    run: str = ""
    """The run it is for; empty: the run of the plan that is live when it arrives."""
    by: str = ""
    """The person who sent it, as git names them; empty if not known."""
    meaning: str = ""
    """The digest of the task's text that the person saw; empty: any text."""
    at: datetime | None = None
    """When it was sent, if known."""


class Authorship(Struct, frozen=True, kw_only=True):
    """What the message of a Windlass commit contains."""

    task: str
    """Empty if the commit is about the whole run."""
    title: str
    n: int
    turn: int
    by_person: bool = False
    """A person worked there: their own commits are kept, with their authors."""
    text: str = ""
    """A digest of what the task asks for; the merge records the text it was made for."""
    summary: str = ""
    """What agents said about the work that the commit holds."""
    by_agent: bool = False
    """Whether an agent did some of that work."""


class WorkStep(Struct, frozen=True, kw_only=True):
    """What one attempt of a task changed."""

    start: str
    commit: str | None
    files: tuple[str, ...]
    created: tuple[str, ...]


class MergedWork(Struct, frozen=True, kw_only=True):
    """What a run knows about a merged task."""

    task: str
    merge: str | None
    approved: str
    """The approved commit."""
    steps: tuple[WorkStep, ...]
    creates: tuple[str, ...]
    """Files that the task must create, by the plan."""
    in_stage: bool
    """Whether the task is in the finished stage."""


class StageWork(Struct, frozen=True, kw_only=True):
    """What a run knows about all merged work when a stage is done."""

    merged: tuple[MergedWork, ...]
    kept: Mapping[str, str]
    """Abandoned tasks of the stage, each with the newest commit of its work."""
