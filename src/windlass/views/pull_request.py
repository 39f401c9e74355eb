"""The text of a pull request for a run: tasks, criteria with their evidence, checks, cost.

Law: derived from the state alone, so the same state always gives the same text. The text around
Windlass's own part belongs to people, and stays.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated
from urllib.parse import quote, urlencode

from msgspec import Meta, Struct

from windlass.core.events.model import CheckResult
from windlass.core.events.review import Review
from windlass.core.state import RunState, TaskState
from windlass.views.cost import amounts, column, doubts, run_cost, task_cost
from windlass.views.lines import UNCHECKED, is_unchecked, tally
from windlass.views.outcome import (
    STALE_BECAUSE,
    accepted_line,
    check_lines,
    task_statuses,
    text_shown,
)
from windlass.views.progress import integration_branch, turns_used
from windlass.views.words import (
    code_span,
    markdown_text,
    one_line,
    plural,
    tokens,
    without_mentions,
)

TITLE = 256
"""How long a title may be on GitHub."""
LIMIT = 65_536
"""How long a body may be on GitHub, in characters."""
BEGIN, END = "<!-- windlass: from here -->", "<!-- windlass: to here -->"
SUMMARY, SUMMARY_END = "<!-- windlass: summary -->", "<!-- windlass: end of summary -->"
_NAME, _CRITERION, _SAID, _COMMAND = 120, 400, 600, 120
_SUMMARY, _PARTS = 1500, 8
_AS_MERGED: Mapping[str, str] = {}
_ROOM = 200
"""For the line that says how much was left out."""


class Draft(Struct, frozen=True, kw_only=True):
    """An agent's text: quoted like all text from others, and never instead of the facts."""

    title: Annotated[str, Meta(description="What the change brings, at most 70 characters")]
    summary: Annotated[str, Meta(description="What a reviewer should know, at most 200 words")]


def title_of(state: RunState, draft: Draft | None = None) -> str:
    """The plan's own title, or an agent's, as one line."""
    if draft is not None and draft.title.strip():
        return without_mentions(draft.title, TITLE)
    return one_line(state.plan.title or state.plan.id, TITLE)


def summary_of(draft: Draft) -> str:
    """An agent's summary between its own marks, paragraph by paragraph."""
    parts = [
        markdown_text(part, _SUMMARY)
        for part in draft.summary.split("\n\n")[:_PARTS]
        if part.strip()
    ]
    return "\n\n".join([SUMMARY, *parts, SUMMARY_END]) if parts else ""


def summary_in(body: str) -> str:
    """The summary that an earlier call put there, if any."""
    _, mark, rest = body.partition(SUMMARY)
    summary, end, _ = rest.partition(SUMMARY_END)
    return f"{mark}{summary}{end}" if end else ""


def body_of(
    state: RunState,
    *,
    summary: str = "",
    squashed: Mapping[str, str] = _AS_MERGED,
    limit: int = LIMIT,
) -> str:
    """Windlass's own part, between its marks, of at most that many characters.

    `squashed` has the commit that stands for each merge, if others see only those.
    """
    sections = [*([summary] if summary else []), *_sections(state, squashed)]
    room = limit - len(BEGIN) - len(END) - _ROOM
    kept: list[str] = []
    for section in sections:
        room -= len(section) + 2
        if room < 0:
            break
        kept.append(section)
    if left := len(sections) - len(kept):
        more = f"{plural(left, 'more section')} did not fit"
        kept.append(f"… and {more}: `windlass log {state.plan.id}`")
    return "\n\n".join([BEGIN, *kept, END])


def fitted_into(
    there: str,
    state: RunState,
    *,
    summary: str = "",
    squashed: Mapping[str, str] = _AS_MERGED,
) -> str:
    """An existing body with Windlass's part replaced and the rest unchanged."""
    before, begin, rest = there.partition(BEGIN)
    own, end, after = rest.partition(END)
    if not begin or not end:
        # A person removed the marks: the whole text is theirs.
        before, after = (f"{there.rstrip()}\n\n" if there.strip() else ""), ""
    limit = LIMIT - len(before) - len(after)
    kept = summary or summary_in(own)
    return before + body_of(state, summary=kept, squashed=squashed, limit=limit) + after


def _sections(state: RunState, squashed: Mapping[str, str]) -> Iterator[str]:
    """The sections, the most important first: those at the end are left out if they do not fit."""
    words = task_statuses(state)
    yield "\n".join(_head(state))
    yield "\n".join(_table(state, words, squashed))
    left = [task for task in state.tasks.values() if task.merge_commit is None]
    if left:
        lines = [f"- {_name(state, task)}: {words[task.id]}" for task in left]
        yield "\n".join(["## Not included", "", *lines])
    yield "\n".join(["## Checks on the merged work", "", *_checks(state)])
    yield "\n".join(["## Trace", "", *_trace(state, squashed)])
    for task in state.tasks.values():
        if task.merge_commit is not None:
            yield "\n".join(_task(state, task))


def _head(state: RunState) -> Iterator[str]:
    done, all_ = len(state.done), len(state.tasks)
    cost = run_cost(state)
    yield f"**{markdown_text(state.plan.title or state.plan.id, TITLE)}**"
    yield ""
    merged = f"{done} of {plural(all_, 'task')} done in {plural(state.merges, 'merge')}"
    unchecked = is_unchecked(state)
    looked = "reviewed" if unchecked else "checked by Windlass and reviewed"
    again = "" if unchecked else ", and checked again as merged"
    yield f"{merged}. What agents did was {looked} by another agent before it was merged{again}."
    yield (
        f"Cost: {amounts(cost)}, {tokens(cost.tokens)} tokens."
        + "".join(f" ({doubt}.)" for doubt in doubts(cost))
    )
    if unchecked:
        yield f"**{UNCHECKED[0].upper()}{UNCHECKED[1:]}.**"


def _table(state: RunState, words: dict[str, str], squashed: Mapping[str, str]) -> Iterator[str]:
    yield "| task | status | turns | checks | cost | commit |"
    yield "|---|---|---:|---|---:|---|"
    for task in state.tasks.values():
        cost = task_cost(state, task)
        cells = (
            _name(state, task),
            f"{words[task.id]}{_aside(state, task)}",
            str(turns_used(task)),
            (tally(task.last.results) if task.counted else "") or "none",
            column(cost),
            squashed.get(merge := task.merge_commit or "", merge)[:10],
        )
        yield f"| {' | '.join(cells)} |"


def _aside(state: RunState, task: TaskState) -> str:
    if state.is_stale(task.id):
        return ", merged for an older text"
    return ", accepted by a person" if accepted_line(state, task.id) else ""


def _name(state: RunState, task: TaskState) -> str:
    return f"{markdown_text(task.id, 64)} {markdown_text(state.specs[task.id].title, _NAME)}"


def _checks(state: RunState) -> Iterator[str]:
    if state.verification:
        yield from (_check(result) for result in state.verification)
    elif is_unchecked(state):
        yield "There are none."
    else:
        # A tree whose checks passed is not checked again: use the evidence of the tip's tree.
        proven = state.evidence.get(state.tip_tree or "", {})
        yield from (_check(result) for result in proven.values())
        if not proven:
            yield "They have not run on the merged work yet."


def _check(result: CheckResult) -> str:
    flaky = ", with a different result for the same files before" if result.wavers else ""
    outcome = (result.absence or result.outcome).replace("_", " ")
    counted = f", {plural(result.tests, 'test')}" if result.tests is not None else ""
    return f"- {code_span(result.command, _COMMAND)} {outcome}{counted}{flaky}"


def _trace(state: RunState, squashed: Mapping[str, str]) -> Iterator[str]:
    base = state.base_branch or "commit"
    tip = squashed.get(state.tip, state.tip)
    yield f"- Branch {code_span(integration_branch(state), 200)} at {tip[:10]}"
    yield f"- Base {code_span(base, 200)} at {state.base[:10]}"
    yield f"- Run {code_span(state.run, 40)}, sandbox level {state.sandbox}"
    yield "- Every commit names its origin: `Windlass-Run`, `Windlass-Task`, `Windlass-Turn`"


def _task(state: RunState, task: TaskState) -> Iterator[str]:
    """A task with its criteria and what the Coach saw for each."""
    spec = text_shown(state, task.id)
    yield f"## {_name(state, task)}"
    if state.is_stale(task.id):
        yield f"\n**Stale: {STALE_BECAUSE}. The evidence here is for that text.**"
        yield from (f"- {markdown_text(line, _SAID)}" for line in check_lines(state, task.id))
    elif accepted := accepted_line(state, task.id):
        shown = "the evidence here is for the older text"
        yield f"\n{markdown_text(accepted, _SAID)}; {shown}."
    if not task.counted:
        yield "\nImported from another tool; it was not reviewed here."
        return
    last = task.last
    by = f"{markdown_text(last.by, 80)}: " if last.by else ""
    if last.summary.strip():
        yield f"\n{by}{markdown_text(last.summary, _SAID)}"
    reviews = (coaching.review for coaching in reversed(last.coachings))
    review = next((each for each in reviews if each is not None), None)
    evidence = {item.criterion: item for item in review.evidence} if review is not None else {}
    yield ""
    for number, criterion in enumerate(spec.acceptance_criteria or (spec.title,), start=1):
        item = evidence.get(number)
        word = "no evidence" if item is None else "met" if item.met else "not met"
        yield f"- {word}: {markdown_text(criterion, _CRITERION)}"
        if item is not None:
            yield f"  - {markdown_text(item.evidence, _SAID)}"
    yield from _issues(review)
    yield from (_check(result) for result in last.results)


def _issues(review: Review | None) -> Iterator[str]:
    """The Coach's remaining issues; none of them is a `must_fix`."""
    for issue in review.issues if review is not None else ():
        where = f" ({code_span(issue.file, _COMMAND)})" if issue.file else ""
        severity = issue.severity.replace("_", " ")
        yield f"- {severity}: {markdown_text(issue.description, _SAID)}{where}"


GITHUB = "github.com"


class Target(Struct, frozen=True, kw_only=True):
    """The repository and branch for a pull request."""

    host: str
    path: str
    """The base repository, such as owner/name."""
    base: str
    head: str


def is_github(host: str) -> bool:
    """Whether it is a host of GitHub itself; a company's own server may have any name."""
    return host == GITHUB or host.endswith(".ghe.com")


def new_page(target: Target) -> str:
    """The address of the page that opens it, if the kind of host is known; else empty."""
    root, host = f"https://{target.host}/{quote(target.path)}", target.host
    base, head = quote(target.base, safe="/"), quote(target.head, safe="/:")
    if is_github(host):
        return f"{root}/compare/{base}...{head}?expand=1"
    if "gitlab" in host:
        named = {"source_branch": target.head, "target_branch": target.base}
        asked = urlencode({f"merge_request[{key}]": value for key, value in named.items()})
        return f"{root}/-/merge_requests/new?{asked}"
    if "bitbucket" in host:
        return f"{root}/pull-requests/new?{urlencode({'source': target.head, 'dest': target.base})}"
    if any(kind in host for kind in ("codeberg", "gitea", "forgejo")):
        return f"{root}/compare/{base}...{head}"
    return ""
