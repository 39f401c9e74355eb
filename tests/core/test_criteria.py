"""Acceptance criteria are found wherever and however their author wrote them down (G1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.formats import criteria, markdown

AC = "## Acceptance Criteria\n"


def read(text: str, data: object = None) -> tuple[str, ...]:
    return criteria.read(markdown.parse(text), data)[0]


@pytest.mark.parametrize(
    "heading",
    [
        "## Acceptance Criteria", "# ACCEPTANCE CRITERIA", "### 3. Acceptance Criteria:",
        "## ✅ Acceptance Criteria (all met)", "## **Acceptance Criteria**",
        "## Additional Acceptance Criteria", "#### Acceptance Criterion",
        "## Acceptance Criteria for Review Task", "## Acceptance-Criteria", "## Success Criteria",
        "### Definition of Done ✅", "## Done when", "## Acceptance Criteria Status",
        "**Acceptance Criteria:**", "**Success Criteria**:", "Acceptance Criteria\n===",
    ],
)  # fmt: skip
def test_under_any_such_heading(heading):
    assert read(f"# T\n\n{heading}\n\n- [ ] a\n- [x] b\n\n# Next\n- c\n") == ("a", "b")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1. a\n2) b\n", ("a", "b")),
        ("- [~] a\n- [] b\n- ✅ c\n", ("a", "b", "✅ c")),
        ("<!-- AC:BEGIN -->\n- [ ] #1 a\n- [ ] #2 b\n<!-- AC:END -->\n", ("#1 a", "#2 b")),
        ("Intro:\n\n- a\n  ```\n  code\n  ```\n", ("a\n```\ncode\n```",)),
        ("### Must\n- a\n\n**Later:**\n- b\n", ("a", "b")),
        ("| AC | What | Met |\n|---|:-:|--|\n| 1 | a \\| b | ✅ |\n| | |\n", ("1 | a \\| b",)),
        ("A | B\n--|--\nx | y\n", ("x | y",)),
        ("a | b\nno table\n", ("a | b\nno table",)),
        ("all of it works\nat once\n", ("all of it works\nat once",)),
        ("```bash\nmake\n```\n\nmust pass\n", ("```bash\nmake\n```\n\nmust pass",)),
        ("It must:\n\n☐ a\n  more of a\n☐ b\n", ("a\n  more of a", "b")),
        ("[ ] a\n[x] b\n", ("a", "b")),
        ("AC-1: a\nAC-2: b\n", ("AC-1: a", "AC-2: b")),
        ("**One** a\n\n```\nx\n```\n\n**Two** b\n", ("**One** a\n\n```\nx\n```", "**Two** b")),
        ("### AC1: a\n```\nGIVEN\n```\n### AC2: b\n", ("AC1: a\n\n```\nGIVEN\n```", "AC2: b")),
        ("Intro\n\n### A\n#### AC-1 x\ny\n", ("AC-1 x\n\ny",)),
        ("### AC-1 x\nprose\n### Rest\n- b\n### Notes\nnone\n", ("AC-1 x\n\nprose", "b")),
        ("### Part\nprose\n", ("Part\n\nprose",)),
        ("---\n", ()),
    ],
)
def test_in_any_form(text, found):
    assert read(f"# T\n{AC}\n{text}") == found


def test_the_surest_place_wins():
    assert read("## Success Criteria\n- a\n" + AC + "- b\n") == ("b",)
    assert criteria.read(markdown.parse("## Success Criteria\n- a\n" + AC + "- b\n"), None)[1] == 1
    assert read(AC + "prose\n", ["a", "", 1, " b "]) == ("a", "b")
    assert read("text", "one") == ("one",)
    assert read("## Acceptance Criteria Met\n- a\n\n" + AC + "- b\n") == ("b",)
    assert read("**Acceptance Criteria:** it works\n") == ("it works",)
    assert read("## Criteria of others\n- a\n") == ()


def test_the_same_list_once_more_is_not_counted_twice():
    text = AC + "- a\n- a\n- b\n## Report\n### Acceptance Criteria\n- [x] a\n- [x] c\n"
    assert read(text) == ("a", "a", "b", "c")


def test_code_that_shows_criteria_has_none():
    assert read("```\n" + AC + "- a\n```\n") == ()


PIECES = st.sampled_from(
    [AC, "### AC-1 x\n", "- a\n", "  - b\n", "| a | b |\n", "|---|---|\n", "text\n", "**B:** c\n",
     "☐ d\n", "```\n", "---\n", "\n", "<!-- x -->\n", "> q\n", "1. e\n", "## Success Criteria\n"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=20))
def test_any_document_has_criteria_that_say_something(pieces):
    assert all(text.strip() for text in read("".join(pieces)))
