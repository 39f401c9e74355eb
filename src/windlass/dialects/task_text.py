"""One task's Markdown file: what its frontmatter and its body say of the task.

Alone it is a plan, in a folder it is one task of several, and a feature refers to it; what it says
is read here, the same for all three.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NoReturn

from msgspec import Struct

from windlass.dialects import criteria, frontmatter, markdown
from windlass.dialects.deliverables import certain
from windlass.dialects.frontmatter import Frontmatter
from windlass.dialects.markdown import Block, Document, Field
from windlass.dialects.yaml_events import Data
from windlass.errors import PlanError
from windlass.plan import Note, Task

_BESIDE_ID = ("status", "task_type", "complexity", "priority")
"""One of these tells a task from a document that has an id for reasons of its own."""
_SPECIFICATION = "SPEC-"
"""What begins so is a specification, which has the same keys and is no task."""
_ID_LINE = re.compile(r"^(?:task_)?id[ \t]*:", re.MULTILINE)
_BESIDE_LINE = re.compile(rf"^(?:{'|'.join(_BESIDE_ID)})[ \t]*:", re.MULTILINE)
_WAVES = ("wave", "execution_wave", "parallel_group")
_WAVE = re.compile(
    r"(?:.*\bwave[-_ ]?|)(?P<number>[0-9]{1,4}(?:\.[0-9]{1,4})?)(?![0-9.]).*", re.IGNORECASE
)
_FILES = ("files", "files_to_create", "files_to_modify")
_DEPENDS = ("dependencies", "depends_on", "blocked_by")
_COMPLEXITY_WORDS = {
    "trivial": 1, "simple": 2, "low": 2, "small": 2, "medium": 5, "moderate": 5,
    "high": 8, "large": 8, "complex": 8,
}  # fmt: skip
"""The middle of GuardKit's bands: 1 to 3, 4 to 6, and from 7 on a person is asked first."""
_COMPLEXITY = re.compile(
    r"(?P<number>[0-9]{1,3})(?:\s*/\s*10)?(?:\s*\(.*\))?"
    r"|[A-Za-z][A-Za-z -]*\((?P<inside>[0-9]{1,3})(?:\s*/\s*10)?\)"
)
_NO_CHECKS = frozenset({"none", "n/a", "-"})
_NOTHING = frozenset({"", "none", "n/a", "na", "-", "nothing", "tbd"})
_SEPARATED = re.compile(r"\s*[,;]\s*")

MAX_COMPLEXITY = 10
DONE = frozenset(
    {"complete", "completed", "done", "finished", "merged", "closed", "review_complete"}
)
"""Words by which other tools mark a task as done."""


class Dependency(Struct, frozen=True):
    """A word that says what the task waits for, and where it stands."""

    word: str
    line: int


def id_in(data: Mapping[str, Data]) -> str | None:
    """The task's id by its frontmatter, where that is a text."""
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
    """Whether a frontmatter that cannot be read looks like a task's; the reading will say where."""
    return bool(_ID_LINE.search(text) and _BESIDE_LINE.search(text))


def is_a_tasks(data: Mapping[str, Data]) -> bool:
    """Whether these are the keys of a task's frontmatter."""
    if "id" not in data and not ("task_id" in data and "title" in data):
        return False  # a report about a task tells of which, but has no title of its own
    specified = (id_in(data) or "").startswith(_SPECIFICATION)
    return not specified and not data.keys().isdisjoint(_BESIDE_ID)


def is_done(status: Data) -> bool:
    """Whether the word marks a task as done."""
    return isinstance(status, str) and status.strip().casefold().replace("-", "_") in DONE


def names(value: Data) -> Iterator[str]:
    """The ids in a list or a text that says what to wait for."""
    for each in value if isinstance(value, list) else [value]:
        word = each.get("id", each.get("task")) if isinstance(each, dict) else each
        if isinstance(word, str):
            split = _SEPARATED.split(word.strip())
            several = all(len(part.split()) == 1 for part in split)
            for part in split if several else [word.strip()]:
                if part.casefold() not in _NOTHING:
                    yield part


def wave_in(value: Data) -> str | None:
    """The number of the wave in 2, 'wave 2', 'wave2-1' and '2A', if there is one."""
    found = _WAVE.fullmatch(value.strip()) if isinstance(value, str) else None
    return found["number"] if found else None


def complexity_in(value: str) -> int | None:
    """The number in '5', '5/10', '5 (medium)', 'Medium (5/10)' and 'medium', from 0 to 10."""
    if (word := value.strip().casefold()) in _COMPLEXITY_WORDS:
        return _COMPLEXITY_WORDS[word]
    found = _COMPLEXITY.fullmatch(value)
    number = int(found["number"] or found["inside"]) if found else MAX_COMPLEXITY + 1
    return number if number <= MAX_COMPLEXITY else None


class TaskText:
    """One reading of one text; it gathers notes on the way."""

    def __init__(self, path: str, text: str, front: Frontmatter | None, *, shown: str = "") -> None:
        self.path = path
        self.shown = shown
        """What notes name as their file: nothing where it is the plan's own."""
        self.front = front
        self.data = self.front.data if self.front else {}
        self.body = frontmatter.body(text)
        above = len(markdown.split_lines(text.removesuffix(self.body))) - 1
        # Blank lines for what stands above, so that lines count as in the file.
        self.document: Document = markdown.parse("\n" * above + self.body)
        self.notes: list[Note] = []

    def task(self, task_id: str) -> Task:
        """The task as it stands here, without its place among others."""
        title = self.word("title") or self.word("name") or self.heading() or task_id
        return Task(
            id=task_id,
            title=" ".join(title.split()),
            text=self.body.strip("\r\n"),
            acceptance_criteria=self.criteria(),
            files=self.files(*_FILES),
            creates=certain(self.files("files_to_create")),
            checks=self.checks(),
            complexity=self.complexity(),
            marked_done=is_done(self.data.get("status")),
            path=self.shown,
            line=1,  # not the body's, which moves whenever Windlass writes above it
        )

    def id(self) -> str:
        """The id, which must be there."""
        task_id = self.word("id") or self.word("task_id")
        if not task_id:
            raise PlanError("the task has no id", path=self.path, line=1, hint="write 'id: TASK-1'")
        return task_id

    def word(self, key: str) -> str:
        """The value of a key that may not be a list."""
        value = self.data.get(key)
        if isinstance(value, list | dict):
            self.refuse(key, "one word or sentence")
        return (value or "").strip()

    def heading(self) -> str:
        """The first heading."""
        headings = (block for block in self.document.blocks if block.kind == "heading")
        return next((block.text for block in headings), "")

    def complexity(self) -> int | None:
        """How complex the task is said to be, from 0 to 10."""
        value = self.word("complexity")
        if not value:
            return None
        number = complexity_in(value)
        if number is None:  # it decides whether a person must look first: no guessing
            self.refuse("complexity", f"a number from 0 to {MAX_COMPLEXITY}")
        return number

    def criteria(self) -> tuple[str, ...]:
        """The acceptance criteria."""
        found, beside = criteria.read(self.document, self.data.get("acceptance_criteria"))
        if beside:
            heading = self.document.lines[beside - 1].strip("# ")
            self.note(beside, f"{heading!r} are not read; 'Acceptance Criteria' are")
        return found

    def files(self, *keys: str) -> tuple[str, ...]:
        """Paths the frontmatter names under these keys."""
        named = (self.data.get(key) for key in keys)
        listed = (path for value in named if isinstance(value, list) for path in value)
        return tuple(dict.fromkeys(path for path in listed if isinstance(path, str) and path))

    def wave(self) -> str | None:
        """The number of the wave it belongs to, if it says so."""
        for key in _WAVES:
            value = self.data.get(key)
            if (number := wave_in(value)) is not None:
                return number
            if isinstance(value, str) and value.casefold() not in _NOTHING:
                self.note(self.line(key), f"{key!r} has no number, so it is no wave")
        return None

    def dependencies(self) -> Iterator[Dependency]:
        """What the frontmatter says the task waits for."""
        for key in _DEPENDS:
            for word in names(self.data.get(key)):
                yield Dependency(word, self.line(key))

    def checks(self) -> tuple[str, ...]:
        """The commands under `**Checks:**`; under `**Check:**` authors write what to look at."""
        for field in self.labelled("check"):
            self.note(field.line, "'Check' is not read; commands stand under '**Checks:**'")
        fields = self.labelled("checks")
        return tuple(command for field in fields for command in self.commands(field))

    def commands(self, field: Field) -> list[str]:
        """The commands of one field."""
        value = field.value()
        found = [span for line in value for span in markdown.code_spans(line)]
        for item in self.listed(tuple(field.below[:1])):
            found += markdown.code_spans(item)
        if not found and " ".join(value).strip().casefold() not in _NO_CHECKS:
            cure = "write each command in backticks, on the line or as a list, or 'none'"
            raise PlanError("'checks' has no command", path=self.path, line=field.line, hint=cure)
        return found

    def labelled(self, label: str) -> Iterator[Field]:
        """The fields under such a bold label."""
        fields = markdown.fields(self.document.blocks)
        return (field for field in fields if field.label == label and not field.level)

    def listed(self, blocks: tuple[Block, ...]) -> list[str]:
        """The items of the lists among these blocks."""
        return [text for item in markdown.items(blocks) if (text := self.document.item(item))]

    def line(self, key: str) -> int:
        """The line of a key that is there."""
        return self.front.line(key) if self.front else 1

    def note(self, line: int, text: str) -> None:
        """Say what was seen and not used."""
        self.notes.append(Note(line=line, text=text, path=self.shown))

    def refuse(self, key: str, wanted: str) -> NoReturn:
        """Refuse what stands under a key."""
        line = self.line(key)
        raise PlanError(f"{key!r} is not {wanted}", path=self.path, line=line, hint="mend it")
