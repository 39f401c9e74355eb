"""The shape of a proposal: commands, each with its reason."""

from collections.abc import Mapping

from msgspec import Struct

Files = Mapping[str, str]
"""A project's files, as {path below its root: text}."""


class Command(Struct, frozen=True):
    """A command line, and the reason for it in the project's files."""

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
    """What a person must decide, because the files do not say it."""


Proposal = Part
"""All parts together, as written to windlass.toml."""


def joined(parts: list[Part]) -> Proposal:
    """One proposal of all parts, without duplicates."""

    def every(field: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(item for part in parts for item in getattr(part, field)))

    return Part(
        checks=tuple(check for part in parts for check in part.checks),
        setup=tuple(command for part in parts for command in part.setup),
        inputs=every("inputs"),
        keep=every("keep"),
        notes=every("notes"),
    )
