"""Names of other tools' files, variables and metrics that Windlass must know.

They do not depend on the agent that runs: any repository or home may have them. The names that only
one vendor's agent needs are in its module below `adapters/agents`.
"""

from typing import Final

GUIDES: Final = ("CLAUDE.md", "AGENTS.md")
"""Files of a repository that say how to work in it; agents get the first that exists."""

PLAYER, COACH = ".claude/agents/autobuild-player.md", ".claude/agents/autobuild-coach.md"
"""Where another tool keeps the instructions of its Player and its Coach."""

AGENT_INSTRUCTIONS: Final = r"(^|/)(CLAUDE|AGENTS)\.md$|^\.claude/"
"""A pattern for files with instructions to agents."""

OWN_SETTINGS: Final = ".claude/settings.local.json"
"""A file that a tool keeps in a checkout for one person, and that is never committed."""

LOGINS: Final = (
    ".anthropic",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".local/share/opencode",
)
"""Where agents keep logins in a home directory."""

IN_AGENT: Final = (
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE",
    "CODEX_SANDBOX",
    "CURSOR_AGENT",
    "GEMINI_CLI",
    "OPENCODE",
)
"""Variables that agents set in the commands they run."""

TOKENS, COST = "claude.tokens", "claude.cost_usd"
"""The attributes that dashboards read for the tokens and the cost of a span."""
