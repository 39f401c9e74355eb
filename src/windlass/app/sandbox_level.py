"""The sandbox level of a run, decided before anything is changed.

Law: only a person may allow agents without walls. If no walls work, or a run would continue at a
lower level than it had, Windlass asks on a terminal. Elsewhere it refuses with exit code 3 and the
command that allows it.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from windlass.app.person import Person
from windlass.app.wiring import Project, machine
from windlass.core.settings import Level, Settings
from windlass.core.state import RunState
from windlass.errors import NoWalls, Unanswered

INSTALL_WALLS = "install bubblewrap: `apt install bubblewrap`, `dnf install bubblewrap`, …"

STRENGTH: Mapping[Level, int] = {"bwrap": 2, "seatbelt": 2, "checkout": 1, "none": 0}

_MEANING = "At level checkout, agents can read and write everything that you can."


def settle_level(
    project: Project,
    settings: Settings,
    before: RunState | None,
    *,
    by_option: bool,
    typed: str,
    person: Person | None,
) -> Settings:
    """The settings with the level of the run; ask, or raise, if it has no walls or fewer.

    `before` is the run to continue, if there is one; `by_option`: an option names the level;
    `typed` names the plan.
    """
    command = f"windlass {'resume' if before is not None else 'run'} {typed}"
    asked = settings.sandbox.level
    try:
        level = project.walls.sandbox(settings, "probe").level if asked == "auto" else asked
    except NoWalls as error:
        _allow(f"{error.message}.", "checkout", command, person=person)
        return replace(settings, sandbox=replace(settings.sandbox, level="checkout"))
    if before is None or STRENGTH[level] >= STRENGTH[before.sandbox]:
        return settings
    if asked == "auto" or not by_option:
        lower = f"the run had level {before.sandbox}, and would continue at level {level}."
        _allow(lower, level, command, person=person)
    return settings


def settle_rehearsal(
    level: str, environment: Mapping[str, str], command: str, person: Person | None
) -> str:
    """The level for `demo` and `selftest`; ask, or raise, if no walls work."""
    if level != "auto" or (reason := machine.why_no_walls(environment)) is None:
        return level
    why = f"no sandbox works here ({machine.native_walls()}: {reason})."
    _allow(why, "checkout", command, person=person)
    return "checkout"


def _allow(what: str, level: Level, command: str, *, person: Person | None) -> None:
    """Raise unless a person allows it."""
    shown = what[0].upper() + what[1:]
    if person is not None and person.allow(f"{shown} {_MEANING}", f"Continue at level {level}?"):
        return
    words = f"`{command} --sandbox {level}` runs without walls"
    cure = words if level == "none" else f"{INSTALL_WALLS}; or allow it: {words}"
    kind = NoWalls if level == "checkout" else Unanswered
    raise kind(what.removesuffix("."), hint=cure)
