"""The spec dialect: SpecFlow's specifications, with groups as tasks and waves as stages.

A spec is Markdown with an id 'SPEC-…' in its frontmatter. Its Task Groups table makes each group a
task; without one the whole spec is one task.

SpecFlow has written the frontmatter in three ways: between two lines of dashes at the top, the
same below the title, and as a code block of YAML below the title.

Audits, runs and reviews append their reports to the file. These sections are not read: a proposal
of an audit would be a second plan, and a report of success is only a claim.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from windlass.core.plan import Plan, Stage, Task
from windlass.errors import PlanError
from windlass.formats import frontmatter, markdown, milestone, tables
from windlass.formats.dialect import Source
from windlass.formats.markdown import Block, Section
from windlass.formats.reading import Reader
from windlass.formats.spec import criteria
from windlass.formats.spec.criteria import Criterion
from windlass.formats.spec.groups import Group, column_slips, columns_of, group_of, read_groups
from windlass.formats.tables import Table
from windlass.formats.words import FILES_TO_CREATE, certain_paths, is_done
from windlass.formats.yaml import Keys, text_in

name: Final = "spec"
PREFIX = "SPEC-"

_ABOVE = re.compile(r"\s*(?:#{1,6}[ \t].*|>.*)?")
"""What may come before it: blank lines, headings, and the quotation about a split."""
_DASHES = re.compile(r"---[ \t]*")
_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})[ \t]*(?:ya?ml)?[ \t]*", re.IGNORECASE)
_ID_LINE = re.compile(rf"id[ \t]*:[ \t]*[\"']?{PREFIX}")


def has_head(text: str) -> bool:
    """Whether there is a frontmatter with a spec's id; the rest of it may be broken."""
    lines, (first, last) = _split(text)
    return last > 0 and any(map(_ID_LINE.match, lines[first : last - 1]))


def read_head(path: str, text: str) -> tuple[Keys, int]:
    """The spec's frontmatter and its first line; raises if it is missing or cannot be read."""
    lines, (first, last) = _split(text)
    if not last:
        cure = f"begin the file with '---', 'id: {PREFIX}…' and '---'"
        raise PlanError("there is no frontmatter", path=path, line=1, hint=cure)
    # Blank lines for the text above it keep the line numbers of the file.
    inside = ["---", *[""] * (first - 1), *lines[first : last - 1], "---", ""]
    found = frontmatter.read(path, "\n".join(inside))
    return found.data if found else Keys(first), first


def without_head(text: str) -> str:
    """The text with blank lines in place of its frontmatter, to keep the line numbers."""
    lines, (first, last) = _split(text)
    lines[first - 1 : last] = [""] * (last - first + 1)
    return "\n".join(lines)


def _split(text: str) -> tuple[list[str], tuple[int, int]]:
    """The text's lines, and those that open and close its frontmatter; (1, 0) for none."""
    lines = markdown.split_lines(text.removeprefix("\ufeff"))
    return lines, _bounds(lines) or (1, 0)


def _bounds(lines: list[str]) -> tuple[int, int] | None:
    """The lines that open and close the frontmatter, counted from 1."""
    first = next((n for n, line in enumerate(lines, 1) if not _ABOVE.fullmatch(line)), None)
    if first is None:
        return None
    opening = lines[first - 1]
    fence = _FENCE.fullmatch(opening)
    if not fence and not _DASHES.fullmatch(opening):
        return None
    closing = re.compile(rf"{re.escape(fence['fence'])}[ \t]*") if fence else _DASHES
    for number, line in enumerate(lines[first:], first + 1):
        if closing.fullmatch(line):
            return first, number
    return None


_HISTORY = frozenset({
    "audit history", "review history", "verification history", "revision history",
    "execution summary", "implementation summary", "completion", "completion summary",
})  # fmt: skip
_HISTORY_LEVEL = 2
"""Deeper sections of these names may be requirements."""
_PLANNED = frozenset({"task groups", "implementation tasks"})
_KEYS = ("id", "title", "status", "depends_on")
"""The keys of the frontmatter that are read."""
_HEADINGS = (
    "Acceptance Criteria", "Task Groups", "Implementation Tasks", "Execution Plan",
    "Files to Create", *(each.title() for each in sorted(_HISTORY)),
)  # fmt: skip
_FILLER = re.compile(r"[ \t]*(?:-[ \t]*){3,}|\s*")
_WHERE = {"fence": "code block", "code": "indented code", "quote": "quotation", "list": "list"}


class SpecDocument:
    """One text, without its frontmatter."""

    def __init__(self, text: str) -> None:
        self.document = markdown.parse(text)
        self.blocks = self.document.blocks
        sections = self.document.sections()
        self.history = outermost(each for each in sections if _is_history(each))
        past = indices(self.history)
        self.sections = [each for each in sections if each.start - 1 not in past]
        self.present = [(i, block) for i, block in enumerate(self.blocks) if i not in past]
        """The blocks outside reports, each with its index."""
        planned = indices(each for each in self.sections if label(each) in _PLANNED)
        found = [(index, table) for index, block in self.present if (table := _groups(block))]
        full = [table for _, table in found if _has_dependencies(table)]
        self.groups = full or [table for index, table in found if index in planned]
        """The tables of its groups: those with dependencies, else those under a known heading."""
        self.ignored = [table for _, table in found if table not in self.groups]

    def under(self, section: Section) -> tuple[Block, ...]:
        """The blocks under a heading."""
        return self.blocks[section.start : section.stop]

    def span(self, section: Section) -> range:
        """The lines of a section, with its heading."""
        ended = section.stop < len(self.blocks)
        after = self.blocks[section.stop].first if ended else len(self.document.lines) + 1
        return range(section.heading.first, after)

    def without(self, spans: Iterable[range]) -> str:
        """The spec's text without reports and without these lines."""
        cut = {number for each in self.history for number in self.span(each)}
        cut.update(number for span in spans for number in span)
        lines = [line for number, line in enumerate(self.document.lines, 1) if number not in cut]
        while lines and _FILLER.fullmatch(lines[-1]):
            lines.pop()
        return "\n".join(lines).lstrip("\n")

    def proposed(self) -> Table | None:
        """The newest groups that an audit proposed."""
        past = (self.under(each) for each in self.history)
        found = (table for blocks in past for block in blocks if (table := _groups(block)))
        full = [table for table in found if _has_dependencies(table)]
        return full[-1] if full else None

    def hidden(self) -> Iterator[tuple[int, str]]:
        """Lines that look like a table of groups, each with the block that hides it."""
        for _, block in self.present:
            if block.kind not in _WHERE:
                continue
            for number in range(block.first, block.last + 1):
                line = self.document.lines[number - 1].strip("> \t")
                if "|" not in line or "group" not in line.casefold():
                    continue
                found = columns_of(tables.labels(tables.cells(line)))
                if found is not None and found.dependencies is not None:
                    yield number, f"the {_WHERE[block.kind]} that begins on line {block.first}"


def label(section: Section) -> str:
    """A heading in the spelling that is compared, without its number."""
    return markdown.label_of(markdown.unnumbered(section.heading.text))


def indices(sections: Iterable[Section]) -> frozenset[int]:
    """The indices of the blocks in these sections, headings included."""
    return frozenset(index for each in sections for index in range(each.start - 1, each.stop))


def outermost(sections: Iterable[Section]) -> list[Section]:
    """The sections that are in none of the others."""
    found: list[Section] = []
    for each in sections:
        if not found or each.start > found[-1].stop:
            found.append(each)
    return found


def _is_history(section: Section) -> bool:
    return section.level <= _HISTORY_LEVEL and label(section) in _HISTORY


def _groups(block: Block) -> Table | None:
    table = tables.table_of(block)
    return table if table and columns_of(table.columns) else None


def _has_dependencies(table: Table) -> bool:
    columns = columns_of(table.columns)
    return columns is not None and columns.dependencies is not None


MAX_REPEATED = 20_000_000
"""Characters in all: the spec's text is given to each of its groups."""
_MAX_SHOWN = 100
"""With more groups than this, a group's text leaves out the rows of the others."""
_MAX_TITLE = 100

_Sections = Mapping[str, Sequence[tuple[Section, str]]]
"""By group its own sections, each with the rest of its heading."""

_PREFIX = re.compile(r"\ASPEC(?:-[\w.-]+)?\s*[:–—]\s*(?=\S)", re.IGNORECASE)  # noqa: RUF001
_LOOKS_LIKE_GROUP = re.compile(r"(?:(?:Task )?Group )?G[0-9]+[a-z]?\s*[:–—-]", re.IGNORECASE)  # noqa: RUF001
_WAVE_LINE = re.compile(r"\W*Wave\s*(?P<wave>[0-9]{1,4})\b(?P<rest>.*)", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,4}")
_WORD = re.compile(r"[\w.-]+")
_PATH = re.compile(r"[\w.@~+-]*(?:/[\w.@~+*-]+)+|[\w-][\w.-]*\.[A-Za-z]\w{0,7}")


def recognises(source: Source) -> bool:
    """Whether the file's frontmatter is a spec's, and no milestone follows it."""
    text = source.text
    if text is None or not has_head(text):
        return False
    if not milestone.has_task(text):
        return True
    # Only a spec has groups; without them, task headings make it a milestone.
    return bool(SpecDocument(without_head(text)).groups)


def parse(source: Source) -> Plan:
    """The plan as written."""
    return _Reader(source.path, source.text or "").plan()


class _Reader(Reader):
    """Reads one text."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(path)
        self.head, self.first = read_head(path, text)
        self.spec = SpecDocument(without_head(text))
        self.done = is_done(self.head_text("status"))

    def plan(self) -> Plan:
        spec_id = self.head_text("id")
        if not spec_id:
            line = self.head.lines.get("id", self.first)
            self.refuse(line, "the spec has no id", "write 'id: SPEC-1'")
        groups, notes = read_groups(self.path, self.spec.groups)
        self.notes += notes
        title = self.title() or spec_id
        self.note_head()
        self.warn_of_slips()
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
            notes=self.sorted_notes(),
        )

    def head_text(self, key: str) -> str:
        """The text of a key of the frontmatter, on one line; empty for any other value."""
        return " ".join(text_in(self.head, key).split())

    def title(self) -> str:
        titles = (each.heading.text for each in self.spec.sections if each.level == 1)
        written = self.head_text("title") or next(titles, "")
        return _PREFIX.sub("", " ".join(written.split()))

    def task(self, spec_id: str, title: str) -> Task:
        """The one task of a spec without groups."""
        blocks = [block for _, block in self.spec.present]
        found = self.criteria(self.spec.sections, blocks)
        return Task(
            id=spec_id,
            title=title,
            text=self.spec.without(()),
            acceptance_criteria=tuple(criterion.text for criterion in found),
            marked_done=self.done,
            line=self.first,
        )

    def criteria(self, sections: Iterable[Section], blocks: Iterable[Block]) -> list[Criterion]:
        """The criteria under headings of that name, else under bold labels."""
        headed = (each for each in sections if criteria.is_criteria(each.heading.text))
        found = [
            criterion
            for section in outermost(headed)
            for criterion in criteria.read(self.spec.document, self.spec.under(section))
        ]
        for field in () if found else markdown.fields(blocks):
            if field.label == criteria.LABEL and not field.level:
                found += criteria.read(self.spec.document, field.below)
        return found

    # Groups

    def tasks(self, groups: Sequence[Group], spec: str) -> tuple[Task, ...]:
        sections = self.own_sections({group.id.casefold(): group.id for group in groups})
        owned = [section for each in sections.values() for section, _ in each]
        inside = indices(owned)
        free = [each for each in self.spec.sections if each.start - 1 not in inside]
        blocks = [block for index, block in self.spec.present if index not in inside]
        own = {group: self.own_criteria(each) for group, each in sections.items()}
        bound = criteria.bound(groups, self.criteria(free, blocks), own)
        common = self.common(groups, owned)
        creates = self.creates(groups, sections, free)
        waves = sorted({group.wave for group in groups})
        places = {wave: f"wave {place} of {len(waves)}" for place, wave in enumerate(waves, 1)}
        tasks: list[Task] = []
        for group in groups:
            about = sections.get(group.id, ())
            if not group.tasks and not about:
                cure = "describe its work in its row"
                self.error(group.line, f"group {group.id!r} has no tasks", cure)
            headings = [title for _, title in about if title]
            spans = markdown.code_spans(group.tasks) if "`" in group.tasks else []
            tasks.append(
                Task(
                    id=group.id,
                    title=_cut(group.title or next(iter(headings), "") or group.tasks or group.id),
                    text=self.text(group, f"{spec}, {places[group.wave]}", about, common),
                    acceptance_criteria=bound[group.id],
                    depends_on=group.depends_on,
                    files=tuple(dict.fromkeys(filter(_PATH.fullmatch, spans))),
                    creates=certain_paths(creates[group.id]),
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
            if (group := group_of(each.heading.text, ids))
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
        """The files that each group must create, from its own section or from its row."""
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
        """The first path on each line of the lists and tables of files to create."""
        lists = (
            s for s in sections if FILES_TO_CREATE.fullmatch(markdown.label_of(s.heading.text))
        )
        lines = (line for each in lists for line in self.spec.document.body(each).split("\n"))
        firsts = (span for line in lines for span in markdown.code_spans(line)[:1])
        return [span for span in firsts if _PATH.fullmatch(span)]

    def common(self, groups: Sequence[Group], owned: Sequence[Section]) -> str:
        """The text for every group: the spec without the sections of single groups."""
        spans = [self.spec.span(section) for section in owned]
        if len(groups) > _MAX_SHOWN:
            rows = (row for table in self.spec.groups for row in table.rows)
            spans += (range(row.line, row.line + 1) for row in rows)
        text = self.spec.without(spans)
        if len(text) * len(groups) > MAX_REPEATED:
            what = f"the spec is too long to be given to each of its {len(groups):,} groups"
            self.refuse(0, what, "split it into several specs")
        return text

    def text(
        self, group: Group, place: str, about: Sequence[tuple[Section, str]], common: str
    ) -> str:
        rows = [("Tasks", group.tasks), *group.rest]
        task = (
            f"Group {group.id} of {place}. Do what this group is to do and leave the others theirs;"
        )
        parts = [
            f"{task} those it depends on are done.",
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
        listed = self.head.get("depends_on")
        named = listed if isinstance(listed, list) else [listed]
        words = ", ".join(each for each in named if isinstance(each, str) and each.strip())
        if words:
            what = f"depends on {words}, which is ignored: a spec is a plan by itself"
            self.note(self.head.lines["depends_on"], what)
        if self.head_text("status").casefold() == "split":
            what = "says that the spec was split into others, which are plans by themselves"
            self.note(self.head.lines["status"], what)
        for section in self.spec.history:
            self.note(section.heading.first, f"{section.heading.text!r} is a report: not read")
        for table in self.spec.ignored:
            self.note(table.line, "a table of groups without a column of dependencies: not read")

    def warn_of_slips(self) -> None:
        """Warn of keys, headings, labels and columns that are slips of those that are read."""
        self.warn_of_keys(self.head, _KEYS)
        for section in self.spec.sections:
            self.warn_of_label(section.heading.first, label(section), _HEADINGS, "## {}")
        for field in markdown.fields([block for _, block in self.spec.present]):
            if not field.level:
                self.warn_of_label(field.line, field.label, _HEADINGS[:1], "**{}:**")
        for _, block in self.spec.present:
            if (table := tables.table_of(block)) is not None:
                for column, meant in column_slips(table.columns).items():
                    what = f"the column {column!r} is not read"
                    self.warn(table.line, what, f"did you mean {meant.capitalize()!r}?")

    def note_look_alikes(self) -> None:
        """Note why text that looks like groups makes none."""
        for line, where in self.spec.hidden():
            self.note(line, f"looks like a table of groups, but is in {where}")
        if proposed := self.spec.proposed():
            what = "groups that an audit proposed are not read; the spec's own text has none"
            self.note(proposed.line, what)
        for section in self.spec.sections:
            if _LOOKS_LIKE_GROUP.match(section.heading.text):
                what = "looks like a group, but only a table of Task Groups makes groups"
                self.note(section.heading.first, what)

    def note_execution_plan(self, groups: Sequence[Group]) -> None:
        """Note where the Execution Plan differs from the table of groups."""
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
                        what = f"puts {group} into wave {wave}; its Task Groups say {waves[group]}"
                        self.note(line, f"{what}, which counts")
            if missing and len(missing) < len(waves):
                self.note(section.heading.first, f"does not name {', '.join(missing)}")

    def planned(self, section: Section) -> Iterator[tuple[int, int, list[str]]]:
        """Each line of an Execution Plan that names a wave, and its words."""
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


def _cut(title: str) -> str:
    text = " ".join(title.split())
    return text if len(text) <= _MAX_TITLE else text[: _MAX_TITLE - 1].rstrip() + "…"
