"""Where the file of a feature's task may lie: below the repository, and nowhere else."""

import re

from windlass.dialects.yaml_events import Keys

_MAX_PATH = 500
_STATES = ("backlog", "in_progress", "in_review", "design_approved", "blocked", "completed")
"""Folders of `tasks/` between which task files are moved as they go on, while the feature still
names the old one."""
_IN_STATE = re.compile(r"tasks/[^/]+/(?P<rest>.+)")
_FORBIDDEN = frozenset({"", ".", "..", ".git", ".windlass"})


def candidates(entry: Keys) -> tuple[str, ...]:
    """The path that the task names, then those it may have been moved to; none if it is unsafe."""
    path = _path(entry)
    if not _is_safe(path):
        return ()
    found = {path: None}
    moved = _IN_STATE.fullmatch(path)
    if moved is not None:
        leaf = path.rpartition("/")[2]
        for rest in dict.fromkeys((moved["rest"], leaf)):
            found.update({f"tasks/{state}/{rest}": None for state in _STATES})
    return tuple(found)


def why_not(entry: Keys) -> str:
    """Why there is no file to read."""
    path = _path(entry)
    if not path:
        return "the task names no file, so it is what stands here"
    if _is_safe(path):
        return f"{path} is not there, so the task is what stands here"
    return f"{path!r} is no Markdown file below the repository, so the task is what stands here"


def _path(entry: Keys) -> str:
    value = entry.get("file_path")
    return value.strip().removeprefix("./") if isinstance(value, str) else ""


def _is_safe(path: str) -> bool:
    parts = path.casefold().split("/")
    return (
        len(path) <= _MAX_PATH
        and path.isprintable()
        and "\\" not in path
        and parts[-1].endswith((".md", ".markdown"))
        and _FORBIDDEN.isdisjoint(parts)
    )
