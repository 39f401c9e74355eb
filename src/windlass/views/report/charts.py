"""The layout of a report's charts: the timeline, the graph of tasks, and the cost bars.

Law: only numbers and words come from here; the templates draw them. Times are in percent, so that a
track can have any width.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from msgspec import Struct

from windlass.core.plan import Plan, steps
from windlass.views.cost import Cost, total
from windlass.views.graph import rows_of
from windlass.views.report.model import Bar, Gap, Report

_GAP = 0.04
"""The largest part of the whole that one gap may take."""
_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 10800, 21600, 43200),
    *(86400 * days for days in (1, 2, 7, 14, 28, 91, 365, 3650)),
)
_TICKS = 6
_LETTER, _SPACE = 2.0, 3.0
"""Percent that a letter of a tick's text takes on a phone, and the space after it."""
_DAY, _MINUTE = 86400, 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PlacedGap(Struct, frozen=True):
    """A gap on the line: its start, its width, and its seconds."""

    place: float
    room: float
    seconds: float


class Scale:
    """Maps times to 0 to 100; a time in which no process ran the plan takes little space."""

    def __init__(self, start: datetime, end: datetime, gaps: Sequence[Gap]) -> None:
        self._spans: list[tuple[datetime, datetime, float, float, bool]] = []
        """Start, end, position, width, and whether it is a gap."""
        away = sum((gap.end - gap.start).total_seconds() for gap in gaps)
        work = max((end - start).total_seconds() - away, 1e-3)
        place, at = 0.0, start
        for gap in gaps:
            place = self._add(at, gap.start, place, (gap.start - at).total_seconds())
            length = (gap.end - gap.start).total_seconds()
            place = self._add(gap.start, gap.end, place, min(length, _GAP * work), gap=True)
            at = gap.end
        self._length = max(self._add(at, end, place, (end - at).total_seconds()), 1e-3)

    def _add(
        self, start: datetime, end: datetime, place: float, room: float, *, gap: bool = False
    ) -> float:
        self._spans.append((start, end, place, max(room, 0.0), gap))
        return place + max(room, 0.0)

    def at(self, moment: datetime) -> float:
        """The position of a time, in percent."""
        for start, end, place, room, _ in self._spans:
            if moment <= end:
                whole = (end - start).total_seconds()
                part = (moment - start).total_seconds() / whole if whole > 0 else 0.0
                return 100 * (place + room * min(max(part, 0.0), 1.0)) / self._length
        return 100.0

    def gaps(self) -> Iterator[PlacedGap]:
        for start, end, place, room, gap in self._spans:
            if gap:
                lasted = (end - start).total_seconds()
                yield PlacedGap(100 * place / self._length, 100 * room / self._length, lasted)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Round times, each with its label."""
        step = next((each for each in _STEPS if self._length / each <= _TICKS), _STEPS[-1])
        first, last = self._spans[0][0], self._spans[-1][1]
        form = "%H:%M" if step >= _MINUTE else "%H:%M:%S"
        if (last - first).total_seconds() > _DAY:
            form = "%d %b" if step >= _DAY else "%d %b %H:%M"
        free = 0.0
        for start, end, _, _, gap in self._spans:
            for moment in () if gap else _round_moments(start, end, step):
                place, words = self.at(moment), f"{moment:{form}}"
                wide = _LETTER * len(words)
                if free <= place <= 100 - wide:
                    free = place + wide + _SPACE
                    yield place, words


def _round_moments(start: datetime, end: datetime, step: int) -> Iterator[datetime]:
    since = (start - _EPOCH).total_seconds()
    moment = _EPOCH + timedelta(seconds=-(-since // step) * step)
    while moment <= end:
        yield moment
        moment += timedelta(seconds=step)


_HEIGHT, _SMALL = 20, 12
_MANY = 60
"""With more lanes than this, they are drawn smaller."""
_LEAST = 0.3
"""Percent that even the shortest bar takes, so that it can be seen and clicked."""
_THICK = {"queue": 0.12, "wait": 0.4, "person": 0.4}
"""The height of a waiting bar as a part of the lane; a bar of work takes most of it."""
_LEGEND = (
    ("player", "Player"),
    ("checks", "checks"),
    ("coach", "Coach"),
    ("merge", "merging"),
    ("wait", "waits for the provider"),
    ("person", "waits for a person"),
    ("queue", "waits in the queue"),
    ("lost", "failed"),
)


class Box(Struct, frozen=True):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


class Lanes:
    """A lane for every task that was started, in that order."""

    def __init__(self, report: Report) -> None:
        self.lanes = sorted((t for t in report.tasks if t.bars), key=lambda t: t.bars[0].start)
        self.whole = report.whole
        self.scale = Scale(report.started_at, report.at, report.gaps)
        self.small = len(self.lanes) > _MANY
        self.height = _SMALL if self.small else _HEIGHT
        self.waiting = len(report.tasks) - len(self.lanes)
        bars = [bar for task in report.tasks for bar in task.bars]
        used = {bar.kind for bar in (*bars, *report.whole)}
        used |= {"lost"} if any(bar.bad for bar in bars) else set()
        self.legend = [(kind, word) for kind, word in _LEGEND if kind in used]

    def bar(self, bar: Bar) -> Box:
        """The place of a bar on its track."""
        left = self.scale.at(bar.start)
        wide = max(self.scale.at(bar.end) - left, _LEAST)
        tall = self.height * _THICK.get(bar.kind, 0.8)
        return Box(min(left, 100 - wide), (self.height - tall) / 2, wide, tall)


WIDE, TALL = 168, 38
_ACROSS, _DOWN, _BETWEEN = 14, 30, 10
_SLOTS = 6
"""The most tasks beside each other."""
_REDUCED = 2_000
"""With more tasks than this, implied arrows are not removed."""


class Place(Struct, frozen=True):
    """The place of a task, or of a point where lines meet."""

    x: float
    y: float
    meeting: bool = False

    @property
    def top(self) -> tuple[float, float]:
        """The end of incoming lines."""
        return (self.x, self.y) if self.meeting else (self.x + WIDE / 2, self.y)

    @property
    def foot(self) -> tuple[float, float]:
        """The start of outgoing lines."""
        return (self.x, self.y) if self.meeting else (self.x + WIDE / 2, self.y + TALL)


class Layout(Struct, frozen=True, kw_only=True):
    """The places of all tasks, and the lines between them."""

    places: dict[str, Place]
    lines: tuple[tuple[str, str], ...]
    stages: tuple[tuple[str, float], ...]
    """The name of each stage that begins after a barrier, and its place."""
    width: float
    height: float


def layout(plan: Plan) -> Layout:
    """Put each task below all those that it waits for.

    If several tasks wait for the same tasks, the lines first meet in a point, and an arrow that
    others imply is left out. A layer that is too wide for the page continues in the next row.
    """
    rows = rows_of(plan)
    waits = _without_implied({row.key: row.waits for row in rows if row.key})
    layers: dict[int, list[str]] = {}
    for id_, step in steps(plan).items():
        layers.setdefault(step, []).append(id_)
    slots = min(_SLOTS, max(map(len, layers.values())))
    known = {row.key for row in rows if row.key and row.task is None}
    behind = {stage.name for stage in plan.stages[1:]}
    stage_of = {task.id: task.stage for task in plan.tasks}
    places: dict[str, Place] = {}
    stages: list[tuple[str, float]] = []
    y = 2.0
    for step in sorted(layers):
        names = {stage_of[id_] for id_ in layers[step]} & behind - {name for name, _ in stages}
        if names and step > 1:
            y += _BETWEEN
            stages += [(str(name), y - _DOWN / 2) for name in sorted(map(str, names))]
        y = _layer(layers[step], waits, places, slots, y) + _DOWN
        _meet(known, waits, places)
    lines = tuple((dep, key) for key, deps in waits.items() for dep in deps)
    width = slots * (WIDE + _ACROSS) - _ACROSS + 4
    return Layout(
        places=places, lines=lines, stages=tuple(stages), width=width, height=y - _DOWN + 4
    )


def _layer(
    ids: Sequence[str],
    waits: dict[str, tuple[str, ...]],
    places: dict[str, Place],
    slots: int,
    y: float,
) -> float:
    """Put a layer below the tasks that it waits for; returns its end."""
    wanted = {id_: _wanted(waits[id_], places) for id_ in ids}
    order = sorted(ids, key=lambda id_: wanted[id_])  # the plan's order among equals
    for begin in range(0, len(order), slots):
        row = order[begin : begin + slots]
        if begin:
            y += TALL + _BETWEEN
        for id_, slot in zip(row, _slots([wanted[id_] for id_ in row], slots), strict=True):
            places[id_] = Place(2 + slot * (WIDE + _ACROSS), y)
    return y + TALL


def _wanted(deps: Sequence[str], places: dict[str, Place]) -> float:
    """The slot below the middle of its dependencies."""
    found = [places[dep].top[0] for dep in deps if dep in places]
    middle = sum(found) / len(found) if found else WIDE / 2
    return (middle - WIDE / 2) / (WIDE + _ACROSS)


def _slots(wanted: Sequence[float], slots: int) -> list[int]:
    """A slot for each, as near as possible to the wanted one, in this order."""
    taken: list[int] = []
    for place, want in enumerate(wanted):
        after = taken[-1] + 1 if taken else 0
        left = len(wanted) - place - 1
        taken.append(min(max(after, round(want)), slots - 1 - left))
    return taken


def _meet(meetings: set[str], waits: dict[str, tuple[str, ...]], places: dict[str, Place]) -> None:
    """Put each point where lines meet below the last of its tasks, once all have a place."""
    for key in sorted(meetings - places.keys()):
        deps = waits[key]
        if all(dep in places for dep in deps):
            x = sum(places[dep].foot[0] for dep in deps) / len(deps)
            y = max(places[dep].foot[1] for dep in deps) + _DOWN * 0.45
            places[key] = Place(x, y, meeting=True)


def _without_implied(waits: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The same order without the lines that others imply."""
    if len(waits) > _REDUCED:
        return waits
    bit = {key: 1 << place for place, key in enumerate(waits)}
    reach: dict[str, int] = {}
    kept: dict[str, tuple[str, ...]] = {}
    for key, deps in waits.items():  # each after its dependencies
        behind = 0
        for dep in deps:
            behind |= reach[dep]
        kept[key] = tuple(dep for dep in deps if not behind & bit[dep])
        for dep in deps:
            behind |= bit[dep]
        reach[key] = behind
    return kept


class Graph:
    """The order of tasks as a picture, with the chain that took longest."""

    wide, tall = WIDE, TALL

    def __init__(self, report: Report) -> None:
        drawn = layout(report.plan)
        places, critical = drawn.places, set(report.critical)
        through = _through(drawn, set(pairwise(report.critical)))
        wires = [(_wire(places[a], places[b]), (a, b) in through) for a, b in drawn.lines]
        self.width, self.height, self.stages = drawn.width, drawn.height, drawn.stages
        self.wires = sorted(wires, key=lambda wire: wire[1])  # the critical path lies above others
        self.points = [place.top for place in places.values() if place.meeting]
        self.nodes = [
            (task, places[task.id].x, places[task.id].y, task.id in critical)
            for task in report.tasks
            if task.id in places  # a withdrawn task has none
        ]


def _through(drawn: Layout, chain: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The lines of the chain, also those through a point where lines meet."""
    points = {key for key, place in drawn.places.items() if place.meeting}
    into = {key: {a for a, b in drawn.lines if b == key} for key in points}
    out = {key: {b for a, b in drawn.lines if a == key} for key in points}
    found = chain & set(drawn.lines)
    for a, b in chain - found:
        for key in points:
            if a in into[key] and b in out[key]:
                found |= {(a, key), (key, b)}
    return found


def _wire(source: Place, target: Place) -> str:
    (x1, y1), (x2, y2) = source.foot, target.top
    bend = min(_DOWN, max(4.0, (y2 - y1) / 2))
    return f"M{x1:.0f} {y1:.0f}C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"


_DEAREST = 15


class CostTable(Struct, frozen=True, kw_only=True):
    """Costs, the highest first; the rest as one sum."""

    by: str
    rows: Sequence[tuple[str, Cost]]
    most: float
    left: int
    rest: Cost


def cost_tables(costs: Mapping[str, Mapping[str, Cost]]) -> list[CostTable]:
    """A table each for tasks, roles and models, without empty ones."""
    return [_cost_table(by, sums) for by, sums in costs.items() if sums]


def _cost_table(by: str, sums: Mapping[str, Cost]) -> CostTable:
    rows, left = list(sums.items())[:_DEAREST], list(sums.values())[_DEAREST:]
    most = max(each.cost_usd for each in sums.values()) or 1.0
    return CostTable(by=by, rows=rows, most=most, left=len(left), rest=total(left))
