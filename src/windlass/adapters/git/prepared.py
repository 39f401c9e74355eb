"""The note beside a workspace that says what it was made ready for.

Law: it is written when all of that is durable, and removed before anything of it is undone; so a
workspace without one was never handed to anybody.
"""

import msgspec
from msgspec import Struct

from windlass.adapters.git.layout import Folders


class Prepared(Struct, frozen=True, kw_only=True):
    """What a workspace was last made ready for; written once it is."""

    run: str
    n: int
    start: str
    onto: str | None
    by_person: bool = False
    """Whether its `.git` is a person's, who may have commits there."""


def is_ready(folders: Folders, run: str, task: str, n: int) -> bool:
    """Whether a workspace was last made ready for that start of the task."""
    found = note_of(folders, task)
    return found is not None and (found.run, found.n) == (run, n)


def note_of(folders: Folders, task: str) -> Prepared | None:
    """What the note says, if there is one that can be read."""
    try:
        return msgspec.json.decode(folders.prepared(task).read_bytes(), type=Prepared)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None
