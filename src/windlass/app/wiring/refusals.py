"""What no run begins with, whatever its plan: `run` refuses it here, and `doctor` says the same."""

from collections.abc import Mapping

from windlass.app.wiring.configuration import Configuration, variable
from windlass.errors import ConfigError

_OTHER_VARIABLES = frozenset({
    "WINDLASS_BOX",
    "WINDLASS_CORPUS",
    "WINDLASS_DEBUG",
    "WINDLASS_SHIM",
    "WINDLASS_SKIPS_ALLOWED",
    "WINDLASS_SKIPS_FAIL",
})  # fmt: skip
"""Read elsewhere: by the entry, by whoever ends what a dead run left, and by Windlass's tests."""


def refuse_none_by_habit(configuration: Configuration) -> None:
    """No sandbox at all is a word for one run, not something a file may say for all of them."""
    level = next(value for value in configuration.values if value.key == "sandbox.level")
    if level.value == "none" and not level.source.startswith("option"):
        raise ConfigError(
            f"{level.source}: no sandbox at all cannot be a setting",
            hint="say it for one run: --sandbox none",
        )


def refuse_command_in_file(configuration: Configuration) -> None:
    """What runs outside the walls comes from a person; agents may have written files."""
    command = next(value for value in configuration.values if value.key == "notify.command")
    if command.value and command.source != variable(command.key):
        raise ConfigError(
            f"{command.source}: notify.command cannot come from a file, for agents may edit those",
            hint=f"set {variable(command.key)}, with one argument a line",
        )


def unread_variables(environment: Mapping[str, str], configuration: Configuration) -> list[str]:
    """Variables that look meant for Windlass, though nobody reads them: slips of the pen.

    They keep no run from starting, for a script of the user's may have such names of its own.
    """
    settings = configuration.settings
    named = {settings.notify.webhook, *settings.sandbox.env}
    read = {*_OTHER_VARIABLES, *named, *(variable(value.key) for value in configuration.values)}
    return sorted(name for name in {*environment} - read if name.startswith("WINDLASS_"))
