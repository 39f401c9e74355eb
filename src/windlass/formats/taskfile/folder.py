"""The task folder dialect: a folder of task files is a plan, and each file is a task.

Dependencies between these files count. Other dependencies, and other files in the folder, are noted
and not used.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from windlass.core.plan import Plan, Stage, Task
from windlass.errors import PlanError
from windlass.formats import frontmatter, waves
from windlass.formats.dialect import Source
from windlass.formats.frontmatter import Frontmatter
from windlass.formats.reading import Reader, natural_order, refuse_too_many
from windlass.formats.taskfile.task import TaskText, is_a_tasks, looks_meant, names
from windlass.formats.yaml import Data

name: Final = "taskfolder"

_MARKDOWN = re.compile(r".+\.(?:md|markdown)", re.IGNORECASE)
_LAYERED = re.compile(r"(?:.*/)?[0-9]-[^/]+/L[0-9]+-[0-9]+[^/]*", re.IGNORECASE)
"""A task in a layer's folder, which is the layers format."""
_REPORT = re.compile(
    r".*(?:report|summary|results?|plan|guide|readme|notes?|review|checklist|status)\.\w+",
    re.IGNORECASE,
)
"""A file about a task, if another file is the task."""
_LEADING_ID = re.compile(r"[A-Z0-9.]+(?:-[A-Z0-9.]+)*(?=-|\Z)")
_UNNAMED = frozenset({"dependencies", "depends_on", "parallel"})


def recognises(source: Source) -> bool:
    """Whether it is a folder with a task file in it, and without layers."""
    if source.text is not None or any(map(_LAYERED.fullmatch, source.texts)):
        return False
    return any(_is_meant(path, text) for path, text in source.texts.items())


def parse(source: Source) -> Plan:
    """The plan as written."""
    return _Reader(source).plan()


class _Reader(Reader):
    """Reads one folder."""

    def __init__(self, source: Source) -> None:
        super().__init__(source.path)
        self.source = source
        refuse_too_many(source.path, len(source.texts), "files")
        files = (self.file(path) for path in sorted(source.texts, key=natural_order))
        found = [read for read in files if read is not None]
        self.ids = {read.path: _id(read) for read in found}
        self.files: dict[str, str] = {}
        """The file of each task, by its id in lower case; reports are left out."""
        for read in found:
            if not _REPORT.fullmatch(read.path):
                self.files.setdefault(self.ids[read.path].casefold(), read.path)
        self.found = [read for read in found if not self.is_report(read)]
        self.known = _known(self.ids, self.found)

    def plan(self) -> Plan:
        tasks = [self.task(read) for read in self.found]
        numbers = {self.ids[read.path]: read.wave() for read in self.found}
        named = {task_id: number for task_id, number in numbers.items() if number is not None}
        staged, stages, notes = waves.in_waves(self.path, tasks, named)
        self.note_blocks({task.id: task for task in tasks})
        for read in self.found:
            notes += read.notes
        order = sorted(
            [*self.notes, *notes], key=lambda note: (natural_order(note.path), note.line)
        )
        return Plan(
            id="",
            title="",
            dialect=name,
            path=self.path,
            tasks=staged,
            stages=tuple(Stage(name=stage) for stage in stages),
            notes=tuple(order),
        )

    def file(self, path: str) -> TaskText | None:
        """The task in this file; None and a note where it has none."""
        text = self.source.texts[path]
        if not _MARKDOWN.fullmatch(path):
            why = "is not Markdown"
        elif (front := _front(path, text)) is None:
            why = "has no frontmatter"
        elif not (is_a_tasks(front.data) or _is_unnamed(front.data)):
            why = "has no task's frontmatter"
        else:
            return TaskText(path, text, front, shown=path)
        self.note(1, f"{why}, so it is not a task here", path)
        return None

    def is_report(self, read: TaskText) -> bool:
        """Whether the file is about a task that has a file of its own."""
        task_id = self.ids[read.path]
        own = self.files.get(task_id.casefold(), read.path)
        if own == read.path or not _REPORT.fullmatch(read.path):
            return False
        what = f"is about task {task_id}, whose file is {own}, so it is not a task here"
        self.note(1, what, read.path)
        return True

    def task(self, read: TaskText) -> Task:
        ids: dict[str, None] = {}
        for each in read.dependencies():
            if (known := _resolved(each.word, self.known)) is not None:
                ids[known] = None
            else:
                read.note(
                    each.line, f"depends on {each.word!r}, which is not in this folder: ignored"
                )
        return replace(read.task(self.ids[read.path]), depends_on=tuple(ids))

    def note_blocks(self, tasks: Mapping[str, Task]) -> None:
        """Note each `blocks` whose order no task declares."""
        for read in self.found:
            task_id = self.ids[read.path]
            for word in names(read.data.get("blocks")):
                other = _resolved(word, self.known)
                if other is not None and task_id not in tasks[other].depends_on:
                    cure = f"write 'depends_on: {task_id}' in {other}"
                    read.note(read.line("blocks"), f"'blocks' is not read: {cure}")


def _is_meant(path: str, text: str) -> bool:
    if not _MARKDOWN.fullmatch(path):
        return False
    try:
        front = frontmatter.read(path, text)
    except PlanError:
        return looks_meant(text)
    return front is not None and (is_a_tasks(front.data) or _is_unnamed(front.data))


def _front(path: str, text: str) -> Frontmatter | None:
    """The file's frontmatter; one that cannot be read is an error only in a task file."""
    try:
        return frontmatter.read(path, text)
    except PlanError:
        if looks_meant(text):
            raise
        return None


def _is_unnamed(data: Mapping[str, Data]) -> bool:
    """Whether it is a task whose id is the name of its file."""
    has_id = "id" in data or "task_id" in data
    return not has_id and "status" in data and not _UNNAMED.isdisjoint(data)


def _id(read: TaskText) -> str:
    if not _is_unnamed(read.data):
        return read.id()
    stem = _stem(read.path)
    found = _LEADING_ID.match(stem)
    task_id = found.group() if found else stem
    read.note(1, f"has no id; the name of the file makes it {task_id}")
    return task_id


def _known(ids: Mapping[str, str], found: list[TaskText]) -> dict[str, str]:
    """Each id by its possible spellings; the most certain spelling is last and wins."""
    known: dict[str, str] = {}
    for read in found:
        known[_stem(read.path).casefold()] = ids[read.path]
    for read in found:
        known[ids[read.path].casefold().lstrip("0")] = ids[read.path]
    for read in found:
        known[ids[read.path].casefold()] = ids[read.path]
    return known


def _resolved(word: str, known: Mapping[str, str]) -> str | None:
    """The task that a word names, also with an aside after it."""
    for said in (word, *word.split(maxsplit=1)[:1]):
        plain = said.strip("`*#[]():,").casefold().removesuffix(".md")
        if found := known.get(plain) or known.get(plain.lstrip("0") or plain):
            return found
    return None


def _stem(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[0]
