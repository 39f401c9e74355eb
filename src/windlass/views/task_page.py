"""One task, whole: its state, what it asks, and for each turn what was said, run and found.

Law: no text of an agent, a person or a check is cut here.
"""

from collections.abc import Iterator

from windlass.core.events.review import Review
from windlass.core.state import Attempt, Phase, RunState, TaskState
from windlass.core.state.checks import task_checks
from windlass.core.state.selection import blocked
from windlass.core.state.transitions import HELPLESS
from windlass.views.closing import asks
from windlass.views.cost import column, task_cost
from windlass.views.lines import ALL, Line, failure_lines, harmless_line, not_passed, tally
from windlass.views.outcome import words_for_people
from windlass.views.progress import turns_allowed
from windlass.views.steps import ways_to_help
from windlass.views.words import one_line

_TITLE = 200


def task_page(state: RunState, task_id: str) -> list[Line]:
    """The lines about a task; the word of each says what it is about."""
    return [harmless_line(line) for line in _lines(state, state.tasks[task_id])]


def _lines(state: RunState, task: TaskState) -> Iterator[Line]:
    spec, word = state.specs[task.id], words_for_people(state)[task.id].replace("_", " ")
    turn = f" · turn {task.last.turn}/{turns_allowed(state, task)}" if task.attempts else ""
    spent = f" · {column(task_cost(state, task))}" if task.attempts else ""
    yield Line("task", f"{task.id} {one_line(spec.title, _TITLE)}")
    yield Line("status", f"{word}{turn}{spent}", _circumstances(state, task))
    if checks := task_checks(state, task.id):
        first, *more = (f"`{one_line(check, _TITLE)}`" for check in checks)
        yield Line("checks", first, tuple(more))
    if task.phase in HELPLESS | {Phase.ABANDONED}:
        first, *more = ALL.prose(asks(task)) or ("",)
        yield Line("asks" if task.phase in HELPLESS else "because", first, tuple(more))
    for attempt in task.attempts:
        yield from _attempt(attempt)
    for step in ways_to_help(task, state) if task.phase in HELPLESS else ():
        yield Line("next", step.command)


def _circumstances(state: RunState, task: TaskState) -> tuple[str, ...]:
    cause = blocked(state).get(task.id)
    merged = f"merged as {task.merge_commit[:10]}" if task.merge_commit else ""
    return tuple(filter(None, (merged, f"needs {cause}" if cause else "")))


def _attempt(attempt: Attempt) -> Iterator[Line]:
    """The start of a Player or a person, and what became of it."""
    who = "the tip" if attempt.is_tip else attempt.by or "Player"
    commit = f" · {attempt.commit[:10]}" if attempt.commit else ""
    failed = f" · {attempt.failure}" if attempt.failure is not None else ""
    turn = f"turn {attempt.turn}" if attempt.turn else "tried"
    why = failure_lines(attempt.message, attempt.setup, ALL) if attempt.failure else ()
    yield Line(turn, f"{who}{commit}{failed}", (*why, *ALL.prose(attempt.summary)))
    if attempt.question:
        yield _said("asked", attempt.question)
    if attempt.refused:
        yield _said("refused", attempt.refused)
    if attempt.results:
        yield Line("checks", tally(attempt.results), not_passed(attempt.results))
    for coaching in attempt.coachings:
        if coaching.review is not None:
            yield _review(coaching.review)
        if coaching.failure is not None:
            why = failure_lines(coaching.message, coaching.setup, ALL)
            yield Line("Coach", str(coaching.failure), why)
    if attempt.feedback:
        yield _said("returned", attempt.feedback)


def _review(review: Review) -> Line:
    issues = (
        f"{issue.severity}: {f'{issue.file}: ' if issue.file else ''}{issue.description}"
        for issue in review.issues
    )
    said = (line for issue in issues for line in ALL.prose(issue))
    more = ALL.prose(review.feedback or "")
    return Line("Coach", review.decision, (*ALL.prose(review.summary), *said, *more))


def _said(word: str, text: str) -> Line:
    first, *more = ALL.prose(text) or ("",)
    return Line(word, first, tuple(more))
