"""Claude, by the program in its SDK: everything Windlass knows about this vendor.

`agent` starts the program in its box, `stream` holds the conversation, `reading` interprets its
messages. This module imports them only when an agent is made.
"""

import importlib.util
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from windlass.adapters.agents.vendor import Program, Vendor
from windlass.adapters.meter.holds import Holds
from windlass.adapters.sandbox.box import Sandbox
from windlass.core.settings import AgentSettings
from windlass.ports import Agent

ADDRESS: Final = "ANTHROPIC_BASE_URL"
PROVIDER: Final = "https://api.anthropic.com"
"""Where requests go by default."""
MISSING: Final = "the program `claude` is missing"
INSTALL: Final = "reinstall claude-agent-sdk, which brings it, or put `claude` on PATH"


def find_program() -> Program | None:
    """The program in the SDK, else the one on PATH."""
    spec = importlib.util.find_spec("claude_agent_sdk")
    for folder in (spec and spec.submodule_search_locations) or ():
        bundled = Path(folder, "_bundled", "claude")
        if bundled.is_file():
            return Program(bundled, _version(bundled))
    found = shutil.which("claude")
    return Program(path := Path(found).resolve(), _version(path)) if found else None


def _version(program: Path) -> str:
    beside = program.with_name("claude.version")
    words = beside.read_text().split() if beside.is_file() else []
    return words[0] if words else ""


def _make(
    settings: AgentSettings,
    sandbox: Sandbox,
    credentials: Mapping[str, str],
    *,
    redact: Callable[[str], str],
    holds: Holds,
) -> Agent:
    from windlass.adapters.agents.claude.agent import ClaudeAgent  # noqa: PLC0415

    return ClaudeAgent(settings, sandbox, credentials, redact=redact, holds=holds)


VENDOR: Final = Vendor(
    name="claude",
    make=_make,
    model="claude-sonnet-4-5",
    find_program=find_program,
    install=INSTALL,
    keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    logins=("CLAUDE_CODE_OAUTH_TOKEN",),
    address=ADDRESS,
    url=PROVIDER,
    wire="anthropic",
    co_author="Claude <noreply@anthropic.com>",
    provider="anthropic",
)
