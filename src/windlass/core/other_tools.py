"""Names that other tools gave to files, variables and figures, where Windlass must know them.

They say nothing of which agent plays: a repository may have them, and a user's home, whoever works
there. A vendor's own names are in its module below `adapters/agents`.
"""

from typing import Final

GUIDES: Final = ("CLAUDE.md", "AGENTS.md")
"""Files of a repository that say how to work in it; the first that is there is quoted to agents."""

PLAYER, COACH = ".claude/agents/autobuild-player.md", ".claude/agents/autobuild-coach.md"
"""Where another tool keeps what it tells its Player and its Coach."""

TELLS_AGENTS: Final = r"(^|/)(CLAUDE|AGENTS)\.md$|^\.claude/"
"""Files by which agents are told what to do, as a pattern."""

OWN_SETTINGS: Final = ".claude/settings.local.json"
"""What one person's tool keeps in a checkout, and never commits."""

LOGINS: Final = (
    ".anthropic",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".local/share/opencode",
)
"""Where agents keep logins in a home."""

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
"""What dashboards call the tokens and the cost of a span."""
