"""Task files: Markdown files whose frontmatter has an id.

One such file is a plan of one task, a folder of them is a plan, and the tasks of a feature may have
such files; all three are read here. Dependencies between the files of a folder count. All other
dependencies, and other files in the folder, are noted and not used.
"""

import re
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from windlass.core.plan import Plan, Stage, Task
from windlass.errors import PlanError
from windlass.formats import criteria, frontmatter, markdown, milestone, waves
from windlass.formats.dialect import Source
from windlass.formats.frontmatter import Frontmatter
from windlass.formats.markdown import Field
from windlass.formats.reading import Reader, natural_order, refuse_too_many
from windlass.formats.words import NOTHING, certain_paths, is_done
from windlass.formats.yaml import Data, Keys

_BESIDE_ID = ("status", "task_type", "complexity", "priority")
"""A document with an id and one of these keys is a task."""
_SPECIFICATION = "SPEC-"
"""The start of a specification's id; it has the same keys and is not a task."""
_ID_LINE = re.compile(r"^(?:task_)?id[ \t]*:", re.MULTILINE)
_BESIDE_LINE = re.compile(rf"^(?:{'|'.join(_BESIDE_ID)})[ \t]*:", re.MULTILINE)
_WAVES = ("wave", "execution_wave", "parallel_group")
_WAVE = re.compile(
    r"(?:.*\bwave[-_ ]?|)(?P<number>[0-9]{1,4}(?:\.[0-9]{1,4})?)(?![0-9.]).*", re.IGNORECASE
)
_FILES = ("files", "files_to_create", "files_to_modify")
_DEPENDS = ("dependencies", "depends_on", "blocked_by")
_KEYS = frozenset({
    "id", "task_id", "title", "name", "acceptance_criteria", "blocks", *_BESIDE_ID, *_WAVES,
    *_FILES, *_DEPENDS,
})  # fmt: skip
"""Every key that is read."""
_UNKNOWN = NOTHING | {"", "tbd"}
"""Dependencies and waves that name nothing, at least not yet."""
_SEPARATED = re.compile(r"\s*[,;]\s*")

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


def id_in(data: Mapping[str, Data]) -> str | None:
    value = data.get("id", data.get("task_id"))
    return value.strip() if isinstance(value, str) else None


def declared_id(path: str, text: str) -> str | None:
    """The id in the text's frontmatter, where it can be read."""
    return id_in(frontmatter.keys(path, text) or Keys(1))


def has_task_head(path: str, text: str, *, in_folder: bool = False) -> bool:
    """Whether the text's frontmatter is a task's; in a folder the file's name may be its id."""
    try:
        found = frontmatter.read(path, text)
    except PlanError:
        # It cannot be read. Does it look like a task's?
        return bool(_ID_LINE.search(text) and _BESIDE_LINE.search(text))
    if found is None:
        return False
    return _is_a_tasks(found.data) or (in_folder and _is_unnamed(found.data))


def _is_a_tasks(data: Keys) -> bool:
    if "id" not in data and not ("task_id" in data and "title" in data):
        return False  # a report about a task names it, but has no title
    specified = (id_in(data) or "").startswith(_SPECIFICATION)
    return not specified and not data.keys().isdisjoint(_BESIDE_ID)


def _is_unnamed(data: Keys) -> bool:
    has_id = "id" in data or "task_id" in data
    return not has_id and "status" in data and not _UNNAMED.isdisjoint(data)


def names(value: Data) -> Iterator[str]:
    """The ids in a list or a text of dependencies."""
    for each in value if isinstance(value, list) else [value]:
        word = each.get("id", each.get("task")) if isinstance(each, dict) else each
        if isinstance(word, str):
            split = _SEPARATED.split(word.strip())
            several = all(len(part.split()) == 1 for part in split)
            for part in split if several else [word.strip()]:
                if part.casefold() not in _UNKNOWN:
                    yield part


def wave_in(value: Data) -> str | None:
    """The number of the wave in 2, 'wave 2', 'wave2-1' and '2A', if there is one."""
    found = _WAVE.fullmatch(value.strip()) if isinstance(value, str) else None
    return found["number"] if found else None


class TaskText(Reader):
    """Reads one task file."""

    def __init__(self, path: str, text: str, front: Frontmatter | None, *, shown: str = "") -> None:
        super().__init__(path, shown)
        self.data = front.data if front else Keys(1)
        self.body, self.document = frontmatter.parse_body(text)
        self.warn_of_keys(self.data, _KEYS)

    def task(self, task_id: str) -> Task:
        """The task as its file describes it, without dependencies and stage."""
        headings = (block.text for block in self.document.blocks if block.kind == "heading")
        named = self.word(self.data, "title") or self.word(self.data, "name")
        title = named or next(headings, "") or task_id
        return Task(
            id=task_id,
            title=" ".join(title.split()),
            text=self.body.strip("\r\n"),
            acceptance_criteria=self.criteria(),
            files=self.files(*_FILES),
            creates=certain_paths(self.files("files_to_create")),
            checks=self.checks(),
            complexity=self.complexity(self.data),
            marked_done=is_done(self.data.get("status")),
            path=self.shown,
            line=1,  # the body's line changes when Windlass writes above it
        )

    def id(self) -> str:
        task_id = self.word(self.data, "id") or self.word(self.data, "task_id")
        if not task_id:
            self.refuse(1, "the task has no id", "write 'id: TASK-1'")
        return task_id

    def criteria(self) -> tuple[str, ...]:
        found, beside = criteria.read(self.document, self.data.get("acceptance_criteria"))
        if beside:
            heading = self.document.lines[beside - 1].strip("# ")
            self.note(beside, f"{heading!r} are not read; 'Acceptance Criteria' are")
        for line, written, meant in criteria.slips(self.document):
            self.warn(line, f"{written!r} is not read", f"did you mean {meant!r}?")
        return found

    def files(self, *keys: str) -> tuple[str, ...]:
        named = (self.data.get(key) for key in keys)
        listed = (path for value in named if isinstance(value, list) for path in value)
        return tuple(dict.fromkeys(path for path in listed if isinstance(path, str) and path))

    def wave(self) -> str | None:
        """The number of its wave, if it names one."""
        for key in _WAVES:
            value = self.data.get(key)
            if (number := wave_in(value)) is not None:
                return number
            if isinstance(value, str) and value.casefold() not in _UNKNOWN:
                self.note(self.data.lines[key], f"{key!r} has no number, so it is not a wave")
        return None

    def dependencies(self) -> Iterator[tuple[str, int]]:
        """Each dependency in the frontmatter, with its line."""
        for key in _DEPENDS:
            for word in names(self.data.get(key)):
                yield word, self.data.lines[key]

    def checks(self) -> tuple[str, ...]:
        """The commands under `**Checks:**`; under `**Check:**` authors write prose."""
        for field in self.labelled("check"):
            self.note(field.line, "'Check' is not read; write commands under '**Checks:**'")
        for field in markdown.fields(self.document.blocks):
            if not field.level and field.label != "check":
                self.warn_of_label(field.line, field.label, ("Checks",), "**{}:**")
        return tuple(each for field in self.labelled("checks") for each in self.commands(field))

    def commands(self, field: Field) -> list[str]:
        value = field.value()
        found = [span for line in value for span in markdown.code_spans(line)]
        for item in self.document.listed(field.below[:1]):
            found += markdown.code_spans(item)
        if not found and " ".join(value).strip().casefold() not in NOTHING:
            cure = "write each command in backticks, on the line or as a list, or 'none'"
            self.error(field.line, "'checks' has no command", cure)
        return found

    def labelled(self, label: str) -> Iterator[Field]:
        fields = markdown.fields(self.document.blocks)
        return (field for field in fields if field.label == label and not field.level)


# One file


def is_file(source: Source) -> bool:
    """Whether the frontmatter is a task's, and no heading below it is a task."""
    text = source.text
    return text is not None and has_task_head(source.path, text) and not milestone.has_task(text)


def parse_file(source: Source) -> Plan:
    text = source.text or ""
    front = frontmatter.read(source.path, text)
    if front is None:
        cure = "begin the file with '---', 'id: …' and '---'"
        raise PlanError("there is no frontmatter", path=source.path, line=1, hint=cure)
    read = TaskText(source.path, text, front)
    task = read.task(read.id())
    ignored: dict[int, list[str]] = {}
    for word, line in read.dependencies():
        ignored.setdefault(line, []).append(word)
    for line, words in ignored.items():
        what = f"depends on {', '.join(words)}, which is ignored: a task file is a plan of one task"
        read.note(line, what)
    return Plan(
        id=task.id,
        title=task.title,
        dialect="taskfile",
        path=source.path,
        tasks=(task,),
        notes=read.sorted_notes(),
    )


# A folder


def is_folder(source: Source) -> bool:
    """Whether it is a folder with a task file in it, and without layers."""
    if source.text is not None or any(map(_LAYERED.fullmatch, source.texts)):
        return False
    files = source.texts.items()
    return any(
        _MARKDOWN.fullmatch(path) and has_task_head(path, text, in_folder=True)
        for path, text in files
    )


def parse_folder(source: Source) -> Plan:
    return _Folder(source).plan()


class _Folder(Reader):
    def __init__(self, source: Source) -> None:
        super().__init__(source.path)
        self.source = source
        refuse_too_many(source.path, len(source.texts), "files")
        self.ids: dict[str, str] = {}
        """The id of each file's task."""
        files = (self.file(path) for path in sorted(source.texts, key=natural_order))
        found = [read for read in files if read is not None]
        self.files: dict[str, str] = {}
        """The file of each task, by its id in lower case; reports are left out."""
        for read in found:
            if not _REPORT.fullmatch(read.path):
                self.files.setdefault(self.ids[read.path].casefold(), read.path)
        self.found = [read for read in found if not self.is_report(read)]
        ids = {read.path: self.ids[read.path] for read in self.found}
        self.known = {
            # The most certain spelling is last and wins.
            **{_stem(path).casefold(): task_id for path, task_id in ids.items()},
            **{task_id.casefold().lstrip("0"): task_id for task_id in ids.values()},
            **{task_id.casefold(): task_id for task_id in ids.values()},
        }
        """Each id by its possible spellings."""

    def plan(self) -> Plan:
        tasks = [self.task(read) for read in self.found]
        numbers = {self.ids[read.path]: read.wave() for read in self.found}
        named = {task_id: number for task_id, number in numbers.items() if number is not None}
        staged, stages, notes = waves.in_waves(tasks, named)
        self.note_blocks({task.id: task for task in tasks})
        notes += [*self.notes, *(note for read in self.found for note in read.notes)]
        return Plan(
            id="",
            title="",
            dialect="taskfolder",
            path=self.path,
            tasks=staged,
            stages=tuple(Stage(name=stage) for stage in stages),
            notes=tuple(sorted(notes, key=lambda note: (natural_order(note.path), note.line))),
        )

    def file(self, path: str) -> TaskText | None:
        """The task in this file; None and a note where it has none."""
        text = self.source.texts[path]
        if not _MARKDOWN.fullmatch(path):
            why = "is not Markdown"
        elif has_task_head(path, text, in_folder=True):
            return self.readable(path, text)
        else:
            unread = frontmatter.keys(path, text) is None
            why = "has no frontmatter" if unread else "has no task's frontmatter"
        self.note(1, f"{why}, so it is not a task here", path)
        return None

    def readable(self, path: str, text: str) -> TaskText | None:
        """The task of a task's file; None and an error where that cannot be read."""
        try:
            read = TaskText(path, text, frontmatter.read(path, text), shown=path)
            self.ids[path] = _id(read)
        except PlanError as error:
            self.notes += error.findings
            return None
        return read

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
        for word, line in read.dependencies():
            if (known := self.resolved(word)) is not None:
                ids[known] = None
            else:
                read.note(line, f"depends on {word!r}, which is not in this folder: ignored")
        return replace(read.task(self.ids[read.path]), depends_on=tuple(ids))

    def note_blocks(self, tasks: Mapping[str, Task]) -> None:
        """Note each `blocks` whose order no task declares."""
        for read in self.found:
            task_id = self.ids[read.path]
            for word in names(read.data.get("blocks")):
                other = self.resolved(word)
                if other is not None and task_id not in tasks[other].depends_on:
                    cure = f"write 'depends_on: {task_id}' in {other}"
                    read.note(read.data.lines["blocks"], f"'blocks' is not read: {cure}")

    def resolved(self, word: str) -> str | None:
        """The task that a word names, also with an aside after it."""
        for spelling in (word, *word.split(maxsplit=1)[:1]):
            plain = spelling.strip("`*#[]():,").casefold().removesuffix(".md")
            if found := self.known.get(plain) or self.known.get(plain.lstrip("0") or plain):
                return found
        return None


def _id(read: TaskText) -> str:
    if not _is_unnamed(read.data):
        return read.id()
    stem = _stem(read.path)
    found = _LEADING_ID.match(stem)
    task_id = found.group() if found else stem
    read.note(1, f"has no id; the name of the file makes it {task_id}")
    return task_id


def _stem(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[0]
