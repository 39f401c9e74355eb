"""The spec-kit dialect: a `tasks.md` with lines such as `- [ ] T012 [P] [US1] text with a path`.

Phases are stages, and each waits for the one before it, also user stories. spec-kit's template
lets stories run in parallel "if staffed", but its implement command completes "each phase before
moving to the next". Within a phase `[P]` says what may run in parallel; `order.py` has the rule.

A box nested in a task is one of its criteria, also with an id that extends the task's own (T010a
in T010): the agent that does the task does its parts.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from msgspec.structs import replace

from windlass.core.plan import MAX_TASKS, Plan, Stage, Task
from windlass.errors import PlanError
from windlass.formats import markdown, milestone
from windlass.formats.dialect import Source
from windlass.formats.markdown import Block, Field
from windlass.formats.reading import Reader, refuse_too_many
from windlass.formats.slips import label_slip
from windlass.formats.speckit.listing import Entry, Phase, has_box, many, paths, read
from windlass.formats.speckit.order import Ids, Place, Waits
from windlass.formats.taskfile import has_task_head
from windlass.formats.words import is_nothing

name: Final = "speckit"

_TITLE = re.compile(r"(?:[\w ]{0,40}\b)?Tasks?(?: List| Breakdown)?\s*[:—–-]\s*", re.IGNORECASE)  # noqa: RUF001
_ABOUT_TASKS = re.compile(r"\btasks?\b", re.IGNORECASE)
_MAY_BE = re.compile(r"T[-_]?[0-9]")
_STORY = re.compile(r"\[(?:P|US[0-9]+)\]")
_FILE = "tasks.md"
_DOCUMENTS = ("spec.md", "plan.md", "research.md", "data-model.md", "quickstart.md")
_CONTRACT = re.compile(r"(?<![\w/.-])(?:\./)?(contracts/[\w.-]+(?:/[\w.-]+)*\.\w+)")
_CONTRACTS = "contracts/"
_MAX_DOCUMENTS = 20
_ACCEPTANCE = frozenset({"acceptance", "acceptance criteria", "criteria"})
_CRITERIA = ("Acceptance Criteria", "Acceptance", "Criteria")
_LIKE_PHASE = re.compile(r"\W*(?P<word>[A-Za-z]{4,6})\s+(?P<number>[0-9][\w.]*)\s*(?:[:：—–-]|$)")  # noqa: RUF001


def recognises(source: Source) -> bool:
    """Whether the file, or the folder's one tasks.md, is a list of tasks."""
    path = _path(source)
    return path is not None and _is_listing(path, source.texts[path])


def parse(source: Source) -> Plan:
    """The plan as written."""
    path = _path(source)
    if path is None:
        hint = f"name the folder of one feature, or its {_FILE}"
        raise PlanError(
            f"the folder does not have exactly one {_FILE}", path=source.path, hint=hint
        )
    if many(source.texts[path], MAX_TASKS):
        refuse_too_many(path, MAX_TASKS + 1)
    return _Reader(path, source.texts[path], tuple(source.texts)).plan()


def refers_to(source: Source) -> tuple[str, ...]:
    """The feature's other documents: those that spec-kit writes, and named contracts."""
    path = _path(source)
    if path is None:
        return ()
    folder = _folder(path)
    named = dict.fromkeys([*_DOCUMENTS, *_CONTRACT.findall(source.texts[path])])
    return tuple(each for each in (folder + leaf for leaf in named) if each != path)


def _path(source: Source) -> str | None:
    """The file to read: the named file, or the folder's only tasks.md."""
    if source.text is not None:
        return source.path
    folder = source.path.rstrip("/\\")
    top = "" if folder == "." else folder
    found = [
        path for path in source.texts if _leaf(path) == _FILE and _folder(path).rstrip("/\\") == top
    ]
    return found[0] if len(found) == 1 else None


def _leaf(path: str) -> str:
    return re.split(r"[/\\]", path)[-1].casefold()


def _folder(path: str) -> str:
    return path[: len(path) - len(_leaf(path))]


def _is_listing(path: str, text: str) -> bool:
    if not _MAY_BE.search(text) or has_task_head(path, text):
        return False
    if milestone.has_task(text):
        return False
    if many(text, MAX_TASKS):
        return True  # it is refused before it is read
    found = read(text)
    about = _leaf(path) == _FILE or bool(_ABOUT_TASKS.search(found.title))
    if any(not entry.aside for entry in found.boxed):
        return about or found.phased or bool(_STORY.search(text))
    return about and bool(found.entries())


class _Reader(Reader):
    """Reads one text."""

    def __init__(self, path: str, text: str, files: Iterable[str]) -> None:
        super().__init__(path)
        self.list = read(text)
        self.paths = sorted(files)
        self.headed: dict[str, list[Entry]] = {}
        for entry in self.list.headed:
            self.headed.setdefault(entry.line.id.casefold(), []).append(entry)
        self.phase_texts: dict[int, str] = {}
        self.named: list[str] | None = None
        self.left: dict[str, str | None] = {}
        """The ids of dropped tasks."""

    def plan(self) -> Plan:
        entries = self.chosen()
        self.find_lost(entries)
        self.warn_of_slips(entries)
        self.note_boxes()
        stages = self.stages(entries)
        tasks = [self.task(entry, stages) for entry in entries]
        ordered = self.in_order(entries, tasks)
        return Plan(
            id=self.feature(),
            title=_TITLE.sub("", self.list.title, count=1) or self.list.title,
            dialect=name,
            path=self.path,
            tasks=ordered,
            stages=tuple(Stage(name=each) for each in dict.fromkeys(stages.values()) if each),
            notes=self.sorted_notes(),
        )

    def feature(self) -> str:
        """The folder's name, where the file is called tasks.md."""
        folders = [part for part in re.split(r"[/\\]", _folder(self.path)) if part.strip(".")]
        return folders[-1] if folders and _leaf(self.path) == _FILE else ""

    # Which lines are tasks

    def chosen(self) -> list[Entry]:
        found, left = self.list.chosen()
        ids = {entry.line.id for entry in found}
        for entry in left:
            line = entry.line
            if line.struck:
                self.left[line.id] = None
                self.note(entry.at, f"{line.id!r} is struck out or dropped, so it is not a task")
            elif not line.several:
                self.note(entry.at, f"names {line.id!r} again, so it is not a task of its own")
            elif entry.aside or line.id in ids:
                self.note(entry.at, "is about several tasks, so it is not a task of its own")
            else:
                what = "a line names several tasks"
                self.error(entry.at, what, "give each task a line of its own")
        return found

    def find_lost(self, entries: Sequence[Entry]) -> None:
        """Lines that must be tasks and cannot be read are errors; those that may be are noted."""
        for at, aside in self.list.placeholders:
            if not aside:
                self.error(at, "a task has a placeholder for an id", "number it, as T012")
        ids = {each.casefold() for each in (*self.left, *self.list.parts)}
        ids |= {entry.line.id.casefold() for entry in entries}
        for at, where, slip in self.list.hidden(ids):
            if slip:
                what = "looks like a task, but is code or a paragraph in Markdown"
                self.error(at, what, "begin the line with '- [ ] ', below a blank line")
                continue
            self.note(at, f"looks like a task, but is in {where}")
        self.note_unboxed(ids)

    def warn_of_slips(self, entries: Sequence[Entry]) -> None:
        """Warn of headings that are slips of a phase, and of labels that are slips of criteria."""
        for block in self.list.document.blocks:
            found = _LIKE_PHASE.match(block.text) if block.kind == "heading" else None
            if found and (meant := label_slip(found["word"], ("Phase",))):
                what = f"{block.text!r} is not a phase"
                self.warn(block.first, what, f"did you mean '{meant} {found['number']}'?")
        for entry in entries:
            for field in _fields(entry.blocks):
                if field.label and field.label not in _ACCEPTANCE:
                    self.warn_of_label(field.line, field.label, _CRITERIA, "**{}:**")

    def note_unboxed(self, ids: set[str]) -> None:
        for entry in self.list.headed:
            if entry.line.id.casefold() not in ids:
                self.note(entry.at, "looks like a task, but is in a section about tasks")
        for entry in self.list.plain:
            if not entry.aside and entry.line.id.casefold() not in ids:
                self.note(entry.at, f"names {entry.line.id!r} but has no box, so it is not a task")

    def note_boxes(self) -> None:
        for inner, (outer, at) in self.list.parts.items():
            self.note(at, f"{inner!r} is a part of {outer!r} and one of its criteria")
        for at, within, aside in self.list.unnumbered:
            if within is None and not aside:
                self.note(at, "has a box but no id such as T012, so it is not a task")

    # One task

    def stages(self, entries: Sequence[Entry]) -> dict[int, str | None]:
        """The name of each phase with tasks, in order; None where the only phase has no name."""
        phases = {each.phase.number: each.phase for each in entries}
        found: dict[int, str | None] = {}
        times: Counter[str] = Counter()
        for number in sorted(phases):
            called = phases[number].name or "Tasks"
            times[called] += 1
            found[number] = f"{called} ({times[called]})" if times[called] > 1 else called
        unnamed = len(phases) == 1 and not any(phase.name for phase in phases.values())
        return dict.fromkeys(found) if unnamed else found

    def task(self, entry: Entry, stages: dict[int, str | None]) -> Task:
        own = [self.list.text(entry), *self.details(entry)]
        if entry.line.box not in (None, " ") and not entry.line.done:
            what = f"its box says {entry.line.box!r}, which counts as 'not done'"
            self.note(entry.at, f"{entry.line.id!r}: {what}")
        inner = {each.at for each in entry.nested}
        blocks = [*entry.blocks, *chain.from_iterable(each.blocks for each in self.twins(entry))]
        return Task(
            id=entry.line.id,
            title=entry.line.title,
            text="\n\n".join([*own, *self.around(entry, stages)]),
            acceptance_criteria=tuple(dict.fromkeys(self.criteria(blocks, inner))),
            files=self.files(entry),
            stage=stages[entry.phase.number],
            marked_done=entry.line.done or (entry.line.box is None and "✅" in entry.line.title),
            line=entry.at,
        )

    def files(self, entry: Entry) -> tuple[str, ...]:
        """The paths in the task's prose, without the feature's documents."""
        also = chain.from_iterable(map(_paragraphs, self.twins(entry)))
        texts = chain(_paragraphs(entry), also)
        found = dict.fromkeys(chain.from_iterable(map(paths, texts)))
        return tuple(path for path in found if path not in _DOCUMENTS)

    def details(self, entry: Entry) -> list[str]:
        return [self.list.text(each) for each in self.twins(entry)]

    def twins(self, entry: Entry) -> list[Entry]:
        """The headings with the same id, where the task is a list item."""
        listed = entry.block.kind != "heading"
        return self.headed.get(entry.line.id.casefold(), []) if listed else []

    def criteria(self, blocks: Iterable[Block], inner: set[int]) -> Iterator[str]:
        """The boxes inside a task, and its list of acceptance criteria."""
        for each in markdown.fields(blocks):
            items = [item for item in markdown.items(each.below) if item.first not in inner]
            if each.label in _ACCEPTANCE:
                listed = [self.list.document.item(item) for item in items]
                prose = "\n".join(each.text).strip()
                yield from (text for text in listed or [prose] if not is_nothing(text))
                continue
            for item in items:
                if item.children and has_box(item.children[0].text):
                    yield self.list.document.item(item)
                else:
                    yield from self.criteria(item.children, inner)

    def around(self, entry: Entry, stages: dict[int, str | None]) -> Iterator[str]:
        """The context of a task: the goal of its phase, and the feature's documents."""
        if stage := stages[entry.phase.number]:
            yield f"## The task's phase: {stage}"
        if entry.section is not None and entry.section.text != stage:
            yield f"It is one of: {entry.section.text}"
        yield from filter(None, [self.phase_text(entry.phase)])
        if documents := self.documents():
            yield "## The feature's documents\n\n" + "\n".join(f"- {each}" for each in documents)

    def phase_text(self, phase: Phase) -> str:
        if phase.number not in self.phase_texts:
            self.phase_texts[phase.number] = phase.words()
        return self.phase_texts[phase.number]

    def documents(self) -> list[str]:
        """The existing documents beside the plan, else those that its text names."""
        if self.named is None:
            folder = _folder(self.path)
            leaves = (*_DOCUMENTS, _CONTRACTS)
            found = [
                path for path in self.paths if path.startswith(tuple(folder + x for x in leaves))
            ]
            top = "" if found else self.list.top()
            found += [folder + leaf for leaf in leaves if leaf in top]
            more = len(found) - _MAX_DOCUMENTS
            self.named = found[:_MAX_DOCUMENTS] + ([f"and {more} more"] if more > 0 else [])
        return self.named

    # The order

    def in_order(self, entries: Sequence[Entry], tasks: Sequence[Task]) -> tuple[Task, ...]:
        places = [
            Place(
                id=entry.line.id,
                phase=entry.phase.number,
                section=entry.section.first if entry.section else 0,
                parallel=entry.line.parallel,
            )
            for entry in entries
        ]
        parts = {part: outer for part, (outer, _) in self.list.parts.items()}
        waits = Waits(
            self.path, places, Ids({**self.left, **parts, **{e.id: e.id for e in places}})
        )
        for entry in entries:
            for text in chain.from_iterable(map(_paragraphs, (entry, *self.twins(entry)))):
                waits.declare(entry.line.id, entry.at, text)
        for at, text in self.list.orders:
            waits.state(at, text)
        self.notes += waits.notes
        return tuple(replace(task, depends_on=waits.of(task.id)) for task in tasks)


def _fields(blocks: Iterable[Block]) -> Iterator[Field]:
    """The labels among these blocks and in their lists."""
    for field in markdown.fields(blocks):
        yield field
        for item in markdown.items(field.below):
            yield from _fields(item.children)


def _paragraphs(entry: Entry) -> Iterator[str]:
    """The paragraphs of a task, without the tasks inside it."""
    if entry.block.kind == "heading":
        yield entry.block.text
    inner = {each.at for each in entry.nested}
    stack = list(reversed(entry.blocks))
    while stack:
        block = stack.pop()
        if block.kind in ("paragraph", "underlined"):
            yield block.text
        elif block.first not in inner or block.kind != "item":
            stack += reversed(block.children)
