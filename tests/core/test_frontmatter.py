"""Only the lines of owned keys change; every other byte of a file is its author's (G9)."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from windlass.errors import PlanError
from windlass.formats.frontmatter import body, read, spliced

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
OWNED = {
    "status": "in_review",
    "feature_build": {"current_turn": 1, "at": AT, "turns": [{"turn": 1, "feedback": None}]},
}
WRITTEN = """\
feature_build:
  current_turn: 1
  at: 2026-01-01T12:00:00Z
  turns:
    - turn: 1
      feedback: null
"""

OTHERS = [
    "# a comment of the author's",
    "",
    "title: 'a --- b'  # odd",
    'quoted: "its #1: \\u00e9"',
    "long: " + "x" * 300,
    "created: 2025-01-08T10:00:00Z",
    "commit: 0123456",
    "näme:   größe # a\ttab",
    "tab: 'a\tb'",
    "text: |\n  ---\n  # no comment\n\n  end",
    "folded: >-\n  one\n  two",
    "tags: [a, 'b', {c: d}]",
    "list:\n- a\n-   b   # why\n- ",
    "deep:\n    er: 1\n    # inner\n    empty:",
    "nothing:",
    "two lines: one\n  two",
    '"status ": x',
]
STATUS = [
    "status: backlog",
    "status:   'in progress'   # why",
    "status:",
    "status: # none yet",
    "status:\n  backlog",
    "status: !!str x",
    'status : "a"',
    "'status': a",
]
BUILDS = [
    "feature_build: null",
    "feature_build: {a: 1,\n  b: 2}",
    "feature_build:\n  turns:\n  - turn: 1\n    feedback: |\n      # not a comment\n      x",
    "feature_build: |\n  text\n\n",
    "feature_build:\n  a:\n    b:",
    'feature_build: "one\n  # two"  # its own',
    "feature_build: one\n  two",
]
BODIES = [
    "",
    "# Title\n\n---\n\nstatus: body\n---\n",
    "\n---\nlast\tline, no end",
    "# é\u2028\x85\n",
]


def lines(part: str, newline: str) -> str:
    return "".join(line + newline for line in part.split("\n"))


def plain(text: str) -> dict:
    found = read("t.md", text)
    assert found is not None
    return found.data


@given(
    others=st.lists(st.sampled_from(OTHERS), unique=True),
    status=st.sampled_from([None, *STATUS]),
    build=st.sampled_from([None, *BUILDS]),
    tail=st.sampled_from(BODIES),
    newline=st.sampled_from(["\n", "\r\n"]),
    bom=st.sampled_from(["", "\ufeff"]),
    data=st.data(),
)
def test_only_owned_lines_change(others, status, build, tail, newline, bom, data):
    parts = [*others, *(part for part in (status, build) if part is not None)]
    parts = data.draw(st.permutations(parts)) if parts else []
    text = bom + "---" + newline + "".join(lines(p, newline) for p in parts)
    text += "---" + newline + tail
    result = spliced("t.md", text, OWNED)

    before, after = plain(text), plain(result)
    assert after["status"] == "in_review"
    assert after["feature_build"]["turns"] == [{"turn": "1", "feedback": None}]
    rest = {key: value for key, value in before.items() if key not in OWNED}
    assert {key: value for key, value in after.items() if key not in OWNED} == rest
    assert list(after)[: len(before)] == list(before), "keys stay in order, new ones come last"
    # Every line of anyone else is there, byte for byte and in order.
    at = 0
    for part in parts:
        if part not in (status, build):
            at = result.index(lines(part, newline), at) + len(part)
    assert result.startswith(f"{bom}---{newline}")
    assert result.endswith(f"---{newline}{tail}")
    assert lines(WRITTEN.rstrip("\n"), newline) in result
    assert body(result) == body(text) == tail
    assert spliced("t.md", result, OWNED) == result
    # Another reading of YAML says the same.
    inside = result.removeprefix(bom).split("\n", 1)[1].removesuffix(f"---{newline}{tail}")
    assert YAML(typ="safe", pure=True).load(inside)["status"] == "in_review"


@given(st.text(max_size=60))
@example("yes")
@example("1.5")
@example("---")
@example(".nan")
@example("a: b # c")
@example("\x85\u2028\ufeff\x7f\ud800")
def test_any_text_is_written_so_that_it_reads_the_same(value):
    text = spliced("t.md", "---\nid: 1\n---\n", {"a": value, "b": {"c": [value]}})
    assert plain(text) == {"id": "1", "a": value, "b": {"c": [value]}}
    if not any("\ud800" <= char <= "\udfff" for char in value):
        loaded = YAML(typ="safe", pure=True).load(text.split("\n---\n")[0])
        assert loaded["a"] == value, "and no YAML takes it for anything but text"


def test_an_inline_comment_stays():
    text = "---\nstatus: backlog  # or blocked\nother: 1\n---\n"
    assert spliced("t.md", text, {"status": "blocked"}) == text.replace("backlog", "blocked")


def test_comments_after_a_block_stay_and_those_in_it_go():
    text = "---\nb:\n  # inner\n  c: 1\n  # after\n\n# next\nid: x\n---\n"
    assert spliced("t.md", text, {"b": [1, "two", True, [], {}]}) == (
        "---\nb:\n  - 1\n  - two\n  - true\n  - []\n  - {}\n  # after\n\n# next\nid: x\n---\n"
    )


def test_indented_keys_get_indented_company():
    text = "---\n  id: a\n  b:\n    c: |\n      x\n      # x\n  # mine\n---\n"
    assert spliced("t.md", text, {"b": {"d": 1}, "e": None}) == (
        "---\n  id: a\n  b:\n    d: 1\n  # mine\n  e: null\n---\n"
    )


@pytest.mark.parametrize(
    "text", ["", "# T\r\nx", "---\nid: never closed\n", "---", "--- x\na: 1\n"]
)
def test_a_text_without_frontmatter(text):
    assert read("t.md", text) is None
    assert body("\ufeff" + text) == text
    assert spliced("t.md", text, {}) == text
    newline = "\r\n" if "\r\n" in text else "\n"
    made = spliced("t.md", "\ufeff" + text, {"status": "blocked"})
    assert made == f"\ufeff---{newline}status: blocked{newline}---{newline}{text}"


def test_empty_frontmatter_takes_keys():
    assert spliced("t.md", "---\n---\n", {"a": 1}) == "---\na: 1\n---\n"
    assert spliced("t.md", "---\n# c\n---", {"a": ""}) == '---\n# c\na: ""\n---'


def test_values_are_text_and_lines_are_the_files():
    found = read("t.md", "\ufeff---\nid: 0123\nnone: ~\ntext: 'null'\nl: [1, {a: }]\n---\n")
    assert found is not None
    assert found.data == {"id": "0123", "none": None, "text": "null", "l": ["1", {"a": None}]}
    assert [found.data.lines[key] for key in found.data] == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("yaml", "line", "why"),
    [
        ("a: 1\nb: 2\na: 3", 4, "the key 'a' twice"),
        ("a:\n  b: 1\n  b: 2", 4, "the key 'b' twice"),
        ("a: &x [1]\nb: *x", 2, "an anchor or an alias"),
        ("b: *x", 2, "an anchor or an alias"),
        ("a: " + "[" * 25 + "]" * 25, 2, "nested more than"),
        ("a: " + "[" * 100_000, 2, "nested more than"),
        ("- a", 2, "not a list of keys"),
        ("{a: 1}", 2, "not a list of keys"),
        ("just words", 2, "has no keys"),
        ("? a\n: b", 2, "in an unexpected place"),
        ("id: x\n? [a]\n: b", 3, "a key that is not text"),
        ("a: 1\n...", 3, "more than one YAML document"),
        ("a: 1\n--- b", 3, "more than one YAML document"),
        ("a: 'x", 2, "is not YAML"),
        ("a: b: c", 2, "is not YAML"),
        ("\ta: 1", 2, "is not YAML"),
        ("%YAML 1.10\na: 1", 1, "is not YAML"),
        ("    a: >-\n   ", 1, "is not YAML"),  # only with something after it
        ("a: \x01", 1, "is not YAML"),
        ('a: "\\UFFFFFFFF"', 1, "is not YAML"),
        ("a: " + "x" * 500_000, 1, "more than 500,000"),
    ],
)
def test_what_is_refused_says_where(yaml, line, why):
    with pytest.raises(PlanError, match=why) as refused:
        spliced("t.md", f"---\n{yaml}\n---\n", {"status": "blocked"})
    assert refused.value.line == line or why == "is not YAML"
