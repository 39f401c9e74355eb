"""Who worked when, and what was paid for what, drawn so that any width will do.

Places are percentages: a track is as wide as there is room, on a phone as on a wall.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from windlass.views.bills import Total
from windlass.views.report.marks import name, sign
from windlass.views.report.markup import Markup, tag
from windlass.views.report.model import Bar, Report, TaskReport
from windlass.views.report.scale import Scale
from windlass.views.words import duration, money, plural, tokens

_HEIGHT, _SMALL = 20, 12
_MANY = 60
"""Lanes from which on they are drawn smaller."""
_LEAST = 0.3
"""Percent that even the shortest bar takes, to be seen and to be hit."""
_THICK = {"queue": 0.12, "wait": 0.4, "person": 0.4}
"""How much of a lane's height waiting takes; work takes most of it."""
_DEAREST = 15

LEGEND = (
    ("player", "Player"),
    ("checks", "checks"),
    ("coach", "Coach"),
    ("merge", "merging"),
    ("wait", "waits for the provider"),
    ("person", "waits for a person"),
    ("queue", "waits its turn"),
    ("lost", "came to nothing"),
)


def timeline(report: Report) -> Markup:
    """A lane for every task that was begun, in the order in which they were."""
    lanes = sorted((task for task in report.tasks if task.bars), key=lambda t: t.bars[0].start)
    scale = Scale(report.started_at, report.at, report.gaps)
    small = len(lanes) > _MANY
    drawn = [_lane(task, scale, small=small) for task in lanes]
    if report.whole:
        label = tag("span", "base and tip", class_="lane-name")
        drawn.insert(0, _row(label, _track(report.whole, scale, "base and tip", small=small)))
    waiting = len(report.tasks) - len(lanes)
    return tag(
        "div",
        _legend(report),
        tag("div", _axis(scale), drawn, class_="lanes small" if small else "lanes"),
        tag("p", f"{plural(waiting, 'task')} not begun", class_="dim") if waiting else None,
    )


def _legend(report: Report) -> Markup:
    used = {bar.kind for task in report.tasks for bar in task.bars}
    used |= {bar.kind for bar in report.whole}
    lost = any(bar.bad for task in report.tasks for bar in task.bars)
    shown = [(kind, word) for kind, word in LEGEND if kind in used or (kind == "lost" and lost)]
    keys = [tag("li", tag("i", class_=f"key k-{kind}"), word) for kind, word in shown]
    return tag("ul", keys, class_="legend")


def _axis(scale: Scale) -> Markup:
    words = [tag("text", text, x=f"{place:.2f}%", y="11") for place, text in scale.ticks()]
    away = [
        tag(
            "rect",
            tag("title", f"nobody ran it for {duration(lasted)}"),
            x=f"{place:.2f}%",
            width=f"{room:.2f}%",
            y="0",
            height="16",
            class_="gap",
        )
        for place, room, lasted in scale.gaps()
    ]
    line = tag("svg", away, words, class_="track", height="16", role="img", aria_label="UTC")
    return _row(tag("span", "UTC", class_="lane-name dim"), line)


def _lane(task: TaskReport, scale: Scale, *, small: bool) -> Markup:
    label = tag(
        "a",
        sign(task.status),
        tag("b", task.id),
        " ",
        name(task.title, 60),
        href=f"#{task.id}",
        class_="lane-name",
    )
    told = f"{task.id}: {plural(task.turns, 'turn')}, {duration(task.seconds)}"
    return _row(label, _track(task.bars, scale, told, small=small))


def _row(label: Markup, track: Markup) -> Markup:
    return tag("div", label, track, class_="lane")


def _track(bars: Sequence[Bar], scale: Scale, told: str, *, small: bool) -> Markup:
    height = _SMALL if small else _HEIGHT
    return tag(
        "svg",
        [
            tag("rect", x=f"{x:.2f}%", width=f"{w:.2f}%", y="0", height=height, class_="gap")
            for x, w, _ in scale.gaps()
        ],
        [_bar(bar, scale, height) for bar in bars],
        class_="track",
        height=height,
        role="img",
        aria_label=told,
    )


def _bar(bar: Bar, scale: Scale, height: int) -> Markup:
    left = scale.at(bar.start)
    wide = max(scale.at(bar.end) - left, _LEAST)
    left = min(left, 100 - wide)
    tall = height * _THICK.get(bar.kind, 0.8)
    drawn = tag(
        "rect",
        tag("title", f"{bar.what} · {duration(bar.seconds)} · {bar.start:%H:%M:%S}Z"),
        x=f"{left:.2f}%",
        width=f"{wide:.2f}%",
        y=(height - tall) / 2,
        height=float(tall),
        rx="2",
        class_=f"k-{bar.kind}{' lost' if bar.bad else ''}",
    )
    return tag("a", drawn, href=f"#{bar.anchor}") if bar.anchor else drawn


def costs(report: Report) -> Markup:
    """A table each for tasks, roles and models, with a bar beside every sum."""
    titles = {task.id: task.title for task in report.tasks}
    tables = [_costs(by, sums, titles) for by, sums in report.costs.items() if sums]
    return tag("div", tables or tag("p", "Nothing was paid.", class_="dim"), class_="costs")


def _costs(by: str, sums: Mapping[str, Total], titles: Mapping[str, str]) -> Markup:
    most = max(total.cost_usd for total in sums.values()) or 1.0
    heads = ("cost", "in", "cached", "out")
    head = tag("tr", tag("th", by, scope="col"), *(tag("th", h, scope="col") for h in heads))
    return tag(
        "table",
        tag("thead", head),
        tag("tbody", _cost_rows(by, sums, titles, most)),
        class_=f"cost by-{by}",
    )


def _cost_rows(
    by: str, sums: Mapping[str, Total], titles: Mapping[str, str], most: float
) -> Iterator[Markup]:
    for key, total in islice(sums.items(), _DEAREST):
        label = name(key, 80)
        if by == "task":
            title = name(titles.get(key, ""), 60)
            label = tag("span", tag("a", tag("b", key), href=f"#{key}"), " ", title)
        wide = f"{100 * total.cost_usd / most:.2f}%"
        bar = tag("svg", tag("rect", width=wide, height="6", rx="2"), class_="bar", height="6")
        yield _cost_row(tag("td", label, bar), total)
    if left := list(sums.values())[_DEAREST:]:
        rest = Total(
            cost_usd=sum(each.cost_usd for each in left),
            known=all(each.known for each in left),
            input_tokens=sum(each.input_tokens for each in left),
            output_tokens=sum(each.output_tokens for each in left),
            cached_tokens=sum(each.cached_tokens for each in left),
        )
        yield _cost_row(tag("td", f"{len(left)} more", class_="dim"), rest)


def _cost_row(label: Markup, total: Total) -> Markup:
    cells = (
        money(total.cost_usd, known=total.known),
        tokens(total.input_tokens),
        tokens(total.cached_tokens),
        tokens(total.output_tokens),
    )
    return tag("tr", label, *(tag("td", cell, class_="num") for cell in cells))
