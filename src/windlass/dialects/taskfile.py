"""The task file dialect: one Markdown file whose frontmatter has an id is a plan of one task.

What the frontmatter says of other tasks is noted and binds nobody, for there are none here.
"""

import re
from collections.abc import Iterator
from typing import Final, NoReturn

from windlass.dialects import frontmatter, markdown, milestone, taskfile_state
from windlass.dialects.dialect import Dialect, Source
from windlass.dialects.frontmatter import Frontmatter
from windlass.dialects.markdown import Block, Document, Field
from windlass.errors import PlanError
from windlass.plan import Note, Plan, Task

name: Final = "taskfile"

_CRITERIA = "acceptance criteria"
_BESIDE_ID = ("status", "task_type", "complexity", "priority")
"""One of these tells a task from a document that has an id for reasons of its own."""
_SPECIFICATION = "SPEC-"
"""What begins so is a specification, which has the same keys and is no task."""
_ID_LINE = re.compile(r"^id[ \t]*:", re.MULTILINE)
_BESIDE_LINE = re.compile(rf"^(?:{'|'.join(_BESIDE_ID)})[ \t]*:", re.MULTILINE)
_MAX_COMPLEXITY = 10
_NO_CHECKS = frozenset({"none", "n/a", "-"})


def recognises(source: Source) -> bool:
    """Whether the frontmatter is a task's, and no heading below it is one too."""
    text = source.text
    return text is not None and is_meant(source.path, text) and not milestone.has_task(text)


def parse(source: Source) -> Plan:
    """The plan of one task, as written."""
    return _Reader(source.path, source.text or "").plan()


def declared_id(path: str, text: str) -> str | None:
    """The id in the text's frontmatter, where there is one that can be read."""
    try:
        found = frontmatter.read(path, text)
    except PlanError:
        return None
    value = found.data.get("id") if found else None
    return value if isinstance(value, str) else None


def is_meant(path: str, text: str) -> bool:
    """Whether the text's frontmatter is a task's."""
    try:
        found = frontmatter.read(path, text)
    except PlanError:
        # It cannot be read, and the reading will say where; until then its lines must do.
        return bool(_ID_LINE.search(text) and _BESIDE_LINE.search(text))
    data = found.data if found else {}
    task_id = data.get("id", _SPECIFICATION)
    specified = isinstance(task_id, str) and task_id.startswith(_SPECIFICATION)
    return not specified and not data.keys().isdisjoint(_BESIDE_ID)


class _Reader:
    """One reading of one text."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        found = frontmatter.read(path, text)
        if found is None:
            cure = "begin the file with '---', 'id: …' and '---'"
            raise PlanError("there is no frontmatter", path=path, line=1, hint=cure)
        self.front: Frontmatter = found
        self.data = found.data
        self.body = frontmatter.body(text)
        above = len(markdown.split_lines(text[: found.body])) - 1
        # Blank lines for what stands above, so that lines count as in the file.
        self.document: Document = markdown.parse("\n" * above + self.body)

    def plan(self) -> Plan:
        task_id = self.word("id")
        if not task_id:
            raise PlanError("the task has no id", path=self.path, line=1, hint="write 'id: TASK-1'")
        title = self.word("title") or self.heading() or task_id
        task = Task(
            id=task_id,
            title=" ".join(title.split()),
            text=self.body.strip("\r\n"),
            acceptance_criteria=self.criteria(),
            checks=self.checks(),
            complexity=self.complexity(),
            line=1,  # not the body's, which moves whenever Windlass writes above it
        )
        return Plan(
            id=task_id,
            title=task.title,
            dialect=name,
            path=self.path,
            tasks=(task,),
            notes=tuple(sorted(self.notes(), key=lambda note: note.line)),
        )

    def word(self, key: str) -> str:
        value = self.data.get(key)
        if isinstance(value, list | dict):
            self.refuse(key, "one word or sentence")
        return (value or "").strip()

    def heading(self) -> str:
        headings = (block for block in self.document.blocks if block.kind == "heading")
        return next((block.text for block in headings), "")

    def complexity(self) -> int | None:
        value = self.word("complexity")
        if not value:
            return None
        number = int(value) if re.fullmatch("[0-9]{1,3}", value) else _MAX_COMPLEXITY + 1
        if number > _MAX_COMPLEXITY:  # it decides whether a person must look first: no guessing
            self.refuse("complexity", f"a number from 0 to {_MAX_COMPLEXITY}")
        return number

    def criteria(self) -> tuple[str, ...]:
        """The items under the headings of that name, else under bold labels, else as data."""
        found: list[str] = []
        stop = 0
        for section in self.document.sections(lambda _text: False):
            if markdown.label_of(section.heading.text) == _CRITERIA and section.start > stop:
                stop = section.stop
                # Labels in bold and deeper headings only divide what stands here.
                found += self.listed(self.document.blocks[section.start : stop])
        for field in () if found else self.labelled(_CRITERIA):
            found += self.listed(tuple(field.below))
        listed = self.data.get("acceptance_criteria")
        if not found and isinstance(listed, list):
            found = [item.strip() for item in listed if isinstance(item, str) and item.strip()]
        return tuple(found)

    def checks(self) -> tuple[str, ...]:
        return tuple(
            command
            for label in ("checks", "check")
            for field in self.labelled(label)
            for command in self.commands(field)
        )

    def commands(self, field: Field) -> list[str]:
        value = field.value()
        found = [span for line in value for span in markdown.code_spans(line)]
        for item in self.listed(tuple(field.below[:1])):
            found += markdown.code_spans(item)
        if not found and " ".join(value).strip().casefold() not in _NO_CHECKS:
            cure = "write each command in backticks, on the line or as a list, or 'none'"
            raise PlanError("'checks' has no command", path=self.path, line=field.line, hint=cure)
        return found

    def labelled(self, label: str) -> Iterator[Field]:
        fields = markdown.fields(self.document.blocks)
        return (field for field in fields if field.label == label and not field.level)

    def listed(self, blocks: tuple[Block, ...]) -> list[str]:
        return [text for item in markdown.items(blocks) if (text := self.document.item(item))]

    def notes(self) -> Iterator[Note]:
        for key in ("dependencies", "depends_on"):
            value = self.data.get(key)
            named = value if isinstance(value, list) else [value]
            words = ", ".join(each for each in named if isinstance(each, str) and each.strip())
            if words:
                told = f"depends on {words}; a task file is a plan of one task and waits for none"
                yield Note(line=self.front.line(key), text=told)

    def refuse(self, key: str, wanted: str) -> NoReturn:
        line = self.front.line(key)
        raise PlanError(f"{key!r} is not {wanted}", path=self.path, line=line, hint="mend it")


TASKFILE = Dialect(
    name=name,
    recognises=recognises,
    parse=parse,
    writes=lambda plan: (plan.path,),
    shares=lambda plan: (plan.path,),
    project=taskfile_state.project,
    claims=taskfile_state.claims,
)
