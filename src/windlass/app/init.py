"""`init`: detect the project's setup and checks, try them if asked to, and write windlass.toml.

Law: nothing is run unless it is asked for, and nothing is ever run outside the sandbox. What failed
is written with the words that it failed.
"""

import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from windlass.app.detect import Command, Proposal, detect
from windlass.app.settings_schema import LINE, write_schema
from windlass.app.trial import Attempt, Tried, Watch, attempt
from windlass.app.wiring import Project, machine
from windlass.app.wiring.configuration import FILE, configure
from windlass.core.events.model import Absence, CheckResult
from windlass.core.settings import Level, Settings, WorkspaceSettings
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
    attempt: Attempt | None = None
    """What became of the commands, if they were tried."""

    @property
    def settings(self) -> Settings:
        """The settings that the proposal would be."""
        setup = tuple(each.line for each in self.proposal.setup)
        workspace = WorkspaceSettings(
            setup=setup, inputs=self.proposal.inputs, keep=self.proposal.keep
        )
        checks = tuple(each.line for each in self.proposal.checks)
        return Settings(checks=checks, workspace=workspace)


class Initialised(Struct, frozen=True, kw_only=True):
    """What was proposed, and the file that was written; None if none was."""

    proposed: Proposed
    path: Path | None


def init(
    project: Project,
    *,
    force: bool = False,
    confirm: Callable[[Proposed], bool],
    show: Callable[[Proposed], None] = lambda _proposed: None,
    trying: Watch | None = None,
) -> Initialised:
    """Detect the project's setup and checks, and write windlass.toml, if `confirm` agrees.

    With `force`, existing settings are replaced. With `trying`, the commands are tried before.
    `show` gets the proposal first.
    """
    if not force:
        _refuse_to_replace(project)
    proposed = propose(project)
    show(proposed)
    if trying is not None:
        found = attempt(project, proposed.settings, trying)
        text = settings_text(proposed.proposal, found)
        proposed = replace(proposed, attempt=found, text=text)
    if not confirm(proposed):
        return Initialised(proposed=proposed, path=None)
    write_schema(project)
    # Last: a repeat after a kill refuses to replace it.
    project.files.write(FILE, proposed.text)
    return Initialised(proposed=proposed, path=project.root / FILE)


def has_settings(project: Project) -> bool:
    """Whether the project has settings of its own already."""
    try:
        _refuse_to_replace(project)
    except BadInput:
        return True
    return False


def try_settings(project: Project, watch: Watch) -> Attempt:
    """Try the commands of the project's own settings; nothing is written."""
    read = configure(project.root, project.environment, {}, directory=project.directory)
    return attempt(project, read.settings, watch)


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


def settings_text(proposal: Proposal, tried: Attempt | None = None) -> str:
    """The text of windlass.toml: each value with the reason it is there, and how it was tried."""
    lines = [
        LINE,
        "# Settings of Windlass. `windlass doctor` lists every key, its value and bounds.",
        "",
    ]
    results = {each.result.command: each for each in tried.tried} if tried else {}
    if tried is not None and tried.works:
        lines += [f"# All commands were tried on commit {tried.commit[:10]}, and worked.", ""]
    lines += [line for note in proposal.notes for line in (f"# Note: {printable(note)}.", "")]
    if proposal.checks:
        lines += ["# Every task, and every merge, must pass these."]
        lines += _listed("checks", proposal.checks, results)
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
        lines += _listed("setup", proposal.setup, results)
        lines += ["# The result of setup is used again while these files stay the same."]
        lines += [f"inputs = [{', '.join(map(_quoted, proposal.inputs))}]"]
    if proposal.keep:
        lines += ["# Folders that never enter a commit, unless the base has them."]
        lines += [f"keep = [{', '.join(map(_quoted, proposal.keep))}]"]
    return "\n".join([*lines, ""])


def _listed(key: str, commands: tuple[Command, ...], results: Mapping[str, Tried]) -> list[str]:
    items: list[str] = []
    for each in commands:
        items.append(f"    # {printable(each.because)}")
        tried = results.get(each.line)
        if tried is not None and not tried.works:
            items.append(f"    # Does not work yet: it {how_it_failed(tried.result)} when tried.")
        items.append(f"    {_quoted(each.line)},")
    return [f"{key} = [", *items, "]"]


def how_it_failed(result: CheckResult) -> str:
    """`failed with exit code 1`, `took too long`, `could not start`, `ran no tests`."""
    match result.absence:
        case Absence.TIMED_OUT:
            return "took too long"
        case Absence.UNABLE_TO_START:
            code = "" if result.exit_code is None else f" (exit code {result.exit_code})"
            return f"could not start{code}"
        case Absence.COLLECTED_NOTHING:
            return "ran no tests"
        case None:
            return f"failed with exit code {result.exit_code}"
        case _:
            assert_never(result.absence)


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
