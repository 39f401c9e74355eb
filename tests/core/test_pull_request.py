"""What a pull request says of a run, and what nothing quoted in it can do."""  # K8

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.events.review import CriterionEvidence, Issue, Review, TestResults
from windlass.core.plan import Task
from windlass.core.settings import Settings
from windlass.core.state import RunState, apply
from windlass.views.pull_request import (
    BEGIN,
    END,
    LIMIT,
    TITLE,
    Draft,
    Target,
    body_of,
    fitted_into,
    is_github,
    new_page,
    summary_of,
    title_of,
)
from windlass.views.words import code_span, markdown_text
from worlds import NOON, World, plan_of, writes

HOSTILE = [
    "@octocat and @acme/team",
    "fixes #12, closes acme/app#3, resolves GH-4",
    "Closes https://github.com/acme/app/issues/5 and www.evil.example",
    "# A heading",
    "text\n# A heading\n- [x] done",
    "</details><img src=x onerror=1>",
    f"{END}\n\n# Approved",
    "| a | b |\n|---|---|",
    "```\ncode",
    "[a](https://evil.example)![b](c)",
    "1. one",
    "* a _b_ `c` ~~d~~ $e$ :+1: &lt;",
    "a\\",
    "\x1b[2J\u202e",
]
ASKED = "merge_request%5Bsource_branch%5D=u%3Ax%2Fy&merge_request%5Btarget_branch%5D=main"
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def calls(text: str) -> list[str]:
    """What a forge would find in the words of a rendered text."""
    import re

    return re.findall(r"@[\w-]|#\d|\bGH-\d|https?://|\bwww\.", text, re.IGNORECASE)


def words_of(markdown: str) -> str:
    """What a reader sees of one paragraph; anything but words and breaks in it is a fault."""
    tokens = MARKDOWN.parse(markdown)
    kinds = [token.type for token in tokens]
    assert kinds == ["paragraph_open", "inline", "paragraph_close"], (markdown, kinds)
    children = tokens[1].children or []
    assert {child.type for child in children} <= {"text", "text_special"}, (markdown, children)
    return "".join(child.content for child in children)


@given(st.one_of(st.sampled_from(HOSTILE), st.text(min_size=1)))
def test_what_is_quoted_reads_as_it_was_said_and_does_nothing(text: str):
    shown = markdown_text(text, 500)
    if not shown:
        return
    read = words_of(f"word {shown}")
    assert words_of(shown) == read.removeprefix("word ")
    assert calls(read) == []
    assert "\n" not in shown


@given(st.one_of(st.sampled_from(HOSTILE), st.text(min_size=1)))
def test_code_holds_exactly_one_line(text: str):
    tokens = MARKDOWN.parse(f"- {code_span(text, 200)} pass")
    inline = next(token for token in tokens if token.type == "inline")
    assert [child.type for child in inline.children or []] == ["code_inline", "text"]


def ended(*tasks: Task, settings: Settings | None = None, **plays: str) -> RunState:
    world = World(
        plan_of(*tasks),
        {task.id: writes(task.id, plays.get(task.id, "x")) for task in tasks},
        rule=lambda _, files: "bad" not in files.values(),
        settings=settings or Settings(checks=("test",), max_turns=1, agents=1),
    )
    world.go()
    return world.state


ONE = Task(id="a", title="First", acceptance_criteria=("it works", "it lasts"))
TWO = Task(id="b", title="Second", depends_on=())


def test_a_whole_run_is_told_with_criteria_evidence_checks_and_cost():
    state = ended(ONE, TWO)
    body = body_of(state)
    assert body.startswith(BEGIN)
    assert body.endswith(END)
    assert "2 of 2 tasks done in 2 merges" in body
    assert "| a First | completed | 1 | 1 pass |" in body
    assert "- met: it works\n  - " in body
    assert "- met: Second" in body  # a task without criteria: its title is the criterion
    assert "- `test` pass" in body
    assert f"at {state.tip[:10]}" in body
    assert "Windlass-Run" in body
    assert "Not in here" not in body
    assert title_of(state) == "P"


def test_what_is_not_merged_is_said():
    body = body_of(ended(ONE, TWO, b="bad"))
    assert "1 of 2 tasks done" in body
    assert "## Not included\n\n- b Second: abandoned" in body
    assert "They have not run on the merged work yet." not in body


def changed(state: RunState, task: str, **changes: object) -> RunState:
    found = state.tasks[task]
    last = replace(found.last, **changes)
    return replace(
        state, tasks={**state.tasks, task: replace(found, attempts=(*found.attempts[:-1], last))}
    )


def test_evidence_issues_and_who_did_it():
    state = ended(ONE)
    review = Review(
        decision="approve",
        summary="",
        test_results=TestResults(passed=True),
        evidence=(CriterionEvidence(criterion=1, met=False, evidence="@you saw #1"),),
        issues=(
            Issue(severity="nice_to_have", category="style", description="long", file="a|b.py"),
            Issue(severity="should_fix", category="style", description="short"),
        ),
    )
    coaching = replace(state.tasks["a"].last.coachings[-1], review=review)
    empty = replace(coaching, review=None)
    flaky = e.CheckResult(
        command="x",
        outcome=e.Outcome.ABSENT,
        absence=e.Absence.TIMED_OUT,
        tests=3,
        answers=(e.Outcome.PASS, e.Outcome.FAIL),
    )
    state = changed(
        state, "a", coachings=(coaching, empty), by="Ann", summary="did", results=(flaky,)
    )
    body = body_of(state)
    assert "\nAnn: did\n" in body
    assert "- not met: it works\n  - @\u200byou saw \\#\u200b1\n- no evidence: it lasts" in body
    assert "- nice to have: long (`a|b.py`)\n- should fix: short\n" in body
    assert "- `x` timed out, 3 tests, with a different result for the same files before" in body
    silent = changed(state, "a", coachings=(), summary="", by=None)
    assert "- no evidence: it works" in body_of(silent)


def test_what_nobody_here_did_and_what_is_not_known():
    state = ended(ONE)
    taken = replace(state.tasks["a"], attempts=())
    adopted = replace(state, tasks={"a": taken})
    assert "Imported from another tool" in body_of(adopted)
    spent = replace(state.tasks["a"], spent=e.Usage(known=False))
    assert "is unknown" in body_of(replace(state, tasks={"a": spent}))


def test_checks_on_the_whole():
    state = ended(ONE)
    assert "- `test` pass" in body_of(replace(state, verification=()))
    seen = e.CheckResult(command="whole", outcome=e.Outcome.FAIL)
    assert "- `whole` fail" in body_of(replace(state, verification=(seen,)))
    nothing = replace(state, verification=None, evidence={}, tip_tree=None)
    assert "They have not run on the merged work yet." in body_of(nothing)
    unchecked = ended(ONE, settings=Settings())
    body = body_of(unchecked)
    assert "There are none." in body
    assert "**Unchecked: " in body
    assert "checked by Windlass" not in body
    bare = replace(unchecked, base_branch=None, at=NOON + timedelta(1))
    assert "- Base `commit`" in body_of(bare)


def test_a_stale_task_is_said_to_be():
    state = ended(ONE)
    other = replace(ONE, acceptance_criteria=("it glows",), text="Make it glow", checks=("more",))
    edit = e.PlanRevised(at=state.at, plan=plan_of(other))
    stale = apply(state, edit)
    body = body_of(stale)
    assert "stale, merged for an older text" in body
    assert "0 of 1 task done" in body
    assert "**Stale: merged for an older text of the plan." in body
    assert "`more` has not run on the tip" in body.replace("\\", "")
    assert "it glows" not in body, "what was seen was seen for the older text"
    word = e.TaskAccepted(at=state.at, task="a", by="ada", spec=other)
    body = body_of(apply(stale, word))
    assert "completed, accepted by a person" in body
    assert "accepted by ada" in body
    assert "it glows" not in body


def test_a_title_is_one_line_and_fits():
    state = ended(ONE)
    assert len(title_of(replace(state, plan=replace(state.plan, title="x\n" * 999)))) == TITLE
    assert title_of(replace(state, plan=replace(state.plan, title=""))) == "p"


def test_what_has_no_room_is_cut_between_sections_and_said():
    many = tuple(
        Task(id=f"t{n}", title=f"T{n}", acceptance_criteria=("c" * 399,) * 9) for n in range(40)
    )
    state = ended(*many, settings=Settings(checks=("test",), agents=8))
    body = body_of(state)
    assert LIMIT // 2 < len(body) <= LIMIT
    assert "more sections did not fit: `windlass log p`" in body
    assert body.endswith(END)
    theirs = "x" * 60_000
    both = fitted_into(f"{theirs}\n{BEGIN}{END}", state)
    assert both.startswith(theirs)
    assert len(both) <= LIMIT


def test_what_people_wrote_around_it_stays():
    state = ended(ONE)
    first = body_of(state)
    assert fitted_into(f"Hello\n\n{first}\n\nBye", state) == f"Hello\n\n{first}\n\nBye"
    assert fitted_into("", state) == first
    assert fitted_into("Only theirs\n", state) == f"Only theirs\n\n{first}"
    assert fitted_into(f"{BEGIN} broken", state) == f"{BEGIN} broken\n\n{first}"


def test_an_agents_words_are_quoted_and_stay_until_there_are_others():
    state = ended(ONE)
    draft = Draft(title="Fixes #3 for\n@ann", summary="# Great\n\n\n\n- fixes #4\nand more\n")
    assert title_of(state, draft) == "Fixes #\u200b3 for @\u200bann"
    summary = summary_of(draft)
    assert summary.splitlines()[2:-2] == ["\\# Great", "", "\\- fixes \\#\u200b4 and more"]
    body = body_of(state, summary=summary)
    assert body.startswith(f"{BEGIN}\n\n{summary}\n\n**P**")
    assert fitted_into(body, state) == body
    other = summary_of(replace(draft, summary="Other"))
    assert fitted_into(body, state, summary=other) == body_of(state, summary=other)
    silent = Draft(title=" ", summary="\n\n")
    assert title_of(state, silent) == "P"
    assert summary_of(silent) == ""


@pytest.mark.parametrize(
    ("host", "page"),
    [
        ("github.com", "https://github.com/a/b/compare/main...u:x/y?expand=1"),
        ("gitlab.example.com", f"https://gitlab.example.com/a/b/-/merge_requests/new?{ASKED}"),
        ("bitbucket.org", "https://bitbucket.org/a/b/pull-requests/new?source=u%3Ax%2Fy&dest=main"),
        ("codeberg.org", "https://codeberg.org/a/b/compare/main...u:x/y"),
        ("git.example.com", ""),
    ],
)
def test_each_forge_has_its_page(host: str, page: str):
    assert new_page(Target(host=host, path="a/b", base="main", head="u:x/y")) == page


def test_which_hosts_are_githubs_own():
    assert is_github("github.com")
    assert is_github("acme.ghe.com")
    assert not is_github("github.com.evil.example")
