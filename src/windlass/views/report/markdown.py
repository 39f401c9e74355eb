"""The report as Markdown, suitable as the text of a pull request.

Law: text from an agent, a plan or a check cannot be markup, mention a person, or close an issue. A
text that is too long ends with a count of the tasks left out, never in the middle.
"""

from collections.abc import Iterator

from windlass.core.events.model import CheckResult
from windlass.views.cost import amounts, column, doubts
from windlass.views.lines import tally
from windlass.views.report.model import Report, Round, TaskReport, lines_of
from windlass.views.words import duration, markdown_text, money, more_and_less, plural, tokens

_SOME = 300
_MORE = 1_000
_ENDS = 400
"""Characters for the line that says how much is left out."""


def markdown(report: Report, *, most: int | None = None) -> str:
    """The whole report; with `most`, as many tasks as fit into that many characters."""
    text = "\n".join(_overview(report))
    end = "\n".join(_cost(report))
    room = None if most is None else most - len(end) - _ENDS
    left = 0
    for block in ("\n".join(_task(task)) for task in report.tasks):
        if left or (room is not None and len(text) + len(block) > room):
            left += 1
        else:
            text += f"\n{block}"
    if left:
        text += f"\n{plural(left, 'more task')}: `windlass report` shows them all.\n"
    whole = f"{text}\n{end}\n"
    return whole if most is None or len(whole) <= most else _short(report, most)


def _short(report: Report, most: int) -> str:
    """Only the overview, cut to the length."""
    lines = list(_overview(report))
    end = "\n`windlass report` shows the rest.\n"
    text = ""
    for line in lines:
        if len(text) + len(line) + 1 + len(end) > most:
            break
        text += f"{line}\n"
    return (text + end)[:most]


def _overview(report: Report) -> Iterator[str]:
    metrics, cost = report.metrics, report.cost
    counts = ", ".join(f"{n} {word.replace('_', ' ')}" for word, n in report.statuses.items())
    yield f"# {markdown_text(report.plan.title, _SOME)}"
    yield ""
    yield f"**{report.status.replace('_', ' ')}**: {plural(metrics.tasks, 'task')}: {counts}"
    if report.reason:
        yield f" ({markdown_text(report.reason, _MORE)})"
    yield ""
    yield f"- Run {markdown_text(report.run, 40)} of {markdown_text(report.plan.path, _SOME)}"
    spent = f"{amounts(cost)} of {money(report.max_cost)}"
    yield f"- Cost {spent}, elapsed {duration(report.elapsed)}"
    yield from (f"- {doubt}" for doubt in doubts(cost))
    turns = f"{plural(metrics.turns, 'turn')}, {metrics.returned} returned"
    yield f"- {turns}; checks: {report.checks}"
    yield f"- {markdown_text(report.branch.text, _SOME)}"
    yield from (f"- {markdown_text(note, _SOME)}" for note in report.branch.details)
    yield from (f"- {markdown_text(note, _SOME)}" for note in report.notes)
    yield from (f"- Next: `{_in_code(step)}`" for step in report.next[:1])
    yield from _troubles(report)
    yield ""
    yield "| | task | status | turns | changed | cost |"
    yield "|---|---|---|---|---|---|"
    yield from (_row(task) for task in report.tasks)


def _troubles(report: Report) -> Iterator[str]:
    if report.troubles:
        yield ""
        yield "## Needs you"
        yield ""
    for line in report.troubles:
        yield f"- **{line.word.lower()}** {markdown_text(line.text, _SOME)}"
        yield from (f"  - {markdown_text(detail, _SOME)}" for detail in line.details)


def _row(task: TaskReport) -> str:
    changed = " ".join(more_and_less(*lines_of(task.changes))) if task.changes else ""
    title = f"**{markdown_text(task.id, 80)}** {markdown_text(task.title, 120)}"
    spent = column(task.cost) if task.rounds else ""
    turns = f"{task.turns}/{task.allowed}" if task.turns else ""
    mark = {"completed": "✓", "abandoned": "✗", "blocked": "✗"}.get(task.status, "·")
    return f"| {mark} | {title} | {task.status.replace('_', ' ')} | {turns} | {changed} | {spent} |"


def _task(task: TaskReport) -> Iterator[str]:
    yield ""
    yield f"## {markdown_text(task.id, 80)} {markdown_text(task.title, 200)}"
    yield ""
    if task.needs:
        yield f"Blocked: it needs {markdown_text(task.needs, 80)}."
        yield ""
    if task.asks:
        yield f"> {markdown_text(task.asks, _MORE)}"
        yield ""
    seen = {each.criterion: each for each in task.evidence}
    for number, text in enumerate(task.criteria, 1):
        each = seen.get(number)
        box = "x" if each is not None and each.met else " "
        yield f"- [{box}] {markdown_text(text, _MORE)}"
        if each is not None:
            yield f"  - {'' if each.met else 'not met: '}{markdown_text(each.evidence, _MORE)}"
    if task.rounds:
        yield ""
        yield "Turns:"
        yield ""
    yield from (line for each in task.rounds for line in _round(each))


def _round(each: Round) -> Iterator[str]:
    own = [checked.results for checked in each.checks if not checked.merged]
    parts = [f"Turn {each.attempt.turn}: {each.fate}"]
    parts += [f"checks {tally(own[-1])}"] if own else []
    if each.changes:
        signed = more_and_less(*lines_of(each.changes))
        parts.append(" ".join((plural(len(each.changes), "file"), *signed)))
    if each.attempt.commit is not None:
        parts.append(each.attempt.commit[:10])
    yield f"- {', '.join(parts)}"
    for results in own[-1:]:
        yield from (f"  - {_check(result)}" for result in results)
    reviews = [c.review for c in each.attempt.coachings if c.review is not None]
    for review in reviews[-1:]:
        yield f"  - Coach, {review.decision}: {markdown_text(review.summary, _MORE)}"
        for issue in review.issues:
            where = f"{markdown_text(issue.file, _SOME)}: " if issue.file else ""
            description = markdown_text(issue.description, _MORE)
            yield f"  - {issue.severity.replace('_', ' ')}: {where}{description}"


def _check(result: CheckResult) -> str:
    word = (result.absence or result.outcome).replace("_", " ")
    return f"{word}: {markdown_text(result.command, _SOME)}"


def _cost(report: Report) -> Iterator[str]:
    yield ""
    yield "## Cost"
    yield ""
    yield "| | cost | in | cached | out |"
    yield "|---|---|---|---|---|"
    for by in ("role", "model"):
        for key, total in report.costs[by].items():
            used = (total.input_tokens, total.cached_tokens, total.output_tokens)
            cells = [column(total), *map(tokens, used)]
            yield f"| {markdown_text(key, 80)} | {' | '.join(cells)} |"


def _in_code(text: str) -> str:
    """A command of Windlass for a code span; a plan's name in it may have backticks."""
    return text.replace("`", "'").replace("\n", " ")
