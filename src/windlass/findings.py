"""What is wrong or odd in a plan's files: the one value that readers, errors and screens share."""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

Severity = Literal["error", "warning", "note"]
"""No run can start · probably not what the author meant · seen, and not used."""


class Finding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is wrong or odd at one place of a plan's files."""

    line: int
    """Counted from 1; 0 for the file as a whole."""
    text: str
    path: str = ""
    """The file, if it is not the plan's own."""
    severity: Severity = "note"
    suggestion: str = ""
    """What to write instead, as far as Windlass can tell."""

    @property
    def words(self) -> str:
        """The message, and the suggestion after it."""
        return f"{self.text}; {self.suggestion}" if self.suggestion else self.text

    @property
    def place(self) -> str:
        """`path:line`, as editors read it."""
        return f"{self.path}:{self.line}" if self.path and self.line else self.path


def worst_first(found: Iterable[Finding], path: str) -> tuple[Finding, ...]:
    """The errors and then the warnings, each in the order of the files; `path` is the plan's own.

    A slip is often the cause of an error elsewhere, so warnings are told with the errors.
    """
    whole = [replace(each, path=each.path or path) for each in found]
    return tuple(
        each
        for severity in ("error", "warning")
        for each in sorted(whole, key=lambda each: (each.path, each.line))
        if each.severity == severity
    )
