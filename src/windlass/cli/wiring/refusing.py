"""What no run begins with, whatever its plan: `run` refuses it here, and `doctor` says the same."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from windlass.cli.config import Configuration, variable
from windlass.cli.wiring.project import CREDENTIALS
from windlass.errors import BadInput, ConfigError

ADDRESS = "ANTHROPIC_BASE_URL"

_OTHER_VARIABLES = frozenset({
    "WINDLASS_BOX",
    "WINDLASS_CORPUS",
    "WINDLASS_DEBUG",
    "WINDLASS_SHIM",
    "WINDLASS_SKIPS_ALLOWED",
    "WINDLASS_SKIPS_FAIL",
})  # fmt: skip
"""Read elsewhere: by the entry, by whoever ends what a dead run left, and by Windlass's tests."""


def refuse_without_credentials(
    environment: Mapping[str, str], instead: str = "try `windlass demo`, which needs none"
) -> tuple[str, ...]:
    """The variables by which the agent reaches its model; raises where it could not."""
    names = tuple(name for name in CREDENTIALS if environment.get(name, "").strip())
    if not any(name != ADDRESS for name in names):
        raise BadInput(
            "no key for the agent in the environment",
            hint=f"set ANTHROPIC_API_KEY, or {instead}",
        )
    # It may hold a login, so what it is instead is not said.
    if ADDRESS in names and not _is_web_address(environment[ADDRESS]):
        raise ConfigError(
            f"{ADDRESS} is no URL",
            hint="give one that begins with http:// or https://, or unset it",
        )
    return names


def _is_web_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, half an IPv6 address
        return False


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
