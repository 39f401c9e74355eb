"""`windlass init --claude`: the skills of the Claude Code plugin as skills of one project.

Law: the text of a skill is only in the plugin's files. A file that a person has edited is theirs:
each file has a hash of what was written, and is replaced only if the hash still matches.
"""

import hashlib
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Literal

from msgspec import Struct

from windlass.app.wiring import Project

FLAG = "--claude"
"""The option of `windlass init` that writes them."""
HELP = "Write skills for Claude Code to .claude instead"
ABOUT = """\
With --claude, write skills for Claude Code to .claude/skills instead, such as /feature-build and
/windlass-run. A file there that you have edited stays as it is.
"""
NEXT = "/feature-build TASK-ID or /windlass-run PLAN in Claude Code"
"""The next step after they are written."""

_FOLDER = ".claude/skills"
_STAMP = re.compile(rf"<!-- written by windlass init {FLAG}; ([0-9a-f]{{16}}) -->\n\Z")
_OWN_NAME = frozenset({"feature-build"})
"""Skills that keep their name; the others are prefixed with windlass-."""


class Written(Struct, frozen=True):
    """The result for one file."""

    path: str
    how: Literal["wrote", "replaced", "same", "kept"]


def write_skills(project: Project, *, force: bool) -> list[Written]:
    """Write every skill, except those that a person has edited."""
    return [_write(project, path, text, force=force) for path, text in skills()]


def skills() -> Iterator[tuple[str, str]]:
    """Each skill's file in a project, and its text."""
    folder = files("windlass") / "claude_code" / "skills"
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        text = (entry / "SKILL.md").read_text(encoding="utf-8")
        name = _name(entry.name)
        own = text.replace(f"\nname: {entry.name}\n", f"\nname: {name}\n", 1)
        own = re.sub(r"/windlass:([a-z-]+)", lambda found: f"/{_name(found[1])}", own)
        yield f"{_FOLDER}/{name}/SKILL.md", f"{own.rstrip()}\n\n{_stamp(own)}"


def _name(skill: str) -> str:
    return skill if skill in _OWN_NAME else f"windlass-{skill}"


def _write(project: Project, path: str, text: str, *, force: bool) -> Written:
    there = project.files.read(path)
    if there == text:
        return Written(path, "same")
    if there is None and not project.files.is_free(path):
        return Written(path, "kept")  # a folder, a link, or not text: leave it
    if there is not None and not force and not _is_ours(there):
        return Written(path, "kept")
    project.files.write(path, text)
    return Written(path, "replaced" if there is not None else "wrote")


def _is_ours(text: str) -> bool:
    """Whether the file is unchanged since this or another version wrote it."""
    found = _STAMP.search(text)
    return found is not None and _stamp(text[: found.start()]) == found[0]


def _stamp(text: str) -> str:
    mark = hashlib.sha256(text.rstrip().encode()).hexdigest()[:16]
    return f"<!-- written by windlass init {FLAG}; {mark} -->\n"
