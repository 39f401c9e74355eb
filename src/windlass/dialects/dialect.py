"""What a dialect is: one plan format, and the state files that its users' own tools read.

A dialect is pure. It gets texts that somebody else has read, and gives texts that somebody else
will write; it never sees a disk.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec import Struct

from windlass.dialects.claims import Claims
from windlass.plan import Plan
from windlass.state import RunState


class Source(Struct, frozen=True, kw_only=True):
    """What was named on the command line, as text: a file, or a folder with its files."""

    path: str
    """The file or folder, relative to the repository where it lies inside."""
    texts: Mapping[str, str]
    """Each file by its path: the one that was named, or those in the folder; and others that the
    plan refers to, where they are there."""

    @property
    def text(self) -> str | None:
        """The text of the file that was named; None where it is a folder."""
        return self.texts.get(self.path)


Redact: TypeAlias = Callable[[str], str]
Projection: TypeAlias = dict[str, str | None]
"""Paths below the repository with their whole text; None for a file that is to be gone."""


class Dialect(Struct, frozen=True, kw_only=True):
    """One plan format. Each is a module here that says what it knows, and nothing else does."""

    name: str
    """What `--dialect` calls it."""
    recognises: Callable[[Source], bool]
    """Whether the source is meant for this dialect, judged by what it contains."""
    parse: Callable[[Source], Plan]
    """The plan as written, not yet validated; an id or title it does not declare is empty."""
    refers_to: Callable[[Source], tuple[str, ...]] = lambda _source: ()
    """Other files below the repository that the plan's text names and that belong to it."""
    writes: Callable[[Plan], tuple[str, ...]] = lambda _plan: ()
    """Every file below the repository that `project` may write for this plan."""
    shares: Callable[[Plan], tuple[str, ...]] = lambda _plan: ()
    """Those of them that are the user's own, of which only some part is written."""
    continue_here: str = ".windlass/continue-here"
    """Where its users look for what a paused run left to do."""
    project: Callable[[RunState, int, Mapping[str, str], Redact], Projection] = (
        lambda _state, _seq, _texts, _redact: {}
    )
    """The state files as of a journal position. `texts` are those of `writes` as they are now, but
    for those that are gone. What the run has to say is redacted; what is the user's own is theirs,
    secrets and all."""
    claims: Callable[[str, str], Claims | None] = lambda _path, _text: None
    """What a state file of this dialect's users claims; None where the text is no such file."""
