"""The repository's instructions for agents, read from the user's checkout at each start."""

import os
import re
from pathlib import Path

from windlass.adapters.files import open_to_read
from windlass.core.other_tools import COACH, GUIDES, PLAYER

MAX_BYTES = 200_000
"""Longer files are not used."""

PLACES = {
    "player.md": (".windlass/player.md", PLAYER),
    "coach.md": (".windlass/coach.md", COACH),
    "e2e.md": (".windlass/e2e.md",),
    "conflict.md": (".windlass/conflict.md",),
    "partial.md": (".windlass/partial.md",),
    **{name: (name,) for name in GUIDES},
}
"""The paths of each text; the first that exists is used."""

_FRONTMATTER = re.compile(r"\A\ufeff?---\r?\n.*?^---\r?\n", re.DOTALL | re.MULTILINE)


def read_instructions(root: Path) -> dict[str, str]:
    """The texts that exist, by name, without their frontmatter."""
    found: dict[str, str] = {}
    for name, places in PLACES.items():
        texts = (_read(root, place) for place in places)
        text = next((text for text in texts if text), None)
        if text is not None:
            found[name] = text
    return found


def _read(root: Path, place: str) -> str:
    """A text of the repository; empty if it is a link that leads out of it.

    A task may have committed the link, and agents read the file that it leads to.
    """
    try:
        real = Path(os.path.realpath(root / place, strict=True))
        if not real.is_relative_to(root):
            return ""
        with open_to_read(real, inside=root) as file:
            content = file.read(MAX_BYTES + 1)
    except OSError:
        return ""
    if len(content) > MAX_BYTES:
        return ""
    text = content.decode(errors="replace").replace("\r\n", "\n")
    return _FRONTMATTER.sub("", text, count=1).strip()
