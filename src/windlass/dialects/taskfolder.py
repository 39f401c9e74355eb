"""The folder dialect: a folder of task files is a plan, each file a task with its own frontmatter.

Dependencies between these files bind; on anything else they are noted and bind nobody. Whatever
else lies in the folder is noted and not read.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from windlass.dialects import frontmatter, taskfile_state, waves
from windlass.dialects.dialect import Dialect, Source
from windlass.dialects.frontmatter import Frontmatter
from windlass.dialects.task_text import TaskText, is_a_tasks, looks_meant, names
from windlass.dialects.yaml_events import Data
from windlass.errors import PlanError
from windlass.plan import Note, Plan, Stage, Task
from windlass.plan.graph import MAX_TASKS

name: Final = "taskfolder"

_MARKDOWN = re.compile(r".+\.(?:md|markdown)", re.IGNORECASE)
_LAYERED = re.compile(r"(?:.*/)?[0-9]-[^/]+/L[0-9]+-[0-9]+[^/]*", re.IGNORECASE)
"""A task in a layer's folder, which is another format."""
_REPORT = re.compile(
    r".*(?:report|summary|results?|plan|guide|readme|notes?|review|checklist|status)\.\w+",
    re.IGNORECASE,
)
"""A file that is about a task, where another file is the task."""
_LEADING_ID = re.compile(r"[A-Z0-9.]+(?:-[A-Z0-9.]+)*(?=-|\Z)")
_UNNAMED = frozenset({"dependencies", "depends_on", "parallel"})
_DIGITS = re.compile(r"([0-9]+)")


def recognises(source: Source) -> bool:
    """Whether it is a folder with a task's file in it, and not one of layers."""
    if source.text is not None or any(map(_LAYERED.fullmatch, source.texts)):
        return False
    return any(_is_meant(path, text) for path, text in source.texts.items())


def parse(source: Source) -> Plan:
    """The plan as written."""
    return _Reader(source).plan()


class _Reader:
    """One reading of one folder; it gathers notes on the way."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.notes: list[Note] = []
        if len(source.texts) > MAX_TASKS:
            cure = "make several plans of it"
            raise PlanError(f"more than {MAX_TASKS:,} files", path=source.path, hint=cure)
        files = (self.file(path) for path in sorted(source.texts, key=_natural))
        found = [read for read in files if read is not None]
        self.ids = {read.path: _id(read) for read in found}
        self.files: dict[str, str] = {}
        """The file of each task, by its id in lower case, where one is no report by its name."""
        for read in found:
            if not _REPORT.fullmatch(read.path):
                self.files.setdefault(self.ids[read.path].casefold(), read.path)
        self.found = [read for read in found if not self.is_report(read)]
        self.known = _known(self.ids, self.found)

    def plan(self) -> Plan:
        tasks = [self.task(read) for read in self.found]
        numbers = {self.ids[read.path]: read.wave() for read in self.found}
        named = {task_id: number for task_id, number in numbers.items() if number is not None}
        staged, stages, notes = waves.in_waves(self.source.path, tasks, named)
        self.note_blocks({task.id: task for task in tasks})
        for read in self.found:
            notes += read.notes
        order = sorted([*self.notes, *notes], key=lambda note: (_natural(note.path), note.line))
        return Plan(
            id="",
            title="",
            dialect=name,
            path=self.source.path,
            tasks=staged,
            stages=tuple(Stage(name=stage) for stage in stages),
            notes=tuple(order),
        )

    def file(self, path: str) -> TaskText | None:
        """The task's file that this is, or a note that it is none."""
        text = self.source.texts[path]
        if not _MARKDOWN.fullmatch(path):
            why = "is no Markdown"
        elif (front := _front(path, text)) is None:
            why = "has no frontmatter"
        elif not (is_a_tasks(front.data) or _is_unnamed(front.data)):
            why = "has no task's frontmatter"
        else:
            return TaskText(path, text, front, shown=path)
        self.notes.append(Note(line=1, text=f"{why}, so it is no task here", path=path))
        return None

    def is_report(self, read: TaskText) -> bool:
        """Whether the file is about a task that another file is."""
        task_id = self.ids[read.path]
        own = self.files.get(task_id.casefold(), read.path)
        if own == read.path or not _REPORT.fullmatch(read.path):
            return False
        told = f"is about task {task_id}, whose file is {own}, so it is no task here"
        self.notes.append(Note(line=1, text=told, path=read.path))
        return True

    def task(self, read: TaskText) -> Task:
        ids: dict[str, None] = {}
        for each in read.dependencies():
            if (known := _resolved(each.word, self.known)) is not None:
                ids[known] = None
            else:
                told = f"depends on {each.word!r}, which is not in this folder, so it binds nobody"
                read.note(each.line, told)
        return replace(read.task(self.ids[read.path]), depends_on=tuple(ids))

    def note_blocks(self, tasks: Mapping[str, Task]) -> None:
        """Say where `blocks` asks for an order that no task declares."""
        for read in self.found:
            task_id = self.ids[read.path]
            for word in names(read.data.get("blocks")):
                other = _resolved(word, self.known)
                if other is not None and task_id not in tasks[other].depends_on:
                    told = f"'blocks' is not read: write 'depends_on: {task_id}' in {other}"
                    read.note(read.line("blocks"), told)


def _is_meant(path: str, text: str) -> bool:
    if not _MARKDOWN.fullmatch(path):
        return False
    try:
        front = frontmatter.read(path, text)
    except PlanError:
        return looks_meant(text)
    return front is not None and (is_a_tasks(front.data) or _is_unnamed(front.data))


def _front(path: str, text: str) -> Frontmatter | None:
    """The file's frontmatter; one that cannot be read is only refused where it is a task's."""
    try:
        return frontmatter.read(path, text)
    except PlanError:
        if looks_meant(text):
            raise
        return None


def _is_unnamed(data: Mapping[str, Data]) -> bool:
    """Whether it is a task whose id is its file's name."""
    has_id = "id" in data or "task_id" in data
    return not has_id and "status" in data and not _UNNAMED.isdisjoint(data)


def _id(read: TaskText) -> str:
    if not _is_unnamed(read.data):
        return read.id()
    stem = _stem(read.path)
    found = _LEADING_ID.match(stem)
    task_id = found.group() if found else stem
    read.note(1, f"has no id; its file's name makes it {task_id}")
    return task_id


def _known(ids: Mapping[str, str], found: list[TaskText]) -> dict[str, str]:
    """Each id by the spellings others may use for it, the surest last."""
    known: dict[str, str] = {}
    for read in found:
        known[_stem(read.path).casefold()] = ids[read.path]
    for read in found:
        known[ids[read.path].casefold().lstrip("0")] = ids[read.path]
    for read in found:
        known[ids[read.path].casefold()] = ids[read.path]
    return known


def _resolved(word: str, known: Mapping[str, str]) -> str | None:
    """The task that is meant, also with an aside after it."""
    for said in (word, *word.split(maxsplit=1)[:1]):
        plain = said.strip("`*#[]():,").casefold().removesuffix(".md")
        if found := known.get(plain) or known.get(plain.lstrip("0") or plain):
            return found
    return None


def _stem(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[0]


def _natural(path: str) -> list[tuple[int, str]]:
    """A key by which 2 comes before 10."""
    parts: Iterator[str] = iter(_DIGITS.split(path))
    return [(int(part[:9]), part) if part.isdecimal() else (-1, part) for part in parts]


TASKFOLDER = Dialect(
    name=name,
    recognises=recognises,
    parse=parse,
    writes=taskfile_state.writes,
    shares=taskfile_state.writes,
    project=taskfile_state.project,
)
