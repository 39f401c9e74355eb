"""The task file dialect: one Markdown file whose frontmatter has an id is a plan of one task.

Dependencies in the frontmatter are noted and not used, because the plan has no other task.
"""

from collections.abc import Iterable
from typing import Final

from windlass.core.plan import Plan
from windlass.errors import PlanError
from windlass.formats import frontmatter, milestone
from windlass.formats.dialect import Source
from windlass.formats.taskfile.task import TaskText, id_in, is_meant

name: Final = "taskfile"


def recognises(source: Source) -> bool:
    """Whether the frontmatter is a task's, and no heading below it is a task."""
    text = source.text
    return text is not None and is_meant(source.path, text) and not milestone.has_task(text)


def parse(source: Source) -> Plan:
    """The plan of one task, as written."""
    text = source.text or ""
    front = frontmatter.read(source.path, text)
    if front is None:
        cure = "begin the file with '---', 'id: …' and '---'"
        raise PlanError("there is no frontmatter", path=source.path, line=1, hint=cure)
    read = TaskText(source.path, text, front)
    task = read.task(read.id())
    named = ((each.line, each.word) for each in read.dependencies())
    for line, words in _by_line(named).items():
        read.note(line, f"depends on {words}, which is ignored: a task file is a plan of one task")
    return Plan(
        id=task.id,
        title=task.title,
        dialect=name,
        path=source.path,
        tasks=(task,),
        notes=tuple(sorted(read.notes, key=lambda note: note.line)),
    )


def declared_id(path: str, text: str) -> str | None:
    """The id in the text's frontmatter, where it can be read."""
    try:
        found = frontmatter.read(path, text)
    except PlanError:
        return None
    return id_in(found.data) if found else None


def _by_line(named: Iterable[tuple[int, str]]) -> dict[int, str]:
    found: dict[int, str] = {}
    for line, word in named:
        found[line] = f"{found[line]}, {word}" if line in found else word
    return found
