"""The spec dialect: SpecFlow's specifications, whose Task Groups are tasks and whose waves stages.

A spec is Markdown with an id 'SPEC-…' in its frontmatter, which stands at the top or below the
title. Its Task Groups table makes each group a task; without one the whole spec is one task.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from windlass.dialects import (
    markdown,
    milestone,
    spec_criteria,
    spec_groups,
    spec_head,
    spec_state,
    tables,
)
from windlass.dialects.deliverables import HEADING, certain
from windlass.dialects.dialect import Dialect, Source
from windlass.dialects.markdown import Block, Section
from windlass.dialects.spec_criteria import Criterion
from windlass.dialects.spec_document import SpecDocument, indices, label, outermost
from windlass.dialects.spec_groups import Group
from windlass.errors import PlanError
from windlass.plan import Note, Plan, Stage, Task

name: Final = "spec"

MAX_REPEATED = 20_000_000
"""Characters of the spec's own text, which is given to each of its groups."""
_MAX_TOLD = 100
"""With more groups than this, a group is not told what all the others do."""
_MAX_TITLE = 100

_Sections = Mapping[str, Sequence[tuple[Section, str]]]
"""By group the sections that are about it alone, each with the rest of its heading."""

_DONE = frozenset({"done", "complete", "completed"})
_PREFIX = re.compile(r"\ASPEC(?:-[\w.-]+)?\s*[:–—]\s*(?=\S)", re.IGNORECASE)  # noqa: RUF001
_LOOKS_LIKE_GROUP = re.compile(r"(?:(?:Task )?Group )?G[0-9]+[a-z]?\s*[:–—-]", re.IGNORECASE)  # noqa: RUF001
_WAVE_LINE = re.compile(r"\W*Wave\s*(?P<wave>[0-9]{1,4})\b(?P<rest>.*)", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,4}")
_WORD = re.compile(r"[\w.-]+")
_PATH = re.compile(r"[\w.@~+-]*(?:/[\w.@~+*-]+)+|[\w-][\w.-]*\.[A-Za-z]\w{0,7}")


def recognises(source: Source) -> bool:
    """Whether the file's frontmatter is a spec's, and no milestone stands below it."""
    text = source.text
    if text is None or not spec_head.has_head(text):
        return False
    if not milestone.has_task(text):
        return True
    # Groups are a spec's own; without them, headings of tasks are a milestone's.
    return bool(SpecDocument(spec_head.without(text)).groups)


def parse(source: Source) -> Plan:
    """The plan as written."""
    return _Reader(source.path, source.text or "").plan()


class _Reader:
    """One reading of one text; it gathers notes on the way."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.head = spec_head.read(path, text)
        self.spec = SpecDocument(spec_head.without(text))
        self.done = self.head.word("status").casefold() in _DONE
        self.notes: list[Note] = []

    def plan(self) -> Plan:
        spec_id = self.head.word("id")
        if not spec_id:
            line = self.head.lines.get("id", self.head.first)
            raise PlanError(
                "the spec has no id", path=self.path, line=line, hint="write 'id: SPEC-1'"
            )
        groups = spec_groups.read(self.path, self.spec.groups, self.notes)
        title = self.title() or spec_id
        self.note_head()
        if groups:
            tasks = self.tasks(groups, f"{spec_id} ({title})")
            self.note_execution_plan(groups)
        else:
            tasks = (self.task(spec_id, title),)
            self.note_look_alikes()
        return Plan(
            id=spec_id,
            title=title,
            dialect=name,
            path=self.path,
            tasks=tasks,
            stages=tuple(Stage(name=str(wave)) for wave in sorted({each.wave for each in groups})),
            notes=tuple(sorted(self.notes, key=lambda note: note.line)),
        )

    def title(self) -> str:
        titles = (each.heading.text for each in self.spec.sections if each.level == 1)
        written = self.head.word("title") or next(titles, "")
        return _PREFIX.sub("", " ".join(written.split()))

    def task(self, spec_id: str, title: str) -> Task:
        """A spec without groups: one task, which is all of it."""
        blocks = [block for _, block in self.spec.present]
        criteria = self.criteria(self.spec.sections, blocks)
        return Task(
            id=spec_id,
            title=title,
            text=self.spec.without(()),
            acceptance_criteria=tuple(criterion.text for criterion in criteria),
            marked_done=self.done,
            line=self.head.first,
        )

    def criteria(self, sections: Iterable[Section], blocks: Iterable[Block]) -> list[Criterion]:
        """The criteria under headings of that name, else under bold labels."""
        headed = (each for each in sections if spec_criteria.is_criteria(each.heading.text))
        found = [
            criterion
            for section in outermost(headed)
            for criterion in spec_criteria.read(self.spec.document, self.spec.under(section))
        ]
        for field in () if found else markdown.fields(blocks):
            if field.label == spec_criteria.LABEL and not field.level:
                found += spec_criteria.read(self.spec.document, field.below)
        return found

    # Groups

    def tasks(self, groups: Sequence[Group], spec: str) -> tuple[Task, ...]:
        sections = self.own_sections({group.id.casefold(): group.id for group in groups})
        owned = [section for each in sections.values() for section, _ in each]
        inside = indices(owned)
        free = [each for each in self.spec.sections if each.start - 1 not in inside]
        blocks = [block for index, block in self.spec.present if index not in inside]
        own = {group: self.own_criteria(each) for group, each in sections.items()}
        criteria = spec_criteria.bound(groups, self.criteria(free, blocks), own)
        common = self.common(groups, owned)
        creates = self.creates(groups, sections, free)
        waves = sorted({group.wave for group in groups})
        places = {wave: f"wave {place} of {len(waves)}" for place, wave in enumerate(waves, 1)}
        tasks: list[Task] = []
        for group in groups:
            about = sections.get(group.id, ())
            if not group.tasks and not about:
                cure = "say in its row what it is to do"
                raise PlanError(
                    f"group {group.id!r} has no tasks", path=self.path, line=group.line, hint=cure
                )
            headings = [title for _, title in about if title]
            spans = markdown.code_spans(group.tasks) if "`" in group.tasks else []
            tasks.append(
                Task(
                    id=group.id,
                    title=_cut(group.title or next(iter(headings), "") or group.tasks or group.id),
                    text=self.text(group, f"{spec}, {places[group.wave]}", about, common),
                    acceptance_criteria=criteria[group.id],
                    depends_on=group.depends_on,
                    files=tuple(dict.fromkeys(filter(_PATH.fullmatch, spans))),
                    creates=certain(creates[group.id]),
                    stage=str(group.wave),
                    marked_done=self.done or group.done,
                    line=group.line,
                )
            )
        return tuple(tasks)

    def own_sections(self, ids: Mapping[str, str]) -> _Sections:
        found: dict[str, list[tuple[Section, str]]] = {}
        named = {
            each.start: group
            for each in self.spec.sections
            if (group := spec_groups.group_of(each.heading.text, ids))
        }
        for section in outermost(each for each in self.spec.sections if each.start in named):
            group, title = named[section.start]
            found.setdefault(group, []).append((section, title))
        return found

    def own_criteria(self, about: Sequence[tuple[Section, str]]) -> list[Criterion]:
        found: list[Criterion] = []
        for section, _ in about:
            inner = [
                each for each in self.spec.sections if section.start < each.start <= section.stop
            ]
            found += self.criteria(inner, self.spec.under(section))
        return found

    def creates(
        self,
        groups: Sequence[Group],
        sections: _Sections,
        free: Iterable[Section],
    ) -> dict[str, list[str]]:
        """The files each group is to create: by its own section, or named in its row alone."""
        found: dict[str, list[str]] = {group.id: [] for group in groups}
        for group, about in sections.items():
            for outer in (section for section, _ in about):
                within = (s for s in self.spec.sections if outer.start < s.start <= outer.stop)
                found[group] += self.listed_files(within)
        for path in self.listed_files(free):
            naming = [group.id for group in groups if path in markdown.code_spans(group.tasks)]
            if len(naming) == 1:
                found[naming[0]].append(path)
        return found

    def listed_files(self, sections: Iterable[Section]) -> list[str]:
        """The paths that lists or tables of files to create begin their lines with."""
        lists = (s for s in sections if HEADING.fullmatch(markdown.label_of(s.heading.text)))
        lines = (line for each in lists for line in self.spec.document.body(each).split("\n"))
        firsts = (span for line in lines for span in markdown.code_spans(line)[:1])
        return [span for span in firsts if _PATH.fullmatch(span)]

    def common(self, groups: Sequence[Group], owned: Sequence[Section]) -> str:
        """What the spec says to every group: all of it but what is said of single groups."""
        spans = [self.spec.span(section) for section in owned]
        if len(groups) > _MAX_TOLD:
            rows = (row for table in self.spec.groups for row in table.rows)
            spans += (range(row.line, row.line + 1) for row in rows)
        text = self.spec.without(spans)
        if len(text) * len(groups) > MAX_REPEATED:
            raise PlanError(
                f"the spec is too long to be given to each of its {len(groups):,} groups",
                path=self.path,
                hint="make several specs of it",
            )
        return text

    def text(
        self, group: Group, place: str, about: Sequence[tuple[Section, str]], common: str
    ) -> str:
        rows = [("Tasks", group.tasks), *group.rest]
        told = (
            f"Group {group.id} of {place}. Do what this group is to do and leave the others theirs;"
        )
        parts = [
            f"{told} those it depends on are done.",
            "\n".join(f"- **{header}:** {cell}" for header, cell in rows if cell),
            *(self.section(section) for section, _ in about),
            "---",
            common,
        ]
        return "\n\n".join(parts)

    def section(self, section: Section) -> str:
        span = self.spec.span(section)
        return "\n".join(self.spec.document.lines[span.start - 1 : span.stop - 1]).rstrip()

    # Notes

    def note_head(self) -> None:
        listed = self.head.data.get("depends_on")
        named = listed if isinstance(listed, list) else [listed]
        words = ", ".join(each for each in named if isinstance(each, str) and each.strip())
        if words:
            told = f"depends on {words}; a spec is a plan of its own and waits for none"
            self.note(self.head.lines["depends_on"], told)
        if self.head.word("status").casefold() == "split":
            told = "says that the spec was split into others, which are plans of their own"
            self.note(self.head.lines["status"], told)
        for section in self.spec.history:
            told = f"{section.heading.text!r} tells what was, so it is not read"
            self.note(section.heading.first, told)
        for table in self.spec.ignored:
            self.note(
                table.line, "a table of groups that says of none what it depends on: not read"
            )

    def note_look_alikes(self) -> None:
        """Say of what reads like groups and makes none, why it makes none."""
        for line, where in self.spec.hidden():
            self.note(line, f"looks like a table of groups, but stands in {where}")
        if proposed := self.spec.proposed():
            told = "groups that an audit proposed are not read; the spec's own text has none"
            self.note(proposed.line, told)
        for section in self.spec.sections:
            if _LOOKS_LIKE_GROUP.match(section.heading.text):
                told = "looks like a group, but only a table of Task Groups makes groups"
                self.note(section.heading.first, told)

    def note_execution_plan(self, groups: Sequence[Group]) -> None:
        """Say where the spec's own summary of its waves is not what its table says."""
        ids = {group.id.casefold(): group.id for group in groups}
        waves = {group.id: group.wave for group in groups}
        for section in self.spec.sections:
            if label(section) != "execution plan":
                continue
            missing = dict.fromkeys(waves)
            for line, wave, words in self.planned(section):
                for group in filter(None, map(ids.get, words)):
                    missing.pop(group, None)
                    if waves[group] != wave:
                        told = f"puts {group} into wave {wave}; its Task Groups say {waves[group]}"
                        self.note(line, f"{told}, which counts")
            if missing and len(missing) < len(waves):
                self.note(section.heading.first, f"does not name {', '.join(missing)}")

    def planned(self, section: Section) -> Iterator[tuple[int, int, list[str]]]:
        """Each line of an Execution Plan that speaks of a wave, and its words."""
        for block in self.spec.under(section):
            table = tables.table_of(block)
            for row in table.rows if table else ():
                cells = dict(zip(table.columns if table else (), row.cells, strict=False))
                found = _NUMBER.search(cells.get("wave", ""))
                named = " ".join(cell for column, cell in cells.items() if "group" in column)
                if found:
                    yield row.line, int(found.group()), _WORD.findall(named.casefold())
            for number in () if table else range(block.first, block.last + 1):
                found = _WAVE_LINE.match(self.spec.document.lines[number - 1])
                if found:
                    yield number, int(found["wave"]), _WORD.findall(found["rest"].casefold())

    def note(self, line: int, text: str) -> None:
        self.notes.append(Note(line=line, text=text))


def _cut(title: str) -> str:
    text = " ".join(title.split())
    return text if len(text) <= _MAX_TITLE else text[: _MAX_TITLE - 1].rstrip() + "…"


SPEC = Dialect(
    name=name,
    continue_here=spec_state.CONTINUE_HERE,
    recognises=recognises,
    parse=parse,
    writes=spec_state.writes,
    shares=spec_state.shares,
    project=spec_state.project,
    claims=spec_state.claims,
)
