"""Settings that no run may have; `run` refuses them, and `doctor` reports the same."""

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
"""Variables that are no settings: the entry, the leftovers of dead runs and tests use them."""


def refuse_none_as_setting(configuration: Configuration) -> None:
    """Raise if a file or a variable turns the sandbox off: only an option may, for one run."""
    level = next(value for value in configuration.values if value.key == "sandbox.level")
    if level.value == "none" and not level.source.startswith("option"):
        raise ConfigError(
            "a setting cannot turn the sandbox off",
            where=level.source,
            hint="turn it off for one run: --sandbox none",
        )


def refuse_command_in_file(configuration: Configuration) -> None:
    """Raise if a file sets a command that runs outside the walls: agents may have written it."""
    command = next(value for value in configuration.values if value.key == "notify.command")
    if command.value and command.source != variable(command.key):
        raise ConfigError(
            "notify.command cannot come from a file, agents may edit those",
            where=command.source,
            hint=f"set {variable(command.key)}, with one argument per line",
        )


def unread_variables(environment: Mapping[str, str], configuration: Configuration) -> list[str]:
    """Variables that begin with WINDLASS_ and that Windlass does not know; probably typos.

    They are not errors, because the user's scripts may have such names of their own.
    """
    settings = configuration.settings
    named = {settings.notify.webhook, *settings.sandbox.env}
    read = {*_OTHER_VARIABLES, *named, *(variable(value.key) for value in configuration.values)}
    return sorted(name for name in {*environment} - read if name.startswith("WINDLASS_"))
