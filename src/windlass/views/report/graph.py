"""The order of tasks as a picture: what waits for what, and the chain that took longest.

Each task stands below all it waits for. What is waited for in common meets in a point first, and an
arrow that others imply is left out: fewer lines say the same. A layer too wide for the page goes on
in the next row.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from windlass.plan import Plan, steps
from windlass.views.columns import cut
from windlass.views.graph import rows_of
from windlass.views.report.marks import TONES
from windlass.views.report.markup import Markup, harmless, tag
from windlass.views.report.model import Report
from windlass.views.words import one_line

WIDE, TALL = 168, 38
_ACROSS, _DOWN, _BETWEEN = 14, 30, 10
_SLOTS = 6
"""Tasks beside each other, at most."""
_ID, _TITLE = 20, 25
_REDUCED = 2_000
"""Tasks up to which arrows that others imply are looked for."""


class Place(Struct, frozen=True):
    """Where a task stands, or a point where lines meet."""

    x: float
    y: float
    meeting: bool = False

    @property
    def top(self) -> tuple[float, float]:
        """Where lines come in."""
        return (self.x, self.y) if self.meeting else (self.x + WIDE / 2, self.y)

    @property
    def foot(self) -> tuple[float, float]:
        """Where they go out."""
        return (self.x, self.y) if self.meeting else (self.x + WIDE / 2, self.y + TALL)


class Layout(Struct, frozen=True, kw_only=True):
    """Every task at its place, and the lines between them."""

    places: dict[str, Place]
    lines: tuple[tuple[str, str], ...]
    stages: tuple[tuple[str, float], ...]
    """The name of each stage that begins behind a barrier, and where."""
    width: float
    height: float


def layout(plan: Plan) -> Layout:
    """Where everything stands."""
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
    """Put a layer below what it waits for; where it ends."""
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
    """The slot below the middle of what is waited for."""
    found = [places[dep].top[0] for dep in deps if dep in places]
    middle = sum(found) / len(found) if found else WIDE / 2
    return (middle - WIDE / 2) / (WIDE + _ACROSS)


def _slots(wanted: Sequence[float], slots: int) -> list[int]:
    """A slot each, as near as can be to the one it wants, in this order."""
    taken: list[int] = []
    for place, want in enumerate(wanted):
        after = taken[-1] + 1 if taken else 0
        left = len(wanted) - place - 1
        taken.append(min(max(after, round(want)), slots - 1 - left))
    return taken


def _meet(meetings: set[str], waits: dict[str, tuple[str, ...]], places: dict[str, Place]) -> None:
    """Put each point where lines meet below the last of them, once all of them have a place."""
    for key in sorted(meetings - places.keys()):
        deps = waits[key]
        if all(dep in places for dep in deps):
            x = sum(places[dep].foot[0] for dep in deps) / len(deps)
            y = max(places[dep].foot[1] for dep in deps) + _DOWN * 0.45
            places[key] = Place(x, y, meeting=True)


def _without_implied(waits: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The same order with as few lines as say it."""
    if len(waits) > _REDUCED:
        return waits
    bit = {key: 1 << place for place, key in enumerate(waits)}
    reach: dict[str, int] = {}
    kept: dict[str, tuple[str, ...]] = {}
    for key, deps in waits.items():  # each after all it waits for
        behind = 0
        for dep in deps:
            behind |= reach[dep]
        kept[key] = tuple(dep for dep in deps if not behind & bit[dep])
        for dep in deps:
            behind |= bit[dep]
        reach[key] = behind
    return kept


def graph(report: Report) -> Markup:
    """The picture."""
    plan = report.plan
    told = layout(plan)
    chain = set(pairwise(report.critical))
    through = _through(told, chain)
    drawn = [_line(told.places[a], told.places[b], main=(a, b) in through) for a, b in told.lines]
    drawn.sort(key=lambda line: "main" in line)  # what matters lies above what does not
    return tag(
        "div",
        tag(
            "svg",
            _stages(told),
            drawn,
            _points(told),
            _nodes(report, told),
            width=float(told.width),
            height=float(told.height),
            viewBox=f"0 0 {told.width:g} {told.height:g}",
            role="img",
            aria_label="What waits for what",
        ),
        class_="graph",
        tabindex="0",
    )


def _through(told: Layout, chain: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The lines of the chain, those included that go through a point where lines meet."""
    points = {key for key, place in told.places.items() if place.meeting}
    into = {key: {a for a, b in told.lines if b == key} for key in points}
    out = {key: {b for a, b in told.lines if a == key} for key in points}
    found = chain & set(told.lines)
    for a, b in chain - found:
        for key in points:
            if a in into[key] and b in out[key]:
                found |= {(a, key), (key, b)}
    return found


def _line(source: Place, target: Place, *, main: bool) -> Markup:
    (x1, y1), (x2, y2) = source.foot, target.top
    bend = min(_DOWN, max(4.0, (y2 - y1) / 2))
    way = f"M{x1:.0f} {y1:.0f}C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"
    return tag("path", d=way, class_="wire main" if main else "wire")


def _points(told: Layout) -> list[Markup]:
    met = (place for place in told.places.values() if place.meeting)
    return [tag("circle", cx=place.x, cy=place.y, r="2.5", class_="point") for place in met]


def _stages(told: Layout) -> Iterator[Markup]:
    for stage, y in told.stages:
        yield tag("line", x1="0", x2=float(told.width), y1=y, y2=y, class_="barrier")
        word = harmless(one_line(f"then {stage}", 60), 60)
        yield tag("text", word, x="2", y=y - 3, class_="stage")


def _nodes(report: Report, told: Layout) -> Iterator[Markup]:
    critical = set(report.critical)
    for task in report.tasks:
        place = told.places.get(task.id)
        if place is None:  # no longer in the plan
            continue
        main = " main" if task.id in critical else ""
        box = tag("rect", x=place.x, y=place.y, width=WIDE, height=TALL, rx="6")
        edge = tag("rect", x=place.x, y=place.y + 8, width="3", height=TALL - 16, class_="edge")
        title = cut(harmless(one_line(task.title, 80), 80), _TITLE)
        yield tag(
            "a",
            tag("title", f"{task.id}: {task.status.replace('_', ' ')}"),
            box,
            edge,
            tag("text", cut(task.id, _ID), x=place.x + 12, y=place.y + 16, class_="id"),
            tag("text", title, x=place.x + 12, y=place.y + 30, class_="title"),
            href=f"#{task.id}",
            class_=f"node {TONES[task.status]}{main}",
        )
