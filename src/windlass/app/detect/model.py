"""The shape of a proposal: commands, each with the reason it is believed in."""

from collections.abc import Mapping

from msgspec import Struct

Files = Mapping[str, str]
"""A project's files, as {path below its root: text}."""


class Command(Struct, frozen=True):
    """A command line, and what in the project asks for it."""

    line: str
    because: str
    needs: str = ""
    """The program that must be on PATH for it to start."""
    needs_module: str = ""
    """The Python module that `needs`, an interpreter, must be able to import."""


class Part(Struct, frozen=True, kw_only=True):
    """What one toolchain of the project proposes."""

    checks: tuple[Command, ...] = ()
    setup: tuple[Command, ...] = ()
    inputs: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What a person should know, because the files alone do not settle it."""


Proposal = Part
"""All parts together: what would be written."""


def joined(parts: list[Part]) -> Proposal:
    """One proposal of all parts, nothing said twice."""

    def every(field: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(item for part in parts for item in getattr(part, field)))

    return Part(
        checks=tuple(check for part in parts for check in part.checks),
        setup=tuple(command for part in parts for command in part.setup),
        inputs=every("inputs"),
        keep=every("keep"),
        notes=every("notes"),
    )
