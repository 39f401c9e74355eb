"""The milestone dialect, which is also Windlass's own: every rule about its headings and fields.

A task is a top-level heading `Task <id>: <title>`, as Markdown finds it, and its fields are read
from its own section only. What looks like a field and cannot be used is an error where it would
change what is done, else a note. Nothing is dropped silently.

A heading may have a box or a symbol before the word `Task`, and an aside in brackets after the id.
With either, the id must have a number, because such a heading may only speak of tasks.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from windlass.core.plan import Plan, Task
from windlass.formats import markdown
from windlass.formats.dialect import Source
from windlass.formats.markdown import Block, Field, Section
from windlass.formats.reading import Reader
from windlass.formats.slips import label_slip
from windlass.formats.words import MAX_COMPLEXITY, NOTHING, complexity_in

name: Final = "milestone"

_TASK = re.compile(
    r"(?P<mark>\[[ x~]?\]\s*|[^\w\s]+\s+)?Task\s+(?P<id>\S+?)"
    r"(?:(?:\s*(?P<aside>\([^()]*\)|\[[^\[\]]*\]))?"
    r"(?P<separator>\s*[:：]\s*|\s+[-–—]\s+)|$)(?P<title>.*)",  # noqa: RUF001
    re.IGNORECASE,
)
_MAYBE = re.compile(
    r"(?:^|\r)[^\w\r\n]*(?:\[x\][^\w\r\n]*)?Task\s+(?:\S*[0-9:：]|\S+\s+[-–—:：])",  # noqa: RUF001
    re.IGNORECASE | re.MULTILINE,
)
"""A text without such a line has no task, and need not be parsed."""
_BOLD = re.compile(r"(?:\[x\])?\W*\*\*", re.IGNORECASE)
_STRUCK = re.compile(r"(?:\[x\])?\W*~~", re.IGNORECASE)
_TICKED = re.compile(r"\[x\]|[✅✓✔☑]", re.IGNORECASE)
_NEARLY = re.compile(r"(?:\[x\])?\W*Task\s+\S*[0-9]", re.IGNORECASE)
_LIKE_TASK = re.compile(
    r"(?P<mark>\[[ x~]?\]\s*|[^\w\s]+\s+)?(?:(?P<word>[A-Za-z]{3,6})\s+|Task)"
    r"(?=[A-Za-z]{0,3}[0-9][\w.-]*(?:\s*[:：]|\s+[-–—]\s))",  # noqa: RUF001
    re.IGNORECASE,
)
"""A heading that would be a task's if its first word were `Task `."""
_WITHOUT_ID = re.compile(r"(?:\[x\])?\W*Task\s*[:：]\W*\w", re.IGNORECASE)  # noqa: RUF001
# 'Task Summary: …' is about tasks; it is not a task called Summary.
_NOT_AN_ID = frozenset({
    "breakdown", "categories", "complete", "completed", "completion", "context", "dependencies",
    "description", "details", "frontmatter", "graph", "group", "groups", "id", "ids", "index",
    "list", "management", "notes", "order", "organization", "overview", "progress", "sequence",
    "specification", "status", "summary", "table", "template", "workflow",
})  # fmt: skip


def task_in(text: str) -> re.Match[str] | None:
    """The parts of a task's heading, or None; the whole heading may be bold."""
    found = _TASK.fullmatch(text.replace("**", "") if _BOLD.match(text) else text)
    if found is None or found["id"].casefold() in _NOT_AN_ID:
        return None
    # 'Task 3' is a task and 'Task Force' is not; '✅ Task 3: …' is and '✅ Task Goals: …' is not.
    plain = found["separator"] and not found["mark"] and not found["aside"]
    return found if plain or re.search("[0-9]", found["id"]) else None


def title_of(found: re.Match[str]) -> str:
    """The task's title, with its aside."""
    return " ".join(filter(None, (found["title"], found["aside"])))


def is_ticked(found: re.Match[str]) -> bool:
    """Whether the heading says that the task is done."""
    return _TICKED.match(found["mark"] or found["aside"] or "") is not None


def why_none(text: str) -> str:
    """Why a heading that looks like a task is not one; empty where it does not look like one."""
    if _WITHOUT_ID.match(text):
        return "it has no id: write 'Task 1.1: …'"
    if not _NEARLY.match(text):
        return ""
    return "is struck out" if _STRUCK.match(text) else "no ':' or ' - ' follows its id"


def slip_of_task(text: str) -> str:
    """The heading of a task that this heading is a slip of; empty where it is none."""
    found = _LIKE_TASK.match(text)
    if found is None or (found["word"] and label_slip(found["word"], ("Task",)) is None):
        return ""
    return f"{found['mark'] or ''}Task {text[found.end() :]}"


_MAX_TURNS = 100

_Fields = dict[str, list[Field]]
_Draft = tuple[Task, tuple[str, ...] | None]
"""A task, and its declared dependencies: None where it declares nothing."""

_CRITERIA = "acceptance criteria"
_FIELDS = (
    "Acceptance Criteria", "Depends on", "File", "Files", "Checks", "Absent checks",
    "Removes tests", "Complexity", "Stage", "Model", "Max turns",
)  # fmt: skip
"""The fields of a task, as they are written."""
_SYNONYMS = {"files": "file", "check": "checks"}

_HEADING_LINE = re.compile(r"[ \t>*+\-0-9.)]*#{1,6}[ \t](?P<text>.*)")
_INNER_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[ \t]*\w")
_E2E = re.compile(r"(?:E2E|End[- ]to[- ]End)\b", re.IGNORECASE)
_MILESTONE = re.compile(r"\AMilestone\s*:\s*(?=\S)", re.IGNORECASE)
_PLAIN = re.compile(
    r"(?:(?P<depends>Depends[ \t]+on)|Acceptance[ \t]+Criteria(?=[ \t]*:[ \t]*$))[ \t]*:"
    r"(?P<rest>.*)",
    re.IGNORECASE,
)
_CROWDED = re.compile(r" {0,3}(?P<marks>#{1,6})(?P<text>Task[ \t]+\S*[0-9].*)", re.IGNORECASE)
"""A heading without the space that Markdown wants after its marks."""
_SEPARATORS = re.compile(r"[,;&]|\b(?:and|or)\b", re.IGNORECASE)
_ASIDE = re.compile(r"\([^()]*\)")
_TASK_WORD = re.compile(r"Tasks?\s+", re.IGNORECASE)
_NUMBER = re.compile(r"(?P<number>[0-9]{1,3})(?:\s*\([^()]*\))?\.?")
_ANYTHING = re.compile(r".+")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]*")
_SKIP = re.compile(r"skip", re.IGNORECASE)
_DASH = re.compile(r"\s[-–—]\s")  # noqa: RUF001

_NO = NOTHING | {"no", "false"}
_NOT_A_PATH = NOTHING | {"tbd", "etc", "various", "multiple", "several", "new"}
_WHERE = {
    "fence": "code block", "code": "indented code", "html": "HTML", "quote": "quotation",
    "list": "list", "paragraph": "paragraph", "underlined": "paragraph",
    "frontmatter": "frontmatter",
}  # fmt: skip


def recognises(source: Source) -> bool:
    """Whether it is one file with a task's heading outside code."""
    return source.text is not None and has_task(source.text)


def has_task(text: str) -> bool:
    """Whether there is a task's heading outside code."""
    if not _MAYBE.search(text):
        return False
    return any(task_in(each.heading.text) for each in markdown.parse(text).sections(task_in))


def parse(source: Source) -> Plan:
    """The plan as written."""
    return _Reader(source.path, source.text or "").plan()


class _Reader(Reader):
    """Reads one text."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(path)
        self.document = markdown.parse(text)
        self.sections = self.document.sections(task_in)
        tasks = ((section, task_in(section.heading.text)) for section in self.sections)
        self.tasks = [(section, found) for section, found in tasks if found]
        self.ids = {found["id"].casefold(): found["id"] for _, found in self.tasks}

    def plan(self) -> Plan:
        tasks = self.in_order([self.draft(*task) for task in self.tasks])
        scenarios = self.scenarios() if tasks else []
        checks = self.plan_checks(scenarios) if tasks else ()
        self.note_look_alikes()
        self.warn_of_headings()
        self.warn_of_fields()
        return Plan(
            id="",
            title=self.title(),
            dialect=name,
            path=self.path,
            tasks=tasks,
            stops_on_failure=True,
            checks=checks,
            e2e=next((body for each in scenarios if (body := self.document.body(each))), None),
            notes=self.sorted_notes(),
        )

    # A task's fields

    def draft(self, section: Section, found: re.Match[str]) -> _Draft:
        blocks = self.document.blocks[section.start : section.stop]
        fields = _by_label(blocks)
        self.warn_of_plain_labels(blocks)
        task = Task(
            id=found["id"],
            title=title_of(found),
            text=self.document.body(section),
            acceptance_criteria=self.criteria(fields),
            files=self.files(fields["file"]),
            checks=self.checks(fields["checks"]),
            skip_absent=self.once(fields, "absent checks", _SKIP, "'skip'") is not None,
            removes_tests=self.removes_tests(fields["removes tests"]),
            complexity=self.complexity_of(fields),
            stage=self.once(fields, "stage", _ANYTHING, "a name, such as '2'"),
            model=self.once(fields, "model", _MODEL, "a model's name"),
            max_turns=self.max_turns(fields),
            marked_done=is_ticked(found),
            line=section.heading.first,
        )
        return task, self.depends_on(fields["depends on"])

    def criteria(self, fields: _Fields) -> tuple[str, ...]:
        texts: list[str] = []
        for field in fields[_CRITERIA]:
            prose = [*field.text, *(block.text for block in field.below)]
            texts += self.document.listed(field.below) or ["\n".join(prose).strip()]
        if not texts and (other := fields["success criteria"]):
            # They may describe the result of a scenario, so they bind no task.
            self.note(other[0].line, "'Success Criteria' are not read; 'Acceptance Criteria' are")
        return tuple(text for text in texts if text)

    def files(self, fields: Iterable[Field]) -> tuple[str, ...]:
        paths: dict[str, None] = {}
        for field in fields:
            for line in field.value() or self.document.listed(field.below[:1]):
                paths.update(dict.fromkeys(_paths(line.split("\n")[0])))
        return tuple(paths)

    def checks(self, fields: Iterable[Field]) -> tuple[str, ...]:
        return tuple(command for field in fields for command in self.commands(field))

    def commands(self, field: Field) -> list[str]:
        value = field.value()
        found = [span for line in value for span in markdown.code_spans(line)]
        for item in self.document.listed(field.below[:1]):
            first, *more = item.split("\n")
            spans = markdown.code_spans(first)
            if value and not spans:  # below a value it is more likely to be prose
                self.note(
                    field.line, f"{first!r} below 'Checks' is not in backticks, so it is not read"
                )
            elif more and not spans:
                self.field_error(field, f"{first!r} in backticks, or without lines below it")
            else:
                found += spans or [first]
        if not found and NOTHING.isdisjoint(" ".join(value).casefold().split()[:1]):
            self.field_error(
                field, "each command in backticks, on the line or as a list, or 'none'"
            )
        return found

    def removes_tests(self, fields: Sequence[Field]) -> bool:
        """Whether the task removes tests: `yes`, or their names; not with `no` or `none`."""
        values = [[*field.value(), *self.document.listed(field.below[:1])] for field in fields]
        for field, lines in zip(fields, values, strict=True):
            if not lines:
                self.field_error(field, "'yes', or the tests to remove, or 'no'")
        words = (line.strip("`. ").casefold() for lines in values for line in lines)
        return any(word not in _NO for word in words)

    def complexity_of(self, fields: _Fields) -> int | None:
        wanted = f"a number from 0 to {MAX_COMPLEXITY}"
        value = self.once(fields, "complexity", _ANYTHING, wanted)
        if value is None:
            return None
        number = complexity_in(value.rstrip("."))
        if number is None:
            self.field_error(fields["complexity"][0], wanted)
        return number

    def max_turns(self, fields: _Fields) -> int | None:
        wanted = f"a number from 1 to {_MAX_TURNS}"
        value = self.once(fields, "max turns", _NUMBER, wanted)
        if value is None:
            return None
        number = int(next(_NUMBER.finditer(value))["number"])
        if not 1 <= number <= _MAX_TURNS:
            self.field_error(fields["max turns"][0], wanted)
        return number

    def once(
        self, fields: _Fields, label: str, allowed: re.Pattern[str], wanted: str
    ) -> str | None:
        """The value of a field that a task may have once."""
        if not fields[label]:
            return None
        field, *more = fields[label]
        if more:
            self.field_error(more[0], f"it once; line {field.line} has it already")
        value = next(iter(field.value()), "").strip("` ")
        if not allowed.fullmatch(value):
            self.field_error(field, wanted)
            return None
        return value

    def depends_on(self, fields: Iterable[Field]) -> tuple[str, ...] | None:
        ids: dict[str, None] = {}
        declared = False
        for field in fields:
            value = field.value()
            lines = [
                *value,
                *(item.split("\n")[0] for item in self.document.listed(field.below[:1])),
            ]
            if not lines:
                self.field_error(field, "the ids of tasks, such as '1.1, 1.2', or 'none'")
            for unread in field.text[len(value) :] if field.text[0] else ():
                self.note(field.line, f"{unread!r} below 'Depends on' is not read")
            for named in (named for line in lines for named in self.referred(field, line)):
                declared = True
                ids.update(dict.fromkeys(named))
        return tuple(ids) if declared else None

    def referred(self, field: Field, line: str) -> Iterator[tuple[str, ...]]:
        """The ids that each part of the line names; a part that is prose is noted instead."""
        for part in _SEPARATORS.split(_ASIDE.sub("()", line)):
            text = part.replace("()", "").strip(" \t.`*[]#\"'")
            after = _TASK_WORD.match(text)
            word, *rest = text[after.end() if after else 0 :].split(maxsplit=1) or [""]
            word = word.rstrip(":`*]")
            if word.casefold() in NOTHING:
                yield ()
            elif known := self.ids.get(word.casefold()):
                yield (known,)
                if rest:
                    self.note(field.line, f"of {text!r} in 'Depends on' only {known!r} is read")
            elif after or (word and not rest and "()" not in part):
                yield (word,)  # an id of no task here: the graph refuses it by name
            elif part.strip():
                self.note(field.line, f"{line!r} in 'Depends on' names no task of this plan")

    # The plan's own parts

    def title(self) -> str:
        """The first heading of level 1, unless a task comes first."""
        first = self.tasks[0][0].start if self.tasks else len(self.document.blocks) + 1
        titles = (each for each in self.sections if each.level == 1 and each.start < first)
        text = next((each.heading.text.replace("\n", " ") for each in titles), "")
        return _MILESTONE.sub("", text)

    def in_order(self, drafts: Sequence[_Draft]) -> tuple[Task, ...]:
        """Each task with its declared dependencies, else after the whole stage before its own.

        Stages come in order of appearance; without stages, each task is a stage of its own.
        """
        staged = any(task.stage for task, _ in drafts)
        stage: str | None = None
        keys: list[object] = []
        members: dict[object, list[str]] = {}
        for index, (task, _) in enumerate(drafts):
            if stage and not task.stage:
                self.note(
                    task.line, f"names no stage, so it joins {stage!r} like the task before it"
                )
            stage = task.stage or stage
            keys.append(stage if staged else index)
            members.setdefault(keys[-1], []).append(task.id)
        before = dict(zip(list(members)[1:], map(tuple, members.values()), strict=False))
        return tuple(
            replace(
                task,
                stage=key if isinstance(key, str) else None,
                depends_on=before.get(key, ()) if declared is None else declared,
            )
            for key, (task, declared) in zip(keys, drafts, strict=True)
        )

    def scenarios(self) -> list[Section]:
        """The plan's E2E sections; the first with text is the plan's scenario."""
        found: list[Section] = []
        owned = scenario = 0  # the ends of the last task's section and of the last scenario
        for section in self.sections:
            if task_in(section.heading.text):
                owned = section.stop
            elif not _E2E.match(section.heading.text) or section.start <= scenario:
                continue
            elif section.start <= owned:
                self.note(section.heading.first, "an E2E section inside a task belongs to the task")
            else:
                found.append(section)
                scenario = section.stop
        for section in found[1:]:
            self.note(section.heading.first, "only the first E2E section is the plan's scenario")
        return found

    def plan_checks(self, scenarios: Iterable[Section]) -> tuple[str, ...]:
        """The checks named before the first task, outside any scenario."""
        free = dict(enumerate(self.document.blocks))
        for section in (*(section for section, _ in self.tasks), *scenarios):
            for index in range(section.start - 1, section.stop):
                free.pop(index, None)
        first = self.tasks[0][0].start
        early = _by_label(block for index, block in free.items() if index < first)
        late = _by_label(block for index, block in free.items() if index >= first)
        for field in (*early["depends on"], *late["depends on"]):
            self.note(
                field.line, "'Depends on' is read in tasks only; a plan depends on no other plan"
            )
        for field in early[_CRITERIA]:
            self.note(field.line, "'Acceptance Criteria' are read in tasks only")
        begins = [section.heading.first for section, _ in self.tasks]
        for field in late[_CRITERIA]:
            section, task = self.tasks[bisect_right(begins, field.line) - 1]
            ended = f"task {task['id']} ends at line {self.document.blocks[section.stop].first}"
            self.note(field.line, f"'Acceptance Criteria' are read in tasks only; {ended}")
        for field in late["checks"]:
            self.note(field.line, "'Checks' are read in tasks and before the first task only")
        return self.checks(early["checks"])

    # Notes and errors

    def warn_of_fields(self) -> None:
        """Warn of labels that are slips of a field, and of headings that are slips of criteria.

        Also outside tasks: the heading above them may be a slip of a task's.
        """
        for label, found in _by_label(self.document.blocks).items():
            for field in found:
                self.warn_of_label(field.line, label, _FIELDS, "**{}:**")
        for field in markdown.fields(self.document.blocks):
            if field.level:
                self.warn_of_label(field.line, field.label, _FIELDS[:1], "**{}:**")

    def note_look_alikes(self) -> None:
        """Note why a line that looks like a task is not one."""
        blocks = self.document.blocks
        firsts = [block.first for block in blocks]
        taken = {section.heading.first for section, _ in self.tasks}
        whys: dict[int, str] = {}
        for number, line in enumerate(self.document.lines, 1):
            found = _HEADING_LINE.match(line)
            if found is None or number in taken:
                continue
            block = blocks[bisect_right(firsts, number) - 1]
            text = found["text"].strip()
            if block.kind in _WHERE and task_in(text):
                if block.first not in whys:
                    whys[block.first] = self.why_hidden(block)
                self.note(number, whys[block.first])
            elif block.kind == "heading" and (why := why_none(text)):
                self.note(number, f"looks like a task, but {why}")

    def warn_of_headings(self) -> None:
        """Warn of headings that are slips of a task's."""
        for block in self.document.blocks:
            if block.kind == "heading" and (meant := slip_of_task(block.text)):
                self.warn(block.first, f"{block.text!r} is not a task", f"did you mean {meant!r}?")
            lines = block.text.split("\n") if block.kind == "paragraph" else ()
            for number, line in enumerate(lines, block.first):
                if found := _CROWDED.match(line):
                    what = "has no space after '#', so it is no heading"
                    self.warn(number, what, f"write '{found['marks']} {found['text']}'")

    def why_hidden(self, block: Block) -> str:
        where = f"the {_WHERE[block.kind]} that begins on line {block.first}"
        inside = self.document.lines[block.first : block.last - 1]
        if block.kind == "fence" and any(map(_INNER_FENCE.match, inside)):
            where += "; a code block with fences inside it needs a longer fence around it"
        return f"looks like a task, but is in {where}"

    def warn_of_plain_labels(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            for number, line in enumerate(block.text.split("\n"), block.first):
                if found := _PLAIN.match(line.lstrip()):
                    self.find_plain_label(number, found)
            if block.kind in ("list", "item"):
                self.warn_of_plain_labels(block.children)

    def find_plain_label(self, line: int, found: re.Match[str]) -> None:
        """A slip, unless it says on what something else depends: then it is only noted."""
        what = "only a bold label is a field"
        named = (word.strip("`*[],.").casefold() for word in found["rest"].split())
        if not found["depends"]:
            self.warn(line, what, "write '**Acceptance Criteria:**'")
        elif any(word in self.ids for word in named):
            self.warn(line, what, "write '**Depends on:**'")
        else:
            self.note(line, f"{what}: write '**Depends on:**'")

    def field_error(self, field: Field, wanted: str) -> None:
        value = " ".join(field.text).strip()
        what = f"{field.label!r} cannot be {value!r}" if value else f"{field.label!r} has no value"
        self.error(field.line, what, f"write {wanted}")


def _by_label(blocks: Iterable[Block]) -> _Fields:
    """The fields by their labels: bold labels, also in list items; criteria also as headings."""
    found: _Fields = defaultdict(list)
    for field in markdown.fields(blocks):
        inner: list[Field] = []
        if field.label != _CRITERIA and (field.level or not field.label):
            for item in markdown.items(field.below):
                inner += markdown.fields(item.children)
        for each in (field, *inner):
            if not each.level or each.label == _CRITERIA:
                found[_SYNONYMS.get(each.label, each.label)].append(each)
    return found


def _paths(line: str) -> Iterator[str]:
    """The paths named on a line: in backticks, or single words."""
    for spans, prose in markdown.parts(line):
        yield from spans
        word = _DASH.split(prose)[0].rstrip(".")
        if not spans and len(word.split()) == 1 and word.casefold() not in _NOT_A_PATH:
            yield word
