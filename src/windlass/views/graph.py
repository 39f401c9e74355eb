"""The order of a plan's tasks as a small picture: a line for each task, rails for dependencies.

Every task is in a column, from which a rail runs down to the last task that waits for it. A task's
own line reaches to the rails of all that it waits for: it ends some, and only touches others. A
rail that a line crosses without touching stays whole. Where several tasks wait for the same
several, the rails first meet on a line of their own, and one rail continues from there.
So the picture shows exactly the plan's order, and can be read back.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from windlass.core.plan import Plan, Task, ordered, steps
from windlass.views.columns import columns, cut, wrapped
from windlass.views.words import one_line, plural

MAX_ROWS = 100
"""The most rows of a picture."""
MAX_RAILS = 12
_ID_COLUMNS = 16
_DASH = "╌"
_ENDS_HERE = frozenset({"○", "●"})
"""A task without a rail below it; a task right below it would seem to wait for it."""
FIRST, LATER, MEETING = "○", "●", "◇"
RAILS = f"{FIRST} starts at once · {LATER} waits for all that its line leads up to"
STAGES = f"{FIRST} starts with its stage · {LATER} waits for all that its line leads up to"
MEETINGS = f" · {MEETING} lines meet"
STEPS = "the tasks of a line can start at once, when all above it are done"


class Picture(Struct, frozen=True, kw_only=True):
    """The lines, and how to read them."""

    legend: str
    lines: tuple[str, ...]


def picture(plan: Plan, width: int) -> Picture:
    """The tasks in a possible order, with rails; in steps if there are too many rails."""
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
            text = f"{row.task.id:{ids}}  {one_line(row.task.title, width)}"
            lines.append(cut(f"{gutter:{widest}}  {text}", width).rstrip())
        else:
            filled = f"{gutter:{_DASH if row.barrier else ' '}<{widest}}"
            lines.append(cut(f"{filled}  {one_line(row.stage, width)}", width).rstrip())
    drawn = sum(row.task is not None for row in shown)
    legend = STAGES if plan.stages else RAILS
    legend += MEETINGS if any(row.key and not row.task for row in shown) else ""
    return Picture(legend=legend, lines=(*lines, *_left_out(len(plan.tasks) - drawn)))


class Row(NamedTuple):
    """A task, a point where rails meet, or the start of a stage; and what it waits for."""

    key: str = ""
    waits: tuple[str, ...] = ()
    task: Task | None = None
    stage: str = ""
    barrier: bool = False
    """The stage begins when all above it is done."""


def rows_of(plan: Plan) -> list[Row]:
    """Every task after those that it waits for, and stage by stage where possible."""
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
    """The tasks in a possible order, and whether they are sorted by stage.

    They are, unless stages and dependencies contradict each other.
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
        """The row that each column's rail comes from; None where there is no rail."""
        self._above = ""
        """The line above: a task must not be right below one that it does not wait for."""

    def gutters(self, rows: Iterable[Row]) -> list[str] | None:
        """The drawn part of each row; None where it would be too wide."""
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
        """A column for a row that continues none of the rails that end here."""
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
"""Where a line touches a rail: whether the line goes left and right, and the rail down."""


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
