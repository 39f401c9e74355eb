"""The feature dialect: a YAML file that lists tasks, the files they stand in, and their waves.

The YAML says which tasks there are and in what order; a task's own file says what it is. Where that
file is not there the YAML's words must do, and the plan says so.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NoReturn

from msgspec.structs import replace

from windlass.dialects import feature_files, frontmatter, taskfile_state, waves, yaml_events
from windlass.dialects.dialect import Dialect, Source
from windlass.dialects.feature_gates import gates
from windlass.dialects.task_text import (
    MAX_COMPLEXITY,
    TaskText,
    complexity_in,
    is_done,
    names,
    wave_in,
)
from windlass.dialects.yaml_events import Data, Keys
from windlass.errors import PlanError
from windlass.plan import Note, Plan, Stage, Task
from windlass.plan.graph import MAX_TASKS

name: Final = "feature"

_YAML = re.compile(r".+\.ya?ml", re.IGNORECASE)
_ID_LINE = re.compile(r"""^["']?(?:id|feature_id)["']?[ \t]*:""", re.MULTILINE)
_TASKS_LINE = re.compile(r"""^["']?tasks["']?[ \t]*:""", re.MULTILINE)
_FEATURE_LINE = re.compile(
    r"""^(?:orchestration|waves|parallel_groups|smoke_gates)[ \t]*:|^[ \t-]*file_path[ \t]*:"""
    r"""|^(?:feature_)?id[ \t]*:[ \t]*["']?FEAT\b""",
    re.MULTILINE,
)
_ANY_ID = re.compile(r"""\bid["']?[ \t]*:""")

# What is read, and what only keeps books; all else is noted.
_READ = frozenset({
    "id", "feature_id", "name", "title", "description", "tasks", "orchestration", "waves",
    "parallel_groups", "smoke_gates",
    "created", "updated", "status", "original_status", "complexity", "estimated_tasks", "execution",
    "progress", "completed_tasks", "total_tasks", "parent_review", "superseded_note",
})  # fmt: skip
_TASK_READ = frozenset({
    "id", "name", "title", "file_path", "complexity", "dependencies", "depends_on", "description",
    "acceptance_criteria", "note", "wave", "status",
    "task_type", "implementation_mode", "estimated_minutes", "actual_minutes", "completed",
    "actual_duration_minutes", "result", "turns_completed", "current_turn", "started_at",
    "completed_at", "conductor_workspace",
})  # fmt: skip


def recognises(source: Source) -> bool:
    """Whether the file is YAML that lists the tasks of a feature."""
    text = source.text
    if text is None or not (_ID_LINE.search(text) and _TASKS_LINE.search(text)):
        return False
    if not _FEATURE_LINE.search(text):
        return False
    if _YAML.fullmatch(source.path):
        return True  # what is wrong with it the reading will say
    try:
        return isinstance(_read(source.path, text).get("tasks"), list)
    except PlanError:
        return False  # Markdown, say, that shows such a file


def parse(source: Source) -> Plan:
    """The plan as written."""
    return _Reader(source).plan()


def refers_to(source: Source) -> tuple[str, ...]:
    """The files that the tasks may stand in."""
    try:
        data = _read(source.path, source.text or "")
    except PlanError:
        return ()
    listed = data.get("tasks")
    entries = (
        (each for each in listed if isinstance(each, Keys)) if isinstance(listed, list) else ()
    )
    return tuple(dict.fromkeys(path for each in entries for path in feature_files.candidates(each)))


@lru_cache(maxsize=1)
def _read(path: str, text: str) -> Keys:
    """The data, which nobody changes; remembered, for a plan is asked about and then read."""
    if len(_ANY_ID.findall(text)) > MAX_TASKS * 2:  # a criterion or two may have one as well
        cure = "make several plans of it"
        raise PlanError(f"more than {MAX_TASKS:,} tasks", path=path, hint=cure)
    return yaml_events.read(path, text)


class _Reader:
    """One reading of one file; it gathers notes on the way."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.data = _read(source.path, source.text or "")
        listed = self.data.get("tasks")
        if not isinstance(listed, list):
            self.refuse(self.data.lines.get("tasks", 1), "'tasks' is no list", "list the tasks")
        self.entries = [self.entry(each) for each in listed]
        self.ids = {self.id(entry).casefold(): self.id(entry) for entry in self.entries}
        self.owners: dict[str, str] = {}
        """Which task each file was read for."""
        self.notes: list[Note] = []

    def plan(self) -> Plan:
        tasks = [self.task(entry) for entry in self.entries]
        staged, names_, notes = waves.in_waves(self.source.path, tasks, self.waves())
        stages, more = gates(self.data, names_)
        self.notes += [*notes, *more, *self.unread()]
        own = sorted((n for n in self.notes if not n.path), key=lambda note: note.line)
        return Plan(
            id=self.word(self.data, "id") or self.word(self.data, "feature_id"),
            title=self.word(self.data, "name") or self.word(self.data, "title"),
            dialect=name,
            path=self.source.path,
            tasks=staged,
            stages=tuple(Stage(name=each, checks=stages.get(each, ())) for each in names_),
            notes=(*own, *(note for note in self.notes if note.path)),
        )

    # A task

    def task(self, entry: Keys) -> Task:
        task_id = self.id(entry)
        title = self.word(entry, "name") or self.word(entry, "title")
        read = self.file(entry, task_id)
        task = read.task(task_id) if read else self.without_file(entry, task_id, title)
        number = self.complexity(entry)
        if read:
            self.compare(entry, read)
            self.notes += read.notes
        return replace(
            task,
            title=title or task.title,
            depends_on=tuple(dict.fromkeys(self.named(entry))),
            complexity=task.complexity if number is None else number,
            marked_done=task.marked_done or is_done(entry.get("status")),
            line=task.line if read else entry.line,
        )

    def file(self, entry: Keys, task_id: str) -> TaskText | None:
        """The task's own file, as far as it is there."""
        paths = feature_files.candidates(entry)
        path = next((each for each in paths if each in self.source.texts), None)
        line = entry.lines.get("file_path", entry.line)
        if path is None:
            self.note(line, feature_files.why_not(entry))
            return None
        if path in self.owners:
            what = f"tasks {self.owners[path]!r} and {task_id!r} have the same file"
            self.refuse(line, what, "give each task a file of its own")
        self.owners[path] = task_id
        if path != paths[0]:
            self.note(line, f"the file of {task_id} is not there any more, but {path} is")
        text = self.source.texts[path]
        try:
            return TaskText(path, text, frontmatter.read(path, text), shown=path)
        except PlanError as error:
            told = "the frontmatter cannot be read; only what stands below it is"
            self.notes.append(Note(line=error.line, text=told, path=path))
            return TaskText(path, text, None, shown=path)

    def without_file(self, entry: Keys, task_id: str, title: str) -> Task:
        said = [self.word(entry, "description"), self.word(entry, "note")]
        whole = self.word(self.data, "description")
        if whole:
            said.append(f"It is a part of this feature: {whole}")
        criteria = entry.get("acceptance_criteria")
        listed = criteria if isinstance(criteria, list) else [criteria]
        return Task(
            id=task_id,
            title=title or task_id,
            text="\n\n".join([title or task_id, *filter(None, said)]),
            acceptance_criteria=tuple(
                c.strip() for c in listed if isinstance(c, str) and c.strip()
            ),
        )

    def compare(self, entry: Keys, read: TaskText) -> None:
        """Say where the task's file says something else."""
        task_id = self.id(entry)
        other = read.data.get("id", task_id)
        if other != task_id:
            read.note(read.line("id"), f"the feature calls this task {task_id}, not {other}")
        named = {each.casefold() for each in self.named(entry)}
        for each in read.dependencies():
            if each.word.casefold() not in named:
                told = (
                    f"depends on {each.word!r}, of which the feature says nothing; it binds nobody"
                )
                read.note(each.line, told)

    def named(self, entry: Keys) -> Iterator[str]:
        """The tasks it waits for, as they are spelt here; others the graph will refuse by name."""
        for key in ("dependencies", "depends_on"):
            for word in names(entry.get(key)):
                yield self.ids.get(word.casefold(), word)

    def complexity(self, entry: Keys) -> int | None:
        value = self.word(entry, "complexity")
        number = complexity_in(value)
        if value and number is None:
            wanted = f"a number from 0 to {MAX_COMPLEXITY}"
            self.refuse(entry.lines["complexity"], f"'complexity' is not {wanted}", "mend it")
        return number

    # Waves

    def waves(self) -> dict[str, str]:
        """The number of each task's wave, by the groups or else by the tasks themselves."""
        inner = self.data.get("orchestration")
        places = [each for each in (inner, self.data) if isinstance(each, Keys)]
        groups = [
            (place.lines[key], place[key])
            for key in ("parallel_groups", "waves")
            for place in places
            if place.get(key)
        ]
        for line, _ in groups[1:]:
            self.note(line, f"the waves on line {groups[0][0]} are read, and these are not")
        if groups:
            return self.grouped(*groups[0])
        found = {self.id(each): wave_in(each.get("wave")) for each in self.entries}
        return {task_id: number for task_id, number in found.items() if number is not None}

    def grouped(self, line: int, groups: Data) -> dict[str, str]:
        found: dict[str, str] = {}
        for number, group in _numbered(groups):
            for word in names(group):
                task_id = self.ids.get(word.casefold())
                if task_id is None:
                    what = f"wave {number} has {word!r}, which is no task of this feature"
                    self.refuse(line, what, "mend the id, or list the task")
                if found.setdefault(task_id, number) != number:
                    what = f"task {task_id!r} is in waves {found[task_id]} and {number}"
                    self.refuse(line, what, "keep it in one of them")
        return found

    # What the file has, and what it lacks

    def unread(self) -> Iterator[Note]:
        for key, line in self.data.lines.items():
            if key not in _READ and self.data[key]:
                yield Note(line=line, text=f"{key!r} is not read")
        seen: set[str] = set()
        for entry in self.entries:
            for key, line in entry.lines.items():
                if key not in _TASK_READ and key not in seen and entry[key]:
                    seen.add(key)
                    yield Note(line=line, text=f"{key!r} of a task is not read")
            if entry.get("implementation_mode") == "manual":
                told = (
                    "is to be done by hand, it says; Windlass gives it to an agent like any other"
                )
                yield Note(line=entry.lines["implementation_mode"], text=told)

    def entry(self, value: Data) -> Keys:
        if not isinstance(value, Keys):
            line = self.data.lines["tasks"]
            self.refuse(line, f"{value!r} among the tasks is none", "write 'id: …' and 'name: …'")
        return value

    def id(self, entry: Keys) -> str:
        task_id = self.word(entry, "id")
        if not task_id:
            self.refuse(entry.line, "the task has no id", "write 'id: TASK-1'")
        return task_id

    def word(self, data: Keys, key: str) -> str:
        value = data.get(key)
        if isinstance(value, list | dict):
            self.refuse(data.lines[key], f"{key!r} is not one word or sentence", "mend it")
        return (value or "").strip()

    def note(self, line: int, text: str) -> None:
        self.notes.append(Note(line=line, text=text))

    def refuse(self, line: int, what: str, cure: str) -> NoReturn:
        raise PlanError(what, path=self.source.path, line=line, hint=cure)


def _numbered(groups: Data) -> Iterator[tuple[str, Data]]:
    """Each group with its wave's number: the one it says, else its place."""
    listed = groups.items() if isinstance(groups, dict) else enumerate(_all(groups), 1)
    for place, (key, group) in enumerate(listed, 1):
        said, members = wave_in(key) if isinstance(key, str) else None, group
        if isinstance(group, dict):
            said = wave_in(group.get("wave")) or said
            members = group.get("tasks")
        yield said or str(place), members


def _all(value: Data) -> list[Data]:
    return value if isinstance(value, list) else [value]


FEATURE = Dialect(
    name=name,
    recognises=recognises,
    parse=parse,
    refers_to=refers_to,
    writes=taskfile_state.writes,
    shares=taskfile_state.writes,
    project=taskfile_state.project,
)
