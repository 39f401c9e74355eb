"""A task on the page: what was asked for, the evidence, and every turn with all that came of it."""

from collections.abc import Iterator, Sequence

from windlass.events.model import CheckResult, Outcome
from windlass.events.review import CriterionEvidence, Issue, Review
from windlass.ports import Change
from windlass.state.model import Coaching
from windlass.views.lines import tally
from windlass.views.report.marks import LONG, code, name, outcome, pill, printed, said, sign, stat
from windlass.views.report.markup import Markup, tag
from windlass.views.report.model import Checked, Round, TaskReport
from windlass.views.report.prompt import prompt
from windlass.views.words import duration, money, more_and_less, plural

_FILES = 12
_AT_WORK = frozenset({"player", "person"})
_CALM = frozenset({"completed", "pending", "withdrawn"})
_SEVERITIES = {"must_fix": "bad", "should_fix": "warn", "nice_to_have": "none"}


def task_section(task: TaskReport, *, open_: bool) -> Markup:
    """All of a task, below a line that says how it stands."""
    return tag(
        "details",
        tag("summary", _head(task)),
        tag("div", list(_body(task)), class_="body"),
        id=task.id,
        class_="task",
        open=open_ or task.status not in _CALM,
    )


def _head(task: TaskReport) -> Iterator[Markup | str | None]:
    yield sign(task.status)
    yield tag("b", task.id)
    yield tag("span", name(task.title), class_="grow")
    yield tag("span", list(_figures(task)), class_="figures")


def _figures(task: TaskReport) -> Iterator[Markup | None]:
    if task.status != "completed":
        yield pill(task.status)
    if task.turns:
        yield tag("span", f"{task.turns}/{task.allowed} turns")
    if task.seconds:
        yield tag("span", duration(task.seconds))
    if task.rounds:
        yield tag("span", money(task.cost.cost_usd, known=task.cost.known))
    yield stat(task.changes)


def _body(task: TaskReport) -> Iterator[Markup | None]:
    if task.needs:
        link = tag("a", task.needs, href=f"#{task.needs}")
        yield tag("p", "Blocked: it needs ", link, ", which was abandoned.", class_="callout bad")
    if task.asks:
        yield tag("div", said(task.asks), class_=f"callout {_tone(task)}")
    yield from (tag("p", note, class_="dim") for note in task.notes)
    yield _criteria(task.criteria, task.evidence, begun=bool(task.rounds))
    if task.merged is not None:
        yield tag("p", "Merged as ", code(task.merged[:10]), class_="dim")
    yield from (_round(task, each) for each in task.rounds)


def _tone(task: TaskReport) -> str:
    return "bad" if task.status == "abandoned" else "you"


def _criteria(
    criteria: Sequence[str], evidence: Sequence[CriterionEvidence], *, begun: bool
) -> Markup:
    seen = {each.criterion: each for each in evidence}
    rows = [
        tag("li", _criterion(text, seen.get(number))) for number, text in enumerate(criteria, 1)
    ]
    heading = "Criteria and evidence" if begun else "Criteria"
    return tag("div", tag("h4", heading), tag("ol", rows, class_="criteria"))


def _criterion(text: str, seen: CriterionEvidence | None) -> Iterator[Markup]:
    tone, mark = ("none", "○") if seen is None else ("good", "✓") if seen.met else ("bad", "✗")
    told = {"none": "no evidence yet", "good": "met", "bad": "not met"}[tone]
    yield tag("span", mark, class_=f"sign {tone}", title=told)
    yield said(text, 1_000)
    if seen is not None:
        yield tag("div", said(seen.evidence, 2_000), class_="evidence")


def _round(task: TaskReport, each: Round) -> Markup:
    attempt = each.attempt
    title = "First look" if attempt.is_tip else f"Turn {attempt.turn}"
    if each.anchor.rpartition("-")[2] != str(attempt.turn):
        title += ", once more" if attempt.onto is None else ", settling a conflict"
    tone = "good" if each.fate in {"merged", "approved"} else "none" if each.calm else "warn"
    return tag(
        "details",
        tag(
            "summary",
            tag("b", title),
            tag("span", each.fate, class_=f"pill {tone}"),
            tag("span", list(_round_figures(task, each)), class_="figures"),
        ),
        tag("div", list(_round_body(task, each)), class_="body"),
        id=each.anchor,
        class_="turn",
        open=not each.calm and each is task.rounds[-1],
    )


def _round_figures(task: TaskReport, each: Round) -> Iterator[Markup | None]:
    own = [bar for bar in task.bars if bar.anchor == each.anchor]
    # By its bars: an agent that died with its process did not work until the next one began.
    if took := sum(bar.seconds for bar in own if bar.kind in _AT_WORK):
        yield tag("span", f"{'person' if each.attempt.by else 'Player'} {duration(took)}")
    said_ = [checked.results for checked in each.checks if not checked.merged]
    if said_:
        yield tag("span", tally(said_[-1]))
    if each.usage.cost_usd or not each.usage.known:
        yield tag("span", money(each.usage.cost_usd, known=each.usage.known))
    yield stat(each.changes)


def _round_body(task: TaskReport, each: Round) -> Iterator[Markup | None]:
    attempt = each.attempt
    who = name(attempt.by, 80) if attempt.by else "Player"
    if attempt.failure is not None:
        why = f"{attempt.failure.replace('_', ' ')} · no turn used"
        yield tag("p", tag("b", who), f": {why}", class_="callout warn")
        yield said(attempt.message) if attempt.message else None
    if attempt.summary:
        claim = tag("span", " says", class_="dim")
        yield tag("div", tag("h4", who, claim), said(attempt.summary))
    if attempt.refused:
        yield tag("div", tag("b", "Not committed: "), said(attempt.refused), class_="callout warn")
    yield from _files(each)
    yield from (_checks(checked) for checked in each.checks)
    last = _last_review(task)
    yield from (_coach(task, c, last=c is last) for c in attempt.coachings)
    if attempt.feedback is not None:
        yield _as_prompt(task, each)


def _last_review(task: TaskReport) -> Coaching | None:
    """The one whose evidence stands above, beside the criteria."""
    coachings = (c for each in reversed(task.rounds) for c in reversed(each.attempt.coachings))
    return next((c for c in coachings if c.review is not None), None)


def _files(each: Round) -> Iterator[Markup]:
    commit = each.attempt.commit
    if commit is None:
        return
    partial = " · what an interrupted Player left" if each.attempt.kind == "partial" else ""
    unchanged = " · nothing was changed" if not each.attempt.changed else ""
    yield tag("h4", "Commit ", code(commit[:10]), tag("span", partial or unchanged, class_="dim"))
    changes: Sequence[Change] = each.changes or [
        Change(path=path, added=None, deleted=None) for path in each.attempt.files
    ]
    if not changes:
        return
    most = max((c.added or 0) + (c.deleted or 0) for c in changes) or 1
    rows = [_file(change, most) for change in changes[:_FILES]]
    if len(changes) > _FILES:
        rows.append(tag("li", f"and {len(changes) - _FILES:,} more", class_="dim"))
    yield tag("ul", rows, class_="files")


def _file(change: Change, most: int) -> Markup:
    path = tag("span", code(change.path), class_="path")
    if change.added is None or change.deleted is None:
        return tag("li", path)
    plus, minus = 100 * change.added / most, 100 * change.deleted / most
    bar = tag(
        "svg",
        tag("rect", width=f"{plus:.2f}%", height="6", class_="plus"),
        tag("rect", x=f"{plus:.2f}%", width=f"{minus:.2f}%", height="6", class_="minus"),
        class_="bar",
        height="6",
    )
    added, deleted = more_and_less(change.added, change.deleted)
    counts = tag(
        "span",
        tag("span", added, class_="plus"),
        " ",
        tag("span", deleted, class_="minus"),
        class_="num",
    )
    return tag("li", path, counts, bar)


def _checks(checked: Checked) -> Markup:
    of = "Checks on the merge" if checked.merged else "Checks"
    rows = [tag("li", list(check_row(result))) for result in checked.results]
    return tag("div", tag("h4", of), tag("ul", rows, class_="checks"))


def check_row(result: CheckResult) -> Iterator[Markup | None]:
    """What a check said of a tree, with what it printed where it did not pass."""
    yield outcome(result)
    yield tag("span", code(result.command), class_="grow")
    ran = f"{plural(result.tests, 'test')} · " if result.tests is not None else ""
    yield tag("span", f"{ran}{duration(result.seconds)}", class_="figures")
    if result.outcome is not Outcome.PASS and result.output.strip():
        yield printed(result.output)


def _coach(task: TaskReport, coaching: Coaching, *, last: bool) -> Markup:
    if coaching.review is None:
        why = (coaching.failure or "at work").replace("_", " ")
        message = said(coaching.message) if coaching.message else None
        return tag("div", tag("h4", "Coach ", tag("span", why, class_="pill warn")), message)
    return tag("div", list(_review(task, coaching.review, last=last)))


def _review(task: TaskReport, review: Review, *, last: bool) -> Iterator[Markup]:
    tone = "good" if review.decision == "approve" else "warn"
    tests = {True: "its tests passed", False: "its tests failed", None: "it ran no tests"}
    ran = tests[review.test_results.passed]
    verdict = tag("span", review.decision, class_=f"pill {tone}")
    yield tag("h4", "Coach ", verdict, tag("span", f" {ran}", class_="dim"))
    yield said(review.summary)
    if review.issues:
        yield tag("ul", [_issue(issue) for issue in review.issues], class_="issues")
    if review.question:
        yield tag("div", said(review.question), class_="callout you")
    if not last:
        yield _criteria(task.criteria, review.evidence, begun=True)


def _issue(issue: Issue) -> Markup:
    tone = _SEVERITIES[issue.severity]
    where = tag("span", code(issue.file), " ") if issue.file else None
    more = tag("div", said(issue.suggestion, 1_000), class_="dim") if issue.suggestion else None
    severity = tag("span", issue.severity.replace("_", " "), class_=f"pill {tone}")
    return tag("li", severity, tag("div", where, said(issue.description, 2_000), more))


def _as_prompt(task: TaskReport, each: Round) -> Markup:
    """What whoever mends it needs to know, ready to be given to an agent."""
    ref = f"{each.anchor}/prompt"
    button = tag("button", "Copy as prompt", type="button", data_copy=ref, hidden=True)
    return tag(
        "details",
        tag("summary", tag("b", "As a prompt"), button),
        tag("pre", prompt(task, each, LONG), id=ref, tabindex="0"),
        class_="prompt",
    )
