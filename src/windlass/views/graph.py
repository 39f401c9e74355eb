"""The order of a plan's tasks as a small picture: each task a line, what it waits for as rails.

Every task has a place in a column, from which a rail runs down to the last task that waits for it.
A task's own line reaches to the rails of all it waits for: those it ends, those it only touches.
A rail that a line crosses without touching stays whole. Where several tasks wait for the same
several, the rails meet on a line of their own first, and one goes on from there.
So what is drawn says exactly what the plan says, and can be read back.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from windlass.core.plan import Plan, Task, ordered, steps
from windlass.views.columns import columns, cut, wrapped
from windlass.views.words import one_line, plural

MAX_ROWS = 100
"""Of a picture: what is longer is no picture."""
MAX_RAILS = 12
_ID_COLUMNS = 16
_DASH = "╌"
_ENDS_HERE = frozenset({"○", "●"})
"""A task of which no rail goes on; what stands right below it would seem to wait for it."""
FIRST, LATER, MEETING = "○", "●", "◇"
RAILS = f"{FIRST} starts at once · {LATER} waits for all that its line leads up to"
STAGES = f"{FIRST} starts with its stage · {LATER} waits for all that its line leads up to"
MEETINGS = f" · {MEETING} lines meet"
STEPS = "what stands on a line can be done at once, when all above it is done"


class Picture(Struct, frozen=True, kw_only=True):
    """The lines, and how to read them."""

    legend: str
    lines: tuple[str, ...]


def picture(plan: Plan, width: int) -> Picture:
    """The tasks in an order they can be done in, with rails; in steps where rails are too many."""
    rows = rows_of(plan)
    shown = rows[:MAX_ROWS]
    gutters = _Rails(rows).gutters(shown)
    if gutters is None:
        return Picture(legend=STEPS, lines=tuple(_in_steps(plan, width)))
    widest = max(map(len, gutters))
    ids = min(max(columns(row.task.id) for row in shown if row.task), _ID_COLUMNS)
    lines: list[str] = []
    for row, gutter in zip(shown, gutters, strict=True):
        if row.task is not None:
            told = f"{row.task.id:{ids}}  {one_line(row.task.title, width)}"
            lines.append(cut(f"{gutter:{widest}}  {told}", width).rstrip())
        else:
            filled = f"{gutter:{_DASH if row.barrier else ' '}<{widest}}"
            lines.append(cut(f"{filled}  {one_line(row.stage, width)}", width).rstrip())
    drawn = sum(row.task is not None for row in shown)
    legend = STAGES if plan.stages else RAILS
    legend += MEETINGS if any(row.key and not row.task for row in shown) else ""
    return Picture(legend=legend, lines=(*lines, *_left_out(len(plan.tasks) - drawn)))


class Row(NamedTuple):
    """A task, a place where rails meet, or the beginning of a stage; and what it waits for."""

    key: str = ""
    waits: tuple[str, ...] = ()
    task: Task | None = None
    stage: str = ""
    barrier: bool = False
    """The stage begins when all above it is done."""


def rows_of(plan: Plan) -> list[Row]:
    """Every task after what it waits for, and stage by stage where that is possible."""
    tasks, grouped = by_stage(plan)
    waits = {task.id: tuple(dict.fromkeys(task.depends_on)) for task in tasks}
    alike = Counter(frozenset(deps) for deps in waits.values())
    meetings: dict[frozenset[str], str] = {}
    rows: list[Row] = []
    barriers = {stage.name for stage in plan.stages[1:]}
    staged = grouped and any(task.stage for task in tasks)
    for before, task in zip((None, *tasks), tasks, strict=False):
        if staged and (before is None or before.stage != task.stage):
            barrier = task.stage in barriers
            named = f"stage {task.stage}" if task.stage else "no stage"
            rows.append(Row(stage=f"then {named}" if barrier else named, barrier=barrier))
        deps = waits[task.id]
        together = frozenset(deps)
        count = alike[together]
        if count * len(deps) > count + len(deps):  # fewer lines where they meet first
            if together not in meetings:
                meetings[together] = f"\0{len(meetings)}"
                rows.append(Row(meetings[together], deps))
            deps = (meetings[together],)
        rows.append(Row(task.id, deps, task))
    return rows


def by_stage(plan: Plan) -> tuple[Sequence[Task], bool]:
    """The tasks in an order they can be done in, and whether it goes stage by stage.

    It does unless stages and dependencies contradict each other.
    """
    tasks = ordered(plan)
    names = [*(stage.name for stage in plan.stages), *(task.stage for task in tasks)]
    place = {name: number for number, name in enumerate(dict.fromkeys(names))}
    grouped = sorted(tasks, key=lambda task: place[task.stage])
    done: set[str] = set()
    for task in grouped:
        if not done.issuperset(task.depends_on):
            return tasks, False
        done.add(task.id)
    return grouped, True


class _Rails:
    """One drawing, from the first row down."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._waiting = Counter(dep for row in rows for dep in row.waits)
        self._rails: list[str | None] = []
        """Who each column's rail comes from; None where there is none."""
        self._above = ""
        """The line above, for a task must not stand below one it has nothing to do with."""

    def gutters(self, rows: Iterable[Row]) -> list[str] | None:
        """The part of each row that is drawn; None where it would be too wide."""
        drawn: list[str] = []
        for row in rows:
            drawn.append(self._draw(row))
            if len(self._rails) > MAX_RAILS:
                return None
        return drawn

    def _draw(self, row: Row) -> str:
        if not row.key:
            self._above = ""
            empty = _DASH if row.barrier else " "
            rails = (empty if source is None else "│" for source in self._rails)
            return empty.join(rails).rstrip()
        touched = [at for at, source in enumerate(self._rails) if source in row.waits]
        self._waiting.subtract(row.waits)
        ended = [at for at in touched if not self._waiting[self._rails[at] or ""]]
        own = ended[0] if ended else self._free(row)
        span = range(min((*touched, own)), max((*touched, own)))
        cells: list[str] = []
        for at in range(len(self._rails)):
            if at == own:
                cell = MEETING if row.task is None else LATER if row.waits else FIRST
            elif at in touched:
                cell = _CORNERS[at > span.start, at in span, at not in ended]
            elif self._rails[at] is not None:
                cell = "│"
            else:
                cell = "─" if at in span else " "
            cells += [cell, "─" if at in span else " "]
        for at in ended:
            self._rails[at] = None
        self._rails[own] = row.key if self._waiting[row.key] else None
        self._above = "".join(cells).rstrip()
        return self._above

    def _free(self, row: Row) -> int:
        """A column for a row that goes on from no rail that ends here."""
        for at, source in enumerate(self._rails):
            above = self._above[2 * at : 2 * at + 1]
            if source is None and (not row.waits or above not in _ENDS_HERE):
                return at
        self._rails.append(None)
        return len(self._rails) - 1


_CORNERS = {
    (False, True, True): "├",
    (True, False, True): "┤",
    (True, True, True): "┼",
    (False, True, False): "└",
    (True, False, False): "┘",
    (True, True, False): "┴",
}
"""Where a line touches a rail: whether it goes left and right from there, and the rail on."""


def _in_steps(plan: Plan, width: int) -> Iterable[str]:
    members: dict[int, list[str]] = {}
    for task, step in steps(plan).items():
        members.setdefault(step, []).append(task)
    margin = len(str(len(members)))
    lines: list[str] = []
    for step in sorted(members):
        first, *more = wrapped(members[step], width - margin - 2, between="  ")
        lines += [f"{step:>{margin}}  {first}", *(f"{'':{margin}}  {line}" for line in more)]
    if len(lines) <= MAX_ROWS:
        return lines
    return [*lines[:MAX_ROWS], f"… and {plural(len(lines) - MAX_ROWS, 'more line')}"]


def _left_out(count: int) -> list[str]:
    return [f"… and {count:,} more, too many to draw"] if count else []
