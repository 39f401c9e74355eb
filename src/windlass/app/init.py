"""`init`: detect the project's checks, and write windlass.toml.

Nothing is run and nothing is installed.
"""

import os
import tomllib
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from windlass.app.detect import Command, Proposal, detect
from windlass.app.wiring import Project, machine
from windlass.app.wiring.configuration import FILE
from windlass.core.settings import Level, Settings
from windlass.errors import BadInput


class Proposed(Struct, frozen=True, kw_only=True):
    """What was found, and the file that it would become."""

    proposal: Proposal
    missing: tuple[str, ...]
    """Programs and modules that the commands need and this machine does not have."""
    text: str
    """The text of windlass.toml."""
    walls: Level
    """The sandbox level of this system."""
    why_no_walls: str | None
    """Why that level does not work here; None if it does."""


class Initialised(Struct, frozen=True, kw_only=True):
    """What was proposed, and the file that was written; None if none was."""

    proposed: Proposed
    path: Path | None


def init(
    project: Project, *, force: bool = False, confirm: Callable[[Proposed], bool]
) -> Initialised:
    """Detect the project's checks and write windlass.toml, if `confirm` agrees.

    With `force`, existing settings are replaced.
    """
    if not force:
        _refuse_to_replace(project)
    proposed = propose(project)
    if not confirm(proposed):
        return Initialised(proposed=proposed, path=None)
    project.files.write(FILE, proposed.text)
    return Initialised(proposed=proposed, path=project.root / FILE)


def propose(project: Project) -> Proposed:
    """What the project's files propose; nothing is written."""
    proposal = detect(project.files.texts())
    return Proposed(
        proposal=proposal,
        missing=_missing(proposal),
        text=settings_text(proposal),
        walls=machine.native_walls(),
        why_no_walls=project.walls.why_no_walls(Settings()),
    )


def settings_text(proposal: Proposal) -> str:
    """The text of windlass.toml: each value with the reason it is there."""
    lines = [
        "# Settings of Windlass. `windlass doctor` lists every key, its value and bounds.",
        "",
    ]
    lines += [line for note in proposal.notes for line in (f"# Note: {printable(note)}.", "")]
    if proposal.checks:
        lines += ["# Every task, and every merge, must pass these."]
        lines += _listed("checks", proposal.checks)
    else:
        lines += [
            "# Commands that prove the project. None was found; without one, only agents judge",
            '# whether the work is right. For example: checks = ["make test"]',
            "checks = []",
        ]
    if proposal.setup or proposal.keep:
        lines += ["", "[workspace]"]
    if proposal.setup:
        lines += ["# Run in every checkout before agents and checks use it; network allowed."]
        lines += _listed("setup", proposal.setup)
        lines += ["# The result of setup is used again while these files stay the same."]
        lines += [f"inputs = [{', '.join(map(_quoted, proposal.inputs))}]"]
    if proposal.keep:
        lines += ["# Folders that never enter a commit, unless the base has them."]
        lines += [f"keep = [{', '.join(map(_quoted, proposal.keep))}]"]
    return "\n".join([*lines, ""])


def _listed(key: str, commands: tuple[Command, ...]) -> list[str]:
    items = [
        line
        for each in commands
        for line in (f"    # {printable(each.because)}", f"    {_quoted(each.line)},")
    ]
    return [f"{key} = [", *items, "]"]


def _quoted(text: str) -> str:
    """A TOML string without control characters, which no proposed command needs."""
    return '"' + printable(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def printable(text: str) -> str:
    return "".join(char for char in text if char.isprintable())


def _refuse_to_replace(project: Project) -> None:
    again = "`windlass init --force` replaces it, and `windlass doctor` shows its settings"
    if os.path.lexists(project.root / FILE):
        raise BadInput(f"{FILE} exists, and was not changed", hint=again)
    shared = project.root / "pyproject.toml"
    try:
        tools = tomllib.loads(shared.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, UnicodeError, tomllib.TOMLDecodeError):
        return
    if "windlass" in tools:
        raise BadInput(
            f"pyproject.toml has [tool.windlass], which a {FILE} would override",
            hint="edit it there, or use `windlass init --force`",
        )


def _missing(proposal: Proposal) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for command in (*proposal.setup, *proposal.checks):
        if command.needs and not machine.has_program(command.needs):
            found[f"`{command.needs}` is not on PATH, and `{command.line}` needs it"] = None
        elif command.needs_module and not machine.can_import(command.needs, command.needs_module):
            found[
                f"`{command.needs}` has no {command.needs_module}: install it there, or in each "
                "checkout with [workspace] setup"
            ] = None
    return tuple(found)
