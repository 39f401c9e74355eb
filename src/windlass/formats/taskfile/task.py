"""One task's Markdown file: what its frontmatter and its body say about the task.

A task file is a plan by itself, one task of a folder, or a task of a feature. All three are read
here.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NoReturn

from msgspec import Struct

from windlass.core.plan import Task
from windlass.errors import PlanError
from windlass.formats import criteria, frontmatter, markdown
from windlass.formats.frontmatter import Frontmatter
from windlass.formats.markdown import Field
from windlass.formats.reading import Reader
from windlass.formats.words import (
    MAX_COMPLEXITY,
    NOTHING,
    certain_paths,
    complexity_in,
    is_done,
)
from windlass.formats.yaml import Data

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
_UNKNOWN = NOTHING | {"", "tbd"}
"""Dependencies and waves that name nothing, at least not yet."""
_SEPARATED = re.compile(r"\s*[,;]\s*")


class Dependency(Struct, frozen=True):
    """The word for a task that must be done first, and its line."""

    word: str
    line: int


def id_in(data: Mapping[str, Data]) -> str | None:
    """The task's id in its frontmatter, where that is a text."""
    value = data.get("id", data.get("task_id"))
    return value.strip() if isinstance(value, str) else None


def is_meant(path: str, text: str) -> bool:
    """Whether the text's frontmatter is a task's."""
    try:
        found = frontmatter.read(path, text)
    except PlanError:
        return looks_meant(text)
    return found is not None and is_a_tasks(found.data)


def looks_meant(text: str) -> bool:
    """Whether a frontmatter that cannot be read looks like a task's."""
    return bool(_ID_LINE.search(text) and _BESIDE_LINE.search(text))


def is_a_tasks(data: Mapping[str, Data]) -> bool:
    """Whether these are the keys of a task's frontmatter."""
    if "id" not in data and not ("task_id" in data and "title" in data):
        return False  # a report about a task names it, but has no title
    specified = (id_in(data) or "").startswith(_SPECIFICATION)
    return not specified and not data.keys().isdisjoint(_BESIDE_ID)


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
    """Reads one text."""

    def __init__(self, path: str, text: str, front: Frontmatter | None, *, shown: str = "") -> None:
        super().__init__(path)
        self.shown = shown
        """The file that notes name; empty for the plan's own."""
        self.front = front
        self.data = self.front.data if self.front else {}
        self.body, self.document = frontmatter.parse_body(text)

    def task(self, task_id: str) -> Task:
        """The task as its file describes it, without dependencies and stage."""
        title = self.word("title") or self.word("name") or self.heading() or task_id
        return Task(
            id=task_id,
            title=" ".join(title.split()),
            text=self.body.strip("\r\n"),
            acceptance_criteria=self.criteria(),
            files=self.files(*_FILES),
            creates=certain_paths(self.files("files_to_create")),
            checks=self.checks(),
            complexity=self.complexity(),
            marked_done=is_done(self.data.get("status")),
            path=self.shown,
            line=1,  # the body's line changes when Windlass writes above it
        )

    def id(self) -> str:
        """The id; a task must have one."""
        task_id = self.word("id") or self.word("task_id")
        if not task_id:
            self.refuse(1, "the task has no id", "write 'id: TASK-1'")
        return task_id

    def word(self, key: str) -> str:
        """The value of a key that must not be a list."""
        value = self.data.get(key)
        if isinstance(value, list | dict):
            self.refuse_key(key, "one word or sentence")
        return (value or "").strip()

    def heading(self) -> str:
        """The first heading."""
        headings = (block for block in self.document.blocks if block.kind == "heading")
        return next((block.text for block in headings), "")

    def complexity(self) -> int | None:
        """The declared complexity, from 0 to 10."""
        value = self.word("complexity")
        if not value:
            return None
        number = complexity_in(value)
        if number is None:  # it decides whether a person is asked first, so it is not guessed
            self.refuse_key("complexity", f"a number from 0 to {MAX_COMPLEXITY}")
        return number

    def criteria(self) -> tuple[str, ...]:
        """The acceptance criteria."""
        found, beside = criteria.read(self.document, self.data.get("acceptance_criteria"))
        if beside:
            heading = self.document.lines[beside - 1].strip("# ")
            self.note(beside, f"{heading!r} are not read; 'Acceptance Criteria' are")
        return found

    def files(self, *keys: str) -> tuple[str, ...]:
        """The paths in the frontmatter under these keys."""
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
                self.note(self.line(key), f"{key!r} has no number, so it is not a wave")
        return None

    def dependencies(self) -> Iterator[Dependency]:
        """The dependencies in the frontmatter."""
        for key in _DEPENDS:
            for word in names(self.data.get(key)):
                yield Dependency(word, self.line(key))

    def checks(self) -> tuple[str, ...]:
        """The commands under `**Checks:**`; under `**Check:**` authors write prose."""
        for field in self.labelled("check"):
            self.note(field.line, "'Check' is not read; write commands under '**Checks:**'")
        fields = self.labelled("checks")
        return tuple(command for field in fields for command in self.commands(field))

    def commands(self, field: Field) -> list[str]:
        """The commands of one field."""
        value = field.value()
        found = [span for line in value for span in markdown.code_spans(line)]
        for item in self.document.listed(field.below[:1]):
            found += markdown.code_spans(item)
        if not found and " ".join(value).strip().casefold() not in NOTHING:
            cure = "write each command in backticks, on the line or as a list, or 'none'"
            self.refuse(field.line, "'checks' has no command", cure)
        return found

    def labelled(self, label: str) -> Iterator[Field]:
        """The fields with this bold label."""
        fields = markdown.fields(self.document.blocks)
        return (field for field in fields if field.label == label and not field.level)

    def line(self, key: str) -> int:
        """The line of an existing key."""
        return self.front.line(key) if self.front else 1

    def note(self, line: int, text: str, path: str = "") -> None:
        """Say of a line that it was seen and not used."""
        super().note(line, text, path or self.shown)

    def refuse_key(self, key: str, wanted: str) -> NoReturn:
        """Refuse the value of a key."""
        self.refuse(self.line(key), f"{key!r} is not {wanted}", f"write {wanted}")
