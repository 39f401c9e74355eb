"""The Task Groups table of a spec: each group's tasks, wave and dependencies.

A row that looks like a group and cannot be used is an error, because a group that is lost or starts
too early changes what is done. All rules about the words in that table are here.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from windlass.core.plan import Finding
from windlass.formats.reading import Reader, dependency_order, refuse_too_many
from windlass.formats.slips import slip_of
from windlass.formats.tables import Row, Table
from windlass.formats.words import TICKS, is_done, is_nothing

MAX_EDGES = 100_000
"""Far more dependencies than a spec needs; a range is short to write and expensive to read."""

_SPELLINGS = {
    "group": "group", "task group": "group", "group id": "group",
    "tasks": "tasks", "task": "tasks", "description": "tasks", "scope": "tasks", "work": "tasks",
    "dependencies": "dependencies", "dependency": "dependencies", "depends on": "dependencies",
    "depends": "dependencies", "deps": "dependencies", "blocked by": "dependencies",
    "wave": "wave", "status": "status", "segment": "segment",
    "criteria": "criteria", "acceptance criteria": "criteria", "ac": "criteria", "acs": "criteria",
}  # fmt: skip
_LAST_WAVE = 10_000
"""The wave of a row whose own cannot be read: later than any, so that nothing else is wrong."""
_SUMS = frozenset({"total", "totals", "sum", "all", "overall"})
_EVERY = frozenset(
    {"all", "all above", "all previous", "all previous groups", "all prior", "above"}
)

_TICKS = "✓✔✅☑"
_MARKS = re.compile(rf"\A\s*(?:\[(?P<box>[ xX])\]|(?P<tick>[{_TICKS}])|[✗❌⬜🔄⚡○⏳🚧])\ufe0f?\s*")
_GROUP_WORD = re.compile(r"(?:task[ -]+)?groups?[ #-]+(?=\S)", re.IGNORECASE)
_ASIDE = re.compile(r"\([^()]*\)")
_NAME = re.compile(
    r"(?P<id>(?:(?:task )?group )?\S+?)(?:\s*:\s+|\s+[-–—]+\s+)(?P<title>.+)",  # noqa: RUF001
    re.DOTALL | re.IGNORECASE,
)
SEPARATORS = re.compile(r"[,;&+/]|\band\b", re.IGNORECASE)
_RANGE = re.compile(
    r"(?P<stem>\D*?)(?P<low>[0-9]{1,6})\s*(?:-|–|—|\.\.+|\bto\b|\bthrough\b)\s*"  # noqa: RUF001
    r"(?P<again>\D*?)(?P<high>[0-9]{1,6})",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(?P<stem>\D*)(?P<number>[0-9]{1,6})")
_WAVE = re.compile(
    r"(?:all\s+of\s+|all\s+)?(?:waves?\s*#?|w)?\s*(?P<number>[0-9]{1,4})", re.IGNORECASE
)
_WAVE_WORD = re.compile(r"(?:all\s+of\s+|all\s+)?waves?\b", re.IGNORECASE)
_OTHER_SPEC = re.compile(r"(?:SPEC|TODO|TASK)-\S+", re.IGNORECASE)
_WORD = re.compile(r"[\w.-]+")


class Group(Struct, frozen=True, kw_only=True):
    """One row of the table."""

    id: str
    title: str
    """The text beside its id, if any."""
    tasks: str
    wave: int
    depends_on: tuple[str, ...]
    criteria: str
    """The criteria that the row names, as written."""
    done: bool
    rest: tuple[tuple[str, str], ...]
    """The other columns as written, each with its header."""
    line: int


class Columns(Struct, frozen=True, kw_only=True):
    """The indices of a table's columns."""

    group: int
    tasks: int
    dependencies: int | None = None
    wave: int | None = None
    segment: int | None = None
    """Parts of one group in rows of their own."""
    status: int | None = None
    criteria: int | None = None


def columns_of(labels: Sequence[str]) -> Columns | None:
    """The columns of a table of task groups; None for another table."""
    found: dict[str, int] = {}
    for index, label in enumerate(labels):
        if label in _SPELLINGS:
            found.setdefault(_SPELLINGS[label], index)
    if not {"group", "tasks"} <= found.keys() or found.keys().isdisjoint({"dependencies", "wave"}):
        return None
    return Columns(**found)


def column_slips(labels: Sequence[str]) -> dict[str, str]:
    """The columns that are slips, with what they mean, in a table that is of groups but for them.

    A table of groups that lost a column of its order is meant too.
    """
    meant = {label: slip for label in labels if (slip := slip_of(label, _SPELLINGS))}
    mended = columns_of([meant.get(label, label) for label in labels]) if meant else None
    return meant if mended is not None and mended != columns_of(labels) else {}


def bare_id(text: str) -> str:
    """An id without emphasis, marks, asides and the word 'Group'."""
    bare = _ASIDE.sub("", _MARKS.sub("", text)).strip("*_`[]# \t")
    return _GROUP_WORD.sub("", bare, count=1) if _GROUP_WORD.match(bare) else bare


def group_of(heading: str, ids: Mapping[str, str]) -> tuple[str, str] | None:
    """The group in a heading, and the rest of the heading; `ids` has lower case keys."""
    bare = _MARKS.sub("", heading).strip("*_` \t")
    named = _NAME.fullmatch(bare)
    known = ids.get(bare_id(named["id"] if named else bare).casefold())
    title = _ASIDE.sub("", named["title"]).strip("*_` \t") if named else ""
    return (known, " ".join(title.split())) if known else None


def read_groups(path: str, tables: Iterable[Table]) -> tuple[tuple[Group, ...], list[Finding]]:
    """The groups of these tables, in order, and notes about what is not used."""
    tables = tuple(tables)
    rows = sum(len(table.rows) for table in tables)
    refuse_too_many(path, rows, line=tables[0].line if tables else 0)
    reader = _Reader(path, tables)
    return reader.groups(), reader.notes


class _Draft(Struct, frozen=True, kw_only=True):
    """A row with its id, before the other rows are known."""

    id: str
    title: str
    table: Table
    columns: Columns
    row: Row

    @property
    def wave(self) -> str:
        return self.row.cell(self.columns.wave).strip("*_` ")


class _Reader(Reader):
    """Reads a spec's tables."""

    def __init__(self, path: str, tables: Iterable[Table]) -> None:
        super().__init__(path)
        self.segments: dict[str, list[str]] = defaultdict(list)
        self.drafts = [
            draft
            for table in tables
            if (columns := columns_of(table.columns)) is not None
            for row in table.rows
            if (draft := self.draft(table, columns, row)) is not None
        ]
        self.ids = {draft.id.casefold(): draft.id for draft in self.drafts}
        self.edges = 0
        self.by_wave: dict[str, list[str]] = defaultdict(list)
        stems: dict[str, dict[int, str]] = defaultdict(dict)
        for draft in self.drafts:
            if wave := _WAVE.fullmatch(draft.wave):
                self.by_wave[wave["number"].lstrip("0")].append(draft.id)
            if numbered := _NUMBERED.fullmatch(draft.id):
                stems[numbered["stem"].casefold()][int(numbered["number"])] = draft.id
        self.stems = {stem: sorted(known.items()) for stem, known in stems.items()}

    def draft(self, table: Table, columns: Columns, row: Row) -> _Draft | None:
        if all(is_nothing(cell) for cell in row.cells):
            return None  # an empty row of a template
        if len(row.cells) > len(table.header):
            what = f"the row has {len(row.cells)} cells, and the table {len(table.header)} columns"
            self.error(row.line, what, "write '\\|' for a pipe inside a cell")
        if len(row.cells) < len(table.header):
            self.note(row.line, "has fewer cells than the table has columns; the rest are empty")
        written = _MARKS.sub("", row.cell(columns.group)).strip("*_` \t")
        named = _NAME.fullmatch(written)
        group = bare_id(named["id"] if named else written)
        if not row.cell(columns.tasks) and group.casefold() in _SUMS:
            self.note(row.line, f"{group!r} is a sum and not a group")
            return None
        if is_nothing(group):
            self.error(row.line, "the row has no group", "give it an id, such as 'G2'")
            return None
        segment = row.cell(columns.segment)
        if not is_nothing(segment):
            whole, group = group, f"{group}-{bare_id(segment)}"
            self.segments[whole.casefold()].append(group)
        title = named["title"].strip("*_` \t") if named else ""
        return _Draft(id=group, title=title, table=table, columns=columns, row=row)

    def groups(self) -> tuple[Group, ...]:
        depends = [self.depends_on(draft) for draft in self.drafts]
        waves = self.waves(depends)
        return tuple(map(_group, self.drafts, depends, waves))

    # Dependencies

    def depends_on(self, draft: _Draft) -> tuple[str, ...]:
        found: dict[str, None] = {}
        cell = _ASIDE.sub(" ", draft.row.cell(draft.columns.dependencies))
        for part in SEPARATORS.split(cell):
            found.update(dict.fromkeys(self.named(draft.row, bare_id(part))))
        self.edges += len(found)
        if self.edges > MAX_EDGES:
            what = f"more than {MAX_EDGES:,} dependencies"
            self.refuse(draft.row.line, what, "name fewer of them")
        return tuple(found)

    def named(self, row: Row, word: str) -> Iterable[str]:
        """The ids in a part of the cell."""
        if is_nothing(word):
            return ()
        if known := self.ids.get(word.casefold()):
            return (known,)
        if word.casefold() in _EVERY:
            return [draft.id for draft in self.drafts if draft.row.line < row.line]
        segments = self.segments.get(word.casefold(), [])
        if several := segments or self.ranged(word) or self.of_wave(word):
            return several
        if _OTHER_SPEC.fullmatch(word):
            self.note(row.line, f"depends on {word}, which is not a group of this spec: ignored")
            return ()
        if len(word.split()) == 1:
            return (word,)  # an id of no group here: the graph refuses it by name
        words = (self.ids.get(each.casefold()) for each in _WORD.findall(word))
        ids = [found for found in words if found]
        what = f"only {', '.join(ids)} is read" if ids else "nothing names a group of this spec"
        self.note(row.line, f"of the dependencies {word!r} {what}")
        return ids

    def ranged(self, word: str) -> list[str]:
        """The groups in a range such as 'G2-G4', where both ends are groups."""
        found = _RANGE.fullmatch(word)
        if found is None or found["again"].casefold() not in ("", found["stem"].casefold()):
            return []
        known = self.stems.get(found["stem"].casefold(), [])
        low, high = int(found["low"]), int(found["high"])
        first, last = bisect_left(known, (low, "")), bisect_left(known, (high + 1, "")) - 1
        ends = [known[at][0] for at in (first, last) if at < len(known)]
        return [each for _, each in known[first : last + 1]] if ends == [low, high] else []

    def of_wave(self, word: str) -> list[str]:
        found = _WAVE.fullmatch(word) if _WAVE_WORD.match(word) else None
        return self.by_wave.get(found["number"].lstrip("0"), []) if found else []

    # Waves

    def waves(self, depends: Sequence[tuple[str, ...]]) -> list[int]:
        """The waves in the column; without one, each group is a wave after its dependencies."""
        if all(is_nothing(draft.wave) for draft in self.drafts):
            return self.computed(depends)
        waves = [self.wave(draft) for draft in self.drafts]
        by_id = {draft.id: wave for draft, wave in zip(self.drafts, waves, strict=True)}
        for draft, after, wave in zip(self.drafts, depends, waves, strict=True):
            for dep in after:
                if by_id.get(dep) == wave and dep != draft.id:
                    # A common spelling: groups of one wave wait for each other.
                    self.note(draft.row.line, f"depends on {dep} of the same wave {wave}")
                elif by_id.get(dep, -1) > wave:
                    what = f"group {draft.id!r} is in wave {wave} and depends on {dep!r}"
                    cure = "move it to a later wave, or remove the dependency"
                    self.error(draft.row.line, f"{what}, which is in wave {by_id[dep]}", cure)
        return waves

    def wave(self, draft: _Draft) -> int:
        found = _WAVE.fullmatch(draft.wave)
        if found is None:
            what = f"the wave cannot be {draft.wave!r}" if draft.wave else "the row has no wave"
            self.error(draft.row.line, what, "write a number, such as '2'")
            return _LAST_WAVE
        return int(found["number"])

    def computed(self, depends: Sequence[tuple[str, ...]]) -> list[int]:
        """A group without dependencies is in wave 1; so is a cycle, which the graph refuses."""
        waves = dict.fromkeys((draft.id for draft in self.drafts), 1)
        known = {
            draft.id: waves.keys() & after
            for draft, after in zip(self.drafts, depends, strict=True)
        }
        for group in dependency_order(known):
            waves[group] = max((waves[dep] + 1 for dep in known[group]), default=1)
        return [waves[draft.id] for draft in self.drafts]


def _group(draft: _Draft, depends_on: tuple[str, ...], wave: int) -> Group:
    columns, row = draft.columns, draft.row
    read = (columns.group, columns.tasks, columns.wave)
    return Group(
        id=draft.id,
        title=draft.title,
        tasks=row.cell(columns.tasks),
        wave=wave,
        depends_on=depends_on,
        criteria=row.cell(columns.criteria),
        done=_is_done(row.cell(columns.group), row.cell(columns.status)),
        rest=tuple(
            (header, cell)
            for index, header in enumerate(draft.table.header)
            if index not in read and not is_nothing(cell := row.cell(index))
        ),
        line=row.line,
    )


def _is_done(group: str, status: str) -> bool:
    mark = _MARKS.match(group)
    ticked = bool(mark and (mark["tick"] or (mark["box"] or " ") in "xX"))
    word = status.strip("*_`[]. \t\ufe0f").casefold().split(" ")[0]
    return ticked or word in TICKS or is_done(word)
