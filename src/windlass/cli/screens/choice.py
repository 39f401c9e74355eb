"""Choose the screen of a run, and whether it uses colour: by the options, else by the terminal.

Law: lines for people go to stderr, lines for programs to stdout. A live footer is painted only on a
terminal that can move its cursor; programs, logs and agents get plain lines.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal, TextIO, TypeAlias, cast

from windlass.app.desk import Desk
from windlass.app.screen import NoScreen, Screen
from windlass.app.wiring import LOCAL_TIME, now
from windlass.cli.screens.actions import ActionsScreen
from windlass.cli.screens.jsonl import JsonScreen
from windlass.cli.screens.plain import PlainScreen
from windlass.cli.screens.terminal import LastingStream
from windlass.core.other_tools import IN_AGENT
from windlass.errors import BadInput

Display: TypeAlias = Literal["live", "plain", "json", "none"]

CI = ("CI", "GITHUB_ACTIONS", "TF_BUILD", "JENKINS_URL", "TEAMCITY_VERSION")

_NO = frozenset({"", "0", "false", "no", "off"})


def chosen(asked: str, environment: Mapping[str, str], *, terminal: bool) -> Display:
    """The display to use; `terminal`: lines for people go to one."""
    if asked in {"json", "none"}:
        return cast("Display", asked)
    if asked == "plain" or not terminal or environment.get("TERM", "dumb") in {"dumb", ""}:
        return "plain"
    if asked == "live":
        return "live"
    # An agent that reads the output pays for every repainted row.
    is_program = any(is_set(environment, name) for name in (*CI, *IN_AGENT))
    return "plain" if is_program else "live"


def wants_colour(environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether to use colour: as the variables say, else if the terminal can."""
    forced = environment.get("FORCE_COLOR", "")
    if forced:
        return forced.lower() not in _NO
    if is_set(environment, "CLICOLOR_FORCE"):
        return True
    if environment.get("NO_COLOR") or environment.get("CLICOLOR") == "0":
        return False
    return terminal and environment.get("TERM") != "dumb"


def wants_ascii(encoding: str | None) -> bool:
    """Whether a stream with that encoding takes only ASCII."""
    return (encoding or "ascii").lower().replace("-", "").replace("_", "") not in {"utf8", "utf16"}


def is_set(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").lower() not in _NO


def can_ask(options: Mapping[str, Any], environment: Mapping[str, str]) -> bool:
    """Whether the screen for these options can ask a person: it is live, and may ask."""
    silent = options.get("yes") or options.get("quiet") or options.get("as_json")
    asked: str = options.get("display") or "auto"
    return not silent and chosen(asked, environment, terminal=sys.stderr.isatty()) == "live"


def screen_for(
    options: Mapping[str, Any],
    environment: Mapping[str, str],
    *,
    stream: TextIO | None = None,
    watching: bool = False,
    left: Callable[[], object] | None = None,
    desk: Desk | None = None,
) -> Screen:
    """The screen for these options; a live one asks the person if it has a desk for the answers.

    `left` is called when the reader has closed the pipe; without it, that is an error.
    """
    to, data = (_lasting(each, left) for each in (stream or sys.stderr, sys.stdout))
    asked: str = options.get("display") or "auto"
    if options.get("as_json"):
        if asked not in {"auto", "json"}:
            raise BadInput(f"--json and --display {asked} exclude each other", hint="use one")
        asked = "json"
    if options.get("quiet") and options.get("verbose"):
        raise BadInput("--quiet and --verbose exclude each other", hint="use one")
    terminal = to.isatty()
    display = chosen(asked, environment, terminal=terminal)
    if display == "none":
        return NoScreen()
    looks: dict[str, Any] = {
        "now": now,
        "colour": wants_colour(environment, terminal=terminal),
        "verbose": bool(options.get("verbose")),
        "plain_letters": wants_ascii(to.encoding),
    }
    quiet = bool(options.get("quiet")) or display == "json"
    if display == "live" and not quiet:
        from windlass.cli.screens.live import LiveScreen

        return LiveScreen(to, watching=watching, zone=LOCAL_TIME, desk=desk, **looks)
    if display == "plain" and is_set(environment, "GITHUB_ACTIONS"):
        verbose, page = bool(options.get("verbose")), environment.get("GITHUB_STEP_SUMMARY")
        return ActionsScreen(to, now=now, verbose=verbose, quiet=quiet, summary=page)
    people = PlainScreen(to, quiet=quiet, **looks)
    return JsonScreen(data, people) if display == "json" else people


def _lasting(stream: TextIO, left: Callable[[], object] | None) -> TextIO:
    return stream if left is None else cast("TextIO", LastingStream(stream, left))
