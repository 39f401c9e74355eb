"""What a dialect is: one plan format, and the state files that the format's own tools read.

A dialect is pure. It receives texts and returns texts; it never touches a disk.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec import Struct

from windlass.core.plan import Plan
from windlass.core.state import RunState
from windlass.formats.state_files import Claims, Redact


class Source(Struct, frozen=True, kw_only=True):
    """What was named on the command line, as text: a file, or a folder with its files."""

    path: str
    """The file or folder, relative to the repository where it lies inside."""
    texts: Mapping[str, str]
    """Each file by its path: the file that was named, or the files of the folder, and the existing
    files that the plan refers to."""

    @property
    def text(self) -> str | None:
        """The text of the file that was named; None for a folder."""
        return self.texts.get(self.path)


Projection: TypeAlias = dict[str, str | None]
"""Paths below the repository with their whole text; None for a file to delete."""


class Dialect(Struct, frozen=True, kw_only=True):
    """One plan format. Only its own package knows its rules."""

    name: str
    """Its name for `--dialect`."""
    recognises: Callable[[Source], bool]
    """Whether the source is written in this dialect, judged by its content."""
    parse: Callable[[Source], Plan]
    """The plan as written, not yet validated; an id or title it does not declare is empty."""
    refers_to: Callable[[Source], tuple[str, ...]] = lambda _source: ()
    """Other files below the repository that the plan's text names and that belong to it."""
    writes: Callable[[Plan], tuple[str, ...]] = lambda _plan: ()
    """Every file below the repository that `project` may write for this plan."""
    shares: Callable[[Plan], tuple[str, ...]] = lambda _plan: ()
    """Those of them that belong to the user; Windlass writes only a part of them."""
    continue_here: str = ".windlass/continue-here"
    """The file in which the format's users look for the rest of a paused run."""
    project: Callable[[RunState, Mapping[str, str], Redact], Projection] = (
        lambda _state, _texts, _redact: {}
    )
    """The state files of a state. `texts` are the existing files of `writes`, as they
    are now. What the run adds is redacted; the user's own text is not changed."""
    claims: Callable[[str, str], Claims | None] = lambda _path, _text: None
    """What a state file of this format claims; None where the text is no such file."""
