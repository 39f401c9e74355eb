"""The report as one HTML file: nothing is fetched, nothing but its own few lines of script may run.

Everything is there to be read without them; they copy, and open what an address names.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence

from windlass.views.lines import Line
from windlass.views.report.charts import costs, timeline
from windlass.views.report.graph import graph
from windlass.views.report.marks import TONES, code, name, pill, said
from windlass.views.report.markup import Content, Markup, harmless, raw, tag
from windlass.views.report.model import Report
from windlass.views.report.style import SCRIPT, STYLE
from windlass.views.report.turns import check_row, task_section
from windlass.views.words import duration, money, one_line, plural, tokens

_FEW = 8
"""Tasks up to which all of them are shown open."""
_PARTS = (("timeline", "Timeline"), ("graph", "Order"), ("cost", "Cost"), ("tasks", "Tasks"))
_WAITS_FOR_YOU = frozenset({"ABANDONED", "STAGE", "NEEDS YOU", "STALE"})
_NOTHING = 0.05
"""Seconds that are not worth a word."""


def page(report: Report) -> str:
    """The whole file."""
    title = f"{one_line(report.plan.title, 80)} · {report.status.replace('_', ' ')}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy()),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", harmless(title, 200)),
        tag("style", raw(STYLE)),
    )
    body = tag(
        "body",
        tag("header", list(_header(report))),
        tag("main", list(_needs_you(report)), _nav(), list(_sections(report))),
        _footer(report),
        tag("script", raw(SCRIPT)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _policy() -> str:
    """What a browser may do with this file: draw it, and run exactly this script."""
    style, script = (_hash(text) for text in (STYLE, SCRIPT))
    return (
        f"default-src 'none'; style-src {style}; script-src {script}; base-uri 'none';"
        " form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _header(report: Report) -> Iterator[Content]:
    dash = tag("span", " · ", class_="dim")
    yield tag(
        "p", "Windlass", dash, name(report.plan.id), dash, "run ", code(report.run), class_="over"
    )
    yield tag("h1", name(report.plan.title), " ", pill(report.status))
    if report.reason:
        yield tag("div", said(report.reason, 1_000), class_="why")
    yield _done(report)
    yield tag("dl", [tag("div", list(tile)) for tile in _tiles(report)], class_="tiles")
    yield tag("dl", list(_lines(report)), class_="facts")


def _done(report: Report) -> Markup:
    """How many tasks came to what, as a bar and in words."""
    whole, place, parts = sum(report.statuses.values()) or 1, 0.0, list[Markup]()
    order = list(TONES)
    counted = sorted(report.statuses.items(), key=lambda item: order.index(item[0]))
    for status, count in counted:
        wide = 100 * count / whole
        title = tag("title", f"{count} {status.replace('_', ' ')}")
        at, room = f"{place:.2f}%", f"{wide:.2f}%"
        parts.append(tag("rect", title, x=at, width=room, height="10", class_=f"t-{TONES[status]}"))
        place += wide
    words = [
        tag("li", tag("i", class_=f"key t-{TONES[s]}"), f"{n} {s.replace('_', ' ')}")
        for s, n in counted
    ]
    total = tag("li", f"of {plural(whole, 'task')}", class_="dim")
    bar = tag("svg", parts, class_="done", height="10", role="img", aria_label="tasks by status")
    return tag("div", bar, tag("ul", words, total, class_="legend"))


def _tile(label: str, value: Content, more: str) -> Iterator[Markup]:
    yield tag("dt", label)
    yield tag("dd", tag("span", value, class_="big"), tag("span", more, class_="dim"))


def _tiles(report: Report) -> Iterator[Iterator[Markup]]:
    metrics, cost = report.metrics, report.cost
    part = min(cost.cost_usd / report.max_cost, 1.0)
    share = f"of {money(report.max_cost)} · {round(100 * part)}%"
    if not cost.known:
        share += " · some is not known"
    yield _tile("Cost", money(cost.cost_usd, known=cost.known), share)
    yield _tile("Elapsed", duration(report.elapsed), _where_time_went(report))
    yield _tile("Turns", str(metrics.turns), f"{metrics.returned} returned")
    said_ = [f"{metrics.checks[word]} {word}" for word in ("fail", "absent")]
    yield _tile("Checks", f"{metrics.checks['pass']} pass", " · ".join(said_))
    read = cost.input_tokens + cost.cached_tokens
    part_cached = round(100 * cost.cached_tokens / read) if read else 0
    cached = f"{part_cached}% cached · " if part_cached else ""
    told = f"in · {cached}{tokens(cost.output_tokens)} out"
    yield _tile("Tokens", tokens(read), told)


def _where_time_went(report: Report) -> str:
    told = (
        (report.waited, "waiting for the provider"),
        (report.asked, "for a person"),
        (report.unattended, "not running"),
    )
    some = [f"{duration(seconds)} {what}" for seconds, what in told if seconds > _NOTHING]
    return " · ".join(some) or "no waits"


def _lines(report: Report) -> Iterator[Markup]:
    yield tag("dt", "Branch")
    more = [tag("span", name(text, 300), class_="dim") for text in report.branch.details]
    yield tag("dd", name(report.branch.text, 300), more)
    if report.next:
        yield tag("dt", "Next")
        yield tag("dd", [_command(step, n) for n, step in enumerate(report.next)])
    if report.notes:
        yield tag("dt", "Note")
        yield tag("dd", [tag("span", name(note, 300)) for note in report.notes])


def _command(step: str, number: int) -> Markup:
    ref = f"/next-{number}"
    button = tag("button", "Copy", type="button", data_copy=ref, hidden=True)
    return tag("span", tag("code", harmless(step, 500), id=ref), button, class_="command")


def _needs_you(report: Report) -> Iterator[Markup]:
    """What waits for a person comes before all else."""
    waiting = [line for line in report.troubles if line.word in _WAITS_FOR_YOU]
    if not waiting:
        return
    yield tag(
        "section",
        tag("h2", "Needs you"),
        tag("ul", [_need(line, n) for n, line in enumerate(waiting)]),
        class_="needs",
        id="/needs-you",
    )


def _need(line: Line, number: int) -> Markup:
    tone = {"ABANDONED": "bad", "STALE": "warn"}.get(line.word, "you")
    told: list[Content] = []
    for place, detail in enumerate(line.details):
        before, found, command = detail.rpartition("windlass ")
        if found and (not before or before.endswith(": ")):
            ref = f"/need-{number}-{place}"
            button = tag("button", "Copy", type="button", data_copy=ref, hidden=True)
            text = tag("code", harmless(f"windlass {command}", 500), id=ref)
            told.append(tag("span", before or None, text, button, class_="command"))
        else:
            told.append(tag("div", name(detail, 400), class_="dim"))
    head = tag("span", line.word.lower(), class_=f"pill {tone}")
    task = line.text.partition(" ")[0]
    title = name(line.text, 200)
    linked = title if line.word == "STAGE" else tag("a", title, href=f"#{task}")
    return tag("li", tag("div", head, " ", linked), told)


def _nav() -> Markup:
    links = [tag("a", word, href=f"#/{ref}") for ref, word in _PARTS]
    return tag("nav", links, aria_label="Parts of this report")


def _sections(report: Report) -> Iterator[Markup]:
    yield _section("timeline", "Timeline", timeline(report))
    took = {task.id: task.seconds for task in report.tasks}
    chain = duration(sum(took.get(id_, 0.0) for id_ in report.critical))
    told = f"Critical path: {len(report.critical)} of {plural(len(report.plan.tasks), 'task')}, "
    path = tag("p", told, f"{chain} one after the other", class_="dim")
    yield _section("graph", "Order", path, graph(report))
    yield _section("cost", "Cost", costs(report))
    everything = len(report.tasks) <= _FEW
    tasks = [task_section(task, open_=everything) for task in report.tasks]
    yield _section("tasks", "Tasks", tasks, list(_looks(report)))


def _looks(report: Report) -> Iterator[Markup]:
    """What was seen of the base and of the tip as a whole."""
    for what, results, problems in report.looks:
        rows: Sequence[Markup] = [tag("li", list(check_row(result))) for result in results]
        amiss = [tag("li", said(problem, 1_000)) for problem in problems]
        word = tag("b", "Checks of the "), name(what, 80)
        yield tag("div", tag("h4", word), tag("ul", rows, amiss, class_="checks"), class_="look")


def _section(ref: str, word: str, *content: Content) -> Markup:
    return tag("section", tag("h2", word), content, id=f"/{ref}")


def _footer(report: Report) -> Markup:
    began = f"{report.started_at:%Y-%m-%d %H:%M:%S}Z"
    told = (
        f"Began {began}, told as of {report.at:%Y-%m-%d %H:%M:%S}Z, journal position {report.seq}"
    )
    still = " The run goes on; `windlass report` tells it anew." if report.live else ""
    return tag("footer", f"{told}, Windlass {one_line(report.version, 40)}.{still}")
