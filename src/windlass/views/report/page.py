"""The report as one HTML file: it loads nothing and runs only its own few lines of script.

Law: a template prints text, unless the markup was made here or by a template. Text is escaped.
Before that, control characters and those that change the direction of text are made visible.
"""

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from msgspec import Struct

from windlass.core.events.model import Outcome
from windlass.core.events.review import CriterionEvidence
from windlass.views.columns import cut
from windlass.views.cost import amounts, column, cost_of
from windlass.views.lines import Line, tally
from windlass.views.quotation import DATA, quoted
from windlass.views.report.charts import Graph, Lanes, cost_tables
from windlass.views.report.model import Report, Round, TaskReport, lines_of
from windlass.views.words import duration, harmless, money, one_line, plural, tokens

TITLE, TEXT, LONG = 200, 4_000, 12_000
"""How many characters are shown of a title, of an agent's text, of a program's output."""

TONES = {
    "completed": "good",
    "merging": "good",
    "verified": "good",
    "in_progress": "work",
    "verifying": "work",
    "pending": "none",
    "failed": "warn",
    "paused": "warn",
    "stopped": "warn",
    "interrupted": "warn",
    "needs_human": "you",
    "stale": "you",
    "abandoned": "bad",
    "blocked": "bad",
    "withdrawn": "none",
}
"""The colour of every status word."""
_NEEDS = {"RED": "bad", "ABANDONED": "bad", "STAGE": "you", "NEEDS YOU": "you", "STALE": "warn"}
"""The words of problems that wait for a person, with their colours."""
_NAMES = {
    "TONES": TONES,
    "SIGNS": {"good": "✓", "work": "●", "none": "○", "warn": "↩", "you": "?", "bad": "✗"},
    "OUTCOMES": {Outcome.PASS: "good", Outcome.FAIL: "bad", Outcome.ABSENT: "warn"},
    "SEVERITIES": {"must_fix": "bad", "should_fix": "warn", "nice_to_have": "none"},
    "RAN": {True: "its tests passed", False: "its tests failed", None: "it ran no tests"},
    "CALM": frozenset({"completed", "pending", "withdrawn"}),
    "FEW": 8,  # tasks up to which all of them are shown open
    "FILES": 12,
    "LONG": LONG,
}
_NOTHING = 0.05
"""A shorter time is not mentioned."""
_BROAD = 500
"""How many characters are shown of a line of a diff."""
_HEADS = ("diff ", "index ", "--- ", "+++ ", "new file ", "deleted file ", "rename ", "similarity ")
_KINDS = {"+": "plus", "-": "minus", "@": "hunk"}
_CODE = re.compile(r"`([^`\n]{1,300})`")


def page(report: Report) -> str:
    order = list(TONES)
    return (
        environment()
        .get_template("report.html")
        .render(
            report=report,
            style=_source("style.css"),
            script=_source("report.js"),
            statuses=sorted(report.statuses.items(), key=lambda item: order.index(item[0])),
            tiles=_tiles(report),
            needs=[_need(line) for line in report.troubles if line.word in _NEEDS],
            timeline=Lanes(report),
            graph=Graph(report),
            cost_tables=cost_tables(report.costs),
            titles={task.id: task.title for task in report.tasks},
        )
    )


@cache
def environment() -> Environment:
    """The templates' environment, for every page of Windlass."""
    made = Environment(
        autoescape=True,
        finalize=_finalized,
        loader=PackageLoader("windlass.views"),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    filters: dict[str, Any] = made.filters
    filters.update(
        {
            each.__name__: each
            for each in (column, cost_of, cut, duration, money, one_line, plural, tokens)
        }
    )
    filters.update(
        bounded=harmless,
        code=_code,
        diff=_diff,
        hash=_hash,
        line=_line,
        percent="{:.2f}%".format,
        prose=_prose,
        words=_words,
    )
    names: dict[str, Any] = made.globals
    names.update(_NAMES, by_criterion=_by_criterion, lines_of=lines_of, prompt=prompt, tally=tally)
    return made


def _finalized(value: object) -> object:
    """The text of a value, before it is escaped."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return harmless(str(value))


def _source(name: str) -> Markup:
    """A file of the package that is put into the page unchanged."""
    loaded = environment()
    assert loaded.loader is not None  # noqa: S101  it is given above
    return Markup(loaded.loader.get_source(loaded, name)[0].strip())  # noqa: S704


def _hash(text: str) -> Markup:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Markup("'sha256-{}'").format(digest)


def _words(status: str) -> str:
    return status.replace("_", " ")


def _by_criterion(seen: Sequence[CriterionEvidence]) -> dict[int, CriterionEvidence]:
    return {each.criterion: each for each in seen}


def _line(text: str, most: int = TITLE) -> Markup:
    """A title or a path from a plan or an agent, on one line; its direction ends with it."""
    return Markup("<bdi>{}</bdi>").format(_with_code(harmless(one_line(text, most), most)))


def _prose(text: str, most: int = TEXT) -> Markup:
    """A text of an agent or a person, with its line breaks."""
    shown = _with_code(harmless(text.strip("\n"), most))
    return Markup('<div class="said" dir="auto">{}</div>').format(shown)


def _code(text: str) -> Markup:
    """A commit, a command, a path."""
    return Markup("<code>{}</code>").format(harmless(one_line(text, 500), 500))


def _diff(text: str) -> Markup:
    """A patch, each line in the colour of its kind."""
    lines = (one if len(one) <= _BROAD else f"{one[:_BROAD]}…" for one in text.split("\n"))
    shown = (
        Markup('<span class="{}">{}</span>').format(_kind(one), harmless(one)) for one in lines
    )
    return Markup("\n").join(shown)


def _kind(line: str) -> str:
    if line.startswith(_HEADS):
        return "head"
    return _KINDS.get(line[:1], "same")


def _with_code(text: str) -> Markup:
    """The text with code between backticks; no other Markdown is rendered."""
    code = Markup("<code>{}</code>")
    parts = _CODE.split(text)
    return Markup().join(code.format(p) if n % 2 else escape(p) for n, p in enumerate(parts))


def _tiles(report: Report) -> Iterator[tuple[str, str, str]]:
    """The figures at the top: a name, a value, and details."""
    metrics, cost = report.metrics, report.cost
    part = min(cost.cost_usd / report.max_cost, 1.0)
    share = f"of {money(report.max_cost)} · {round(100 * part)}%"
    parts = [amounts(cost)] if cost.reserved_usd or cost.estimated_usd else []
    parts += ["some is not known"] if not cost.known and not cost.estimated_usd else []
    yield "Cost", column(cost), " · ".join((share, *parts))
    yield "Elapsed", duration(report.elapsed), _where_time_went(report)
    yield "Turns", str(metrics.turns), f"{metrics.returned} returned"
    others = [f"{metrics.checks[word]} {word}" for word in ("fail", "absent")]
    ran = any(metrics.checks.values())
    yield "Checks", f"{metrics.checks['pass']} pass", " · ".join(others) if ran else report.checks
    read = cost.input_tokens + cost.cached_tokens
    part_cached = round(100 * cost.cached_tokens / read) if read else 0
    cached = f"{part_cached}% cached · " if part_cached else ""
    yield "Tokens", tokens(read), f"in · {cached}{tokens(cost.output_tokens)} out"


def _where_time_went(report: Report) -> str:
    parts = (
        (report.waited, "waiting for the provider"),
        (report.asked, "for a person"),
        (report.unattended, "not running"),
    )
    some = [f"{duration(seconds)} {what}" for seconds, what in parts if seconds > _NOTHING]
    return " · ".join(some) or "no waits"


class _Need(Struct, frozen=True):
    """Something that waits for a person."""

    word: str
    tone: str
    text: str
    task: str
    """What it links to, if anything."""
    details: list[tuple[str, str]]
    """Each with its text, and its command if there is one."""


def _need(line: Line) -> _Need:
    details: list[tuple[str, str]] = []
    for detail in line.details:
        before, found, command = detail.rpartition("windlass ")
        if found and (not before or before.endswith(": ")):
            details.append((before, f"windlass {command}"))
        else:
            details.append((detail, ""))
    task = "" if line.word in {"RED", "STAGE"} else line.text.partition(" ")[0]
    return _Need(line.word.lower(), _NEEDS[line.word], line.text, task, details)


def prompt(task: TaskReport, each: Round) -> str:
    """A prompt about a failed turn, with all that an agent or a person needs to fix it."""
    commit = each.attempt.commit
    where = f" The work so far is commit {commit}." if commit else ""
    return "\n".join(
        (
            f"Fix task {task.id}: {one_line(task.title, 200)}",
            "",
            DATA,
            "",
            "It is done when:",
            *(f"{n}. {harmless(text, 1_000)}" for n, text in enumerate(task.criteria, 1)),
            "",
            f"Turn {each.attempt.turn} was sent back ({each.cause.replace('_', ' ')}).{where}",
            "What was found:",
            "",
            quoted("feedback", harmless(each.attempt.feedback or "", LONG)),
        )
    )
