"""What a repository says to agents, read from the user's checkout at each start."""

import re
from pathlib import Path

from windlass.runner.briefs import GUIDES

MAX_BYTES = 200_000
"""A longer file is no guidance."""

PLACES = {
    "player.md": (".windlass/player.md", ".claude/agents/autobuild-player.md"),
    "coach.md": (".windlass/coach.md", ".claude/agents/autobuild-coach.md"),
    "e2e.md": (".windlass/e2e.md",),
    "conflict.md": (".windlass/conflict.md",),
    "partial.md": (".windlass/partial.md",),
    **{name: (name,) for name in GUIDES},
}
"""Where each text may stand; the first place that has one is taken."""

_FRONTMATTER = re.compile(r"\A\ufeff?---\r?\n.*?^---\r?\n", re.DOTALL | re.MULTILINE)


def said_to_agents(root: Path) -> dict[str, str]:
    """Every text that is there, by the name it goes under, without its frontmatter."""
    found: dict[str, str] = {}
    for name, places in PLACES.items():
        texts = (_read(root / place) for place in places)
        text = next((text for text in texts if text), None)
        if text is not None:
            found[name] = text
    return found


def _read(path: Path) -> str:
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return ""
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return _FRONTMATTER.sub("", text, count=1).strip()
