"""Which screen a run is shown on, and whether in colour: by what was asked, else by where it is.

Law: a live footer is painted only where a person looks at a terminal that can move its cursor.
Programs, logs and agents get plain lines.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

Display: TypeAlias = Literal["live", "plain", "json", "none"]

DISPLAYS = ("auto", "live", "plain", "json", "none")

CI = ("CI", "GITHUB_ACTIONS", "TF_BUILD", "JENKINS_URL", "TEAMCITY_VERSION")
AGENTS = (
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE",
    "CODEX_SANDBOX",
    "CURSOR_AGENT",
    "GEMINI_CLI",
    "OPENCODE",
)
"""Set by agents in the commands they run: whoever reads then pays for every repainted row."""

_NO = frozenset({"", "0", "false", "no", "off"})


def chosen(asked: str, environment: Mapping[str, str], *, terminal: bool) -> Display:
    """The display for that wish; `terminal` says whether people's lines go to one."""
    if asked == "json":
        return "json"
    if asked == "none":
        return "none"
    if asked == "plain" or not terminal or environment.get("TERM", "dumb") in {"dumb", ""}:
        return "plain"
    if asked == "live":
        return "live"
    watched = any(is_set(environment, name) for name in (*CI, *AGENTS))
    return "plain" if watched else "live"


def wants_colour(environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether to colour: forced, forbidden, or as the terminal can."""
    forced = environment.get("FORCE_COLOR", "")
    if forced:
        return forced.lower() not in _NO
    if is_set(environment, "CLICOLOR_FORCE"):
        return True
    if environment.get("NO_COLOR") or environment.get("CLICOLOR") == "0":
        return False
    return terminal and environment.get("TERM") != "dumb"


def wants_ascii(encoding: str | None) -> bool:
    """Whether a stream of that encoding can take no more than ASCII."""
    return (encoding or "ascii").lower().replace("-", "").replace("_", "") not in {"utf8", "utf16"}


def is_set(environment: Mapping[str, str], name: str) -> bool:
    """Whether a variable says yes."""
    return environment.get(name, "").lower() not in _NO
