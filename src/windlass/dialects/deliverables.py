"""Files that a plan says are to be there once a task is done: only those it names for certain.

A stage that is done is held to them, so what might be a pattern, a placeholder or a path outside
the project is left to the Coach.
"""

import re
from collections.abc import Iterable

HEADING = re.compile(r"(?:new\s+files|files?\s+to\s+(?:be\s+created?|create|add))", re.IGNORECASE)
"""The title of a list of files to create, and of nothing else."""

_UNCERTAIN = re.compile(r"[*?<>{}|…\\]|\.\.|^[/~$-]|://")


def certain(paths: Iterable[str]) -> tuple[str, ...]:
    """Those of the paths that name one file or folder of the project."""
    plain = (path.removeprefix("./") for path in paths)
    return tuple(dict.fromkeys(path for path in plain if path and not _UNCERTAIN.search(path)))
