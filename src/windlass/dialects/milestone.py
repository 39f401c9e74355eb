"""The milestone dialect, which is also Windlass's own: every rule about its words is in this file.

A task is what Markdown itself takes for a top-level heading `Task <id>: <title>`, and its fields
are read from its own section only. What looks meant and cannot be used is an error where it would
change what is done, else a note; never nothing.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from windlass.dialects import markdown
from windlass.dialects.markdown import Block, Field
from windlass.errors import PlanError
from windlass.plan import Note, Plan, Task

name: Final = "milestone"

_Fields = dict[str, list[Field]]

_CRITERIA = "acceptance criteria"
_SYNONYMS = {"files": "file", "check": "checks"}

_TASK = re.compile(
    r"Task\s+(?P<id>\S+?)(?P<separator>\s*:\s*|\s+[-–—]\s+|$)(?P<title>.*)",  # noqa: RUF001
    re.IGNORECASE,
)
_NEARLY_TASK = re.compile(r"\W*Task\s+\S*[0-9]", re.IGNORECASE)
_TASK_LINE = re.compile(r"[ \t>*+\-0-9.)]*#{1,6}[ \t]\s*(?P<text>\S.*)")
_INNER_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[ \t]*\w")
_E2E = re.compile(r"(?:E2E|End[- ]to[- ]End)\b", re.IGNORECASE)
_MILESTONE = re.compile(r"Milestone\s*:\s*(?=\S)", re.IGNORECASE)
_PLAIN_DEPENDS = re.compile(r"Depends[ \t]+on[ \t]*:", re.IGNORECASE)
_SEPARATORS = re.compile(r"[,;&]|\b(?:and|or)\b", re.IGNORECASE)
_ASIDE = re.compile(r"\([^()]*\)")
_TASK_WORD = re.compile(r"Tasks?\s+", re.IGNORECASE)
_NUMBER = re.compile(r"(?P<number>[0-9]{1,3})(?:\s*/\s*(?P<of>[0-9]+))?(?:\s*\([^()]*\))?\.?")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]*")
_DASH = re.compile(r"\s[-–—]\s")  # noqa: RUF001

_NOTHING = frozenset({"none", "nothing", "n/a", "na", "-", "–", "—"})  # noqa: RUF001
_NOT_A_PATH = _NOTHING | {"tbd", "etc", "various", "multiple", "several", "new"}
# 'Task Summary: …' speaks of tasks; it is no task called Summary.
_NOT_AN_ID = frozenset(
    "breakdown categories complete completed completion dependencies details graph group groups "
    "index list notes order overview progress sequence status summary table template".split()
)
_WHERE = {
    "fence": "the code block",
    "code": "the indented code",
    "html": "the HTML",
    "quote": "the quotation",
    "list": "the list",
    "paragraph": "the paragraph",
    "underlined": "the paragraph",
    "frontmatter": "the frontmatter",
}


class _Head(Struct, frozen=True, kw_only=True):
    """A heading that counts, and which blocks stand under it."""

    block: Block
    level: int
    start: int
    """The index of the first block under it."""
    stop: int
    """The index where its section has ended."""
    id: str
    """Of a task; "" for every other heading."""
    title: str


class _Draft(Struct, frozen=True, kw_only=True):
    task: Task
    depends_on: tuple[str, ...] | None
    """None where the plan does not say."""


def recognises(path: str, text: str) -> bool:
    """Whether there is a task's heading outside code."""
    del path  # any file may be a plan
    return any(head.id for head in _heads(markdown.parse(text).blocks))


def parse(path: str, text: str) -> Plan:
    """The plan as written."""
    return _Reader(path, text).plan()


class _Reader:
    """One reading of one text; it gathers notes on the way."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.document = markdown.parse(text)
        self.heads = _heads(self.document.blocks)
        self.tasks = [head for head in self.heads if head.id]
        self.ids = {head.id.casefold(): head.id for head in self.tasks}
        self.notes: list[Note] = []

    def plan(self) -> Plan:
        drafts = [self.draft(head) for head in self.tasks]
        staged = any(draft.task.stage for draft in drafts)
        tasks = self.in_stages(drafts) if staged else _in_sequence(drafts)
        scenarios = self.scenarios()
        checks = self.plan_checks(scenarios) if tasks else ()
        self.note_look_alikes()
        return Plan(
            id="",
            title=self.title(),
            dialect=name,
            path=self.path,
            tasks=tasks,
            checks=checks,
            e2e=next((body for head in scenarios if (body := self.body(head))), None),
            notes=tuple(sorted(self.notes, key=lambda note: note.line)),
        )

    def title(self) -> str:
        """The first heading of level 1, unless a task comes first."""
        first = self.tasks[0].start if self.tasks else len(self.document.blocks)
        titles = (head.title for head in self.heads if head.level == 1 and head.start < first)
        return _MILESTONE.sub("", next(titles, ""), count=1)

    def body(self, head: _Head) -> str:
        blocks = self.document.blocks
        end = blocks[head.stop].first - 1 if head.stop < len(blocks) else len(self.document.lines)
        return self.document.body(head.block.last + 1, end)

    # The task's fields

    def draft(self, head: _Head) -> _Draft:
        blocks = self.document.blocks[head.start : head.stop]
        found = _by_label(blocks)
        task = Task(
            id=head.id,
            title=head.title,
            text=self.body(head),
            acceptance_criteria=self.criteria(found),
            files=self.files(found["file"]),
            checks=self.checks(found["checks"]),
            skip_absent=self.skip_absent(found),
            complexity=self.number(found, "complexity", 0, 10),
            stage=self.word(found, "stage", re.compile(".+"), "a name, such as '2'"),
            model=self.word(found, "model", _MODEL, "a model's name, such as 'claude-sonnet-4-5'"),
            max_turns=self.number(found, "max turns", 1, 100),
            line=head.block.first,
        )
        self.note_plain_depends(blocks)
        return _Draft(task=task, depends_on=self.depends_on(found["depends on"]))

    def criteria(self, found: _Fields) -> tuple[str, ...]:
        texts: list[str] = []
        for field in found[_CRITERIA]:
            listed = [self.document.item(item) for item in markdown.items(field.below)]
            prose = [*field.text, *(block.text for block in field.below)]
            texts += listed or ["\n".join(prose).strip()]
        if not texts and (other := found["success criteria"]):
            # Such a list may also tell what the scenario of a test must show.
            self.note(other[0].line, "'Success Criteria' are not read; 'Acceptance Criteria' are")
        return tuple(text for text in texts if text)

    def files(self, found: Iterable[Field]) -> tuple[str, ...]:
        paths: dict[str, None] = {}
        for field in found:
            lines = field.value() or [self.document.item(item) for item in markdown.items(field.below[:1])]
            paths.update((path, None) for line in lines for path in _paths(line.split("\n")[0]))
        return tuple(paths)

    def checks(self, found: Iterable[Field]) -> tuple[str, ...]:
        commands: list[str] = []
        for field in found:
            value = field.value()
            here = [command for line in value for command in markdown.code_spans(line)]
            for item in markdown.items(field.below[:1]):
                first, *more = self.document.item(item).split("\n")
                # Beside a value, or above more lines, a bare text is more likely to be prose.
                bare = [first] if first and not value and not more else []
                here += markdown.code_spans(first) or bare
            if not here and _NOTHING.isdisjoint(" ".join(value).casefold().split()[:1]):
                self.refuse(field, "each command in backticks, on the line or as a list, or 'none'")
            commands += here
        return tuple(commands)

    def skip_absent(self, found: _Fields) -> bool:
        wanted = re.compile("skip|return", re.IGNORECASE)
        said = self.word(found, "absent checks", wanted, "'skip', or leave it out")
        return said is not None and said.casefold() == "skip"

    def number(self, found: _Fields, label: str, low: int, high: int) -> int | None:
        wanted = f"a number from {low} to {high}"
        said = self.word(found, label, _NUMBER, wanted)
        if said is None:
            return None
        parts = next(_NUMBER.finditer(said))
        number = int(parts["number"])
        if not low <= number <= high or parts["of"] not in (None, str(high)):
            self.refuse(found[label][0], wanted)
        return number

    def word(
        self, found: _Fields, label: str, allowed: re.Pattern[str], wanted: str
    ) -> str | None:
        """The one value of a field that may stand once in a task."""
        if not found[label]:
            return None
        field, *more = found[label]
        if more:
            self.refuse(more[0], f"it once; line {field.line} has it already")
        value = next(iter(field.value()), "").strip("` ")
        if not allowed.fullmatch(value):
            self.refuse(field, wanted)
        return value

    def depends_on(self, found: Iterable[Field]) -> tuple[str, ...] | None:
        ids: dict[str, None] = {}
        understood = False
        for field in found:
            value = field.value()
            items = (self.document.item(item) for item in markdown.items(field.below[:1]))
            lines = [*value, *(item.split("\n")[0] for item in items)]
            if not lines:
                self.refuse(field, "the ids of tasks, such as '1.1, 1.2', or 'none'")
            for unread in field.text[len(value) :]:
                self.note(field.line, f"{unread!r} under 'Depends on' is not read as a part of it")
            for line in lines:
                for referred in self.referred(field, line):
                    understood = True
                    ids.update(dict.fromkeys(referred))
        return tuple(ids) if understood else None

    def referred(self, field: Field, line: str) -> Iterator[tuple[str, ...]]:
        """The ids each part of the line names; a part that is prose is noted instead."""
        for part in _SEPARATORS.split(_ASIDE.sub("()", line)):
            text = part.replace("()", "").strip(" \t.`*[]#\"'")
            has_word = _TASK_WORD.match(text)
            word, *rest = text[has_word.end() if has_word else 0 :].split(maxsplit=1) or [""]
            word = word.rstrip(":`*]")
            if word.casefold() in _NOTHING:
                yield ()
            elif known := self.ids.get(word.casefold()):
                yield (known,)
                if rest:
                    self.note(field.line, f"of {text!r} in 'Depends on' only {known!r} is read")
            elif has_word or (word and not rest and "()" not in part):
                yield (word,)  # an id, but of no task here: the graph refuses it by name
            elif part.strip():
                self.note(field.line, f"{line!r} in 'Depends on' names no task of this plan")

    # The plan's own parts

    def in_stages(self, drafts: Sequence[_Draft]) -> tuple[Task, ...]:
        """Each task after all of the stage before its own; stages in order of appearance."""
        stage: str | None = None
        tasks: list[Task] = []
        members: dict[str | None, list[str]] = {}
        for draft in drafts:
            if draft.task.stage is None and stage is not None:
                told = f"task {draft.task.id!r} names no stage; it joins {stage!r} like the one before"
                self.note(draft.task.line, told)
            stage = draft.task.stage or stage
            members.setdefault(stage, []).append(draft.task.id)
            tasks.append(replace(draft.task, stage=stage))
        before = dict(zip(list(members)[1:], map(tuple, members.values()), strict=False))
        return tuple(
            replace(task, depends_on=_said(draft.depends_on, before.get(task.stage, ())))
            for task, draft in zip(tasks, drafts, strict=True)
        )

    def scenarios(self) -> list[_Head]:
        """The plan's E2E sections; the first that says something is the plan's scenario."""
        found: list[_Head] = []
        task: _Head | None = None
        for head in self.heads:
            if head.id:
                task = head
            if head.id or not _E2E.match(head.title):
                continue
            if task and head.start <= task.stop:
                told = f"this E2E section belongs to task {task.id!r}; level {task.level} would end it"
                self.note(head.block.first, told)
            elif not found or head.start > found[-1].stop:
                found.append(head)
        for head in found[1:]:
            self.note(head.block.first, "only the first E2E section is the plan's scenario")
        return found

    def plan_checks(self, scenarios: Iterable[_Head]) -> tuple[str, ...]:
        """The checks named before the first task, outside any scenario."""
        blocks = self.document.blocks
        first = self.tasks[0].start - 1
        free = [True] * len(blocks)
        for head in (*self.tasks, *scenarios):
            free[head.start - 1 : head.stop] = [False] * (head.stop - head.start + 1)
        early = _by_label(block for index, block in enumerate(blocks[:first]) if free[index])
        late = _by_label(block for index, block in enumerate(blocks) if index > first and free[index])
        for field in (*early["depends on"], *late["depends on"]):
            self.note(field.line, "'Depends on' is read in tasks only; a plan waits for no other")
        for field in late["checks"]:
            self.note(field.line, "'Checks' are read in tasks and before the first task only")
        return self.checks(early["checks"])

    # Notes and errors

    def note_look_alikes(self) -> None:
        """Say of every line that reads like a task and is none, why it is none."""
        blocks = self.document.blocks
        firsts = [block.first for block in blocks]
        taken = {head.block.first for head in self.tasks}
        whys: dict[int, str] = {}
        for number, line in enumerate(self.document.lines, 1):
            found = _TASK_LINE.match(line)
            if found is None or number in taken:
                continue
            block = blocks[bisect_right(firsts, number) - 1]
            if block.kind in _WHERE and _task(found["text"]):
                why = whys.setdefault(block.first, "") or self.hidden_by(block)
                whys[block.first] = why
                self.note(number, f"looks like a task, but stands in {why}")
            elif block.kind == "heading" and _NEARLY_TASK.match(found["text"]):
                self.note(number, "looks like a task, but no ':' or ' - ' follows its id")

    def hidden_by(self, block: Block) -> str:
        where = f"{_WHERE[block.kind]} that begins on line {block.first}"
        inside = self.document.lines[block.first : block.last - 1]
        if block.kind == "fence" and any(_INNER_FENCE.match(line) for line in inside):
            where += "; a code block with fences inside needs a longer fence of its own"
        return where

    def note_plain_depends(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            for at, line in enumerate(block.text.split("\n"), block.first):
                if _PLAIN_DEPENDS.match(line):
                    self.note(at, "a field has a bold label; write '**Depends on:**'")
            if block.kind in ("list", "item"):
                self.note_plain_depends(block.children)

    def note(self, line: int, text: str) -> None:
        self.notes.append(Note(line=line, text=text))

    def refuse(self, field: Field, wanted: str) -> NoReturn:
        said = " ".join(field.text).strip()
        what = f"{field.label!r} cannot be {said!r}" if said else f"{field.label!r} has no value"
        raise PlanError(what, path=self.path, line=field.line, hint=f"write {wanted}")


def _heads(blocks: Sequence[Block]) -> list[_Head]:
    """The headings in order, each with the section it opens: tasks never nest."""
    found: list[_Head] = []
    ends = [len(blocks)] * 7  # for each level of heading, where a section of it would end
    for index in reversed(range(len(blocks))):
        block = blocks[index]
        task = _task(block.text) if block.kind in ("heading", "underlined") else None
        if task is None and block.kind != "heading":
            continue
        level = block.level or 2  # dashes under a line make it a heading of level 2
        found.append(
            _Head(
                block=block,
                level=level,
                start=index + 1,
                stop=ends[level],
                id=task["id"] if task else "",
                title=task["title"] if task else block.text,
            )
        )
        ends[0 if task else level :] = [index] * (7 if task else 7 - level)
    return found[::-1]


def _task(text: str) -> re.Match[str] | None:
    """The heading's text as a task's, if it is one; a heading may be bold as a whole."""
    found = _TASK.fullmatch(text.replace("**", "") if text.startswith("**") else text)
    if found is None or found["id"].casefold() in _NOT_AN_ID:
        return None
    # Without a title only a number tells 'Task 3' from 'Task Force'.
    return found if found["separator"] or re.search("[0-9]", found["id"]) else None


def _by_label(blocks: Iterable[Block]) -> _Fields:
    """The fields by their labels: bold ones, also as items of a list; criteria under a heading."""
    found: _Fields = defaultdict(list)
    for field in markdown.fields(blocks):
        inner = list[Field]()
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


def _in_sequence(drafts: Iterable[_Draft]) -> tuple[Task, ...]:
    """Each task after the one before it, unless it says otherwise."""
    tasks: list[Task] = []
    for draft in drafts:
        before = tuple(task.id for task in tasks[-1:])
        tasks.append(replace(draft.task, depends_on=_said(draft.depends_on, before)))
    return tuple(tasks)


def _said(depends_on: tuple[str, ...] | None, otherwise: tuple[str, ...]) -> tuple[str, ...]:
    return otherwise if depends_on is None else depends_on
