"""The level of the sandbox that a run gets, settled before anything is changed.

Law: agents without walls are for a person to allow. Where no walls work, or a run would go on at a
lower level than it had, Windlass asks on a terminal. Elsewhere it refuses with exit code 3 and the
command that says it in words.
"""

import sys
from collections.abc import Mapping

import click
from msgspec.structs import replace

from windlass.cli.config import Configuration
from windlass.cli.wiring import Project, machine
from windlass.errors import NoWalls, Unanswered
from windlass.settings import Level, Settings
from windlass.state import RunState
from windlass.views.outcome import is_finished

INSTALL_WALLS = "install bubblewrap: `apt install bubblewrap`, `dnf install bubblewrap`, …"

STRENGTH: Mapping[Level, int] = {"bwrap": 2, "seatbelt": 2, "checkout": 1, "none": 0}

_MEANING = "At level checkout, agents can read and write whatever you can."


def settle_level(
    project: Project,
    configuration: Configuration,
    before: RunState | None,
    *,
    typed: str,
    asks: bool,
) -> Settings:
    """Give the settings with the level that the run gets; ask, or raise, where it is a weak one.

    `before` is the plan's last run; `typed` names the plan. With `asks` a terminal is used.
    """
    settings = configuration.settings
    going_on = before is not None and not is_finished(before)
    command = f"windlass {'resume' if going_on else 'run'} {typed}"
    asked = settings.sandbox.level
    try:
        level = project.sandbox(settings, "probe").level if asked == "auto" else asked
    except NoWalls as error:
        _allow(f"{error.message}.", "checkout", command, asks=asks)
        return replace(settings, sandbox=replace(settings.sandbox, level="checkout"))
    if before is None or not going_on or STRENGTH[level] >= STRENGTH[before.sandbox]:
        return settings
    if asked == "auto" or not _is_option(configuration):
        lower = f"the run had level {before.sandbox}, and would go on at level {level}."
        _allow(lower, level, command, asks=asks)
    return settings


def settle_rehearsal(level: str, environment: Mapping[str, str], command: str) -> str:
    """Give the level for a run of Windlass's own; ask, or raise, where no walls work."""
    if level != "auto" or (reason := machine.why_no_walls(environment)) is None:
        return level
    said = f"no sandbox works here ({machine.native_walls()}: {reason})."
    _allow(said, "checkout", command, asks=True)
    return "checkout"


def _is_option(configuration: Configuration) -> bool:
    source = next(value.source for value in configuration.values if value.key == "sandbox.level")
    return source.startswith("option")


def _allow(what: str, level: Level, command: str, *, asks: bool) -> None:
    """Return where a person allows it."""
    said = what[0].upper() + what[1:]
    if asks and sys.stdin.isatty() and sys.stderr.isatty():
        click.echo(f"{said} {_MEANING}", err=True)
        if click.confirm(f"Go on at level {level}?", default=False, err=True):
            return
    words = f"`{command} --sandbox {level}` goes on without walls"
    cure = words if level == "none" else f"{INSTALL_WALLS}; or say it in words: {words}"
    kind = NoWalls if level == "checkout" else Unanswered
    raise kind(what.removesuffix("."), hint=cure)
