"""The nearest known word, and slips of known words (issue 15, lines 6 and 7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.nearest import did_you_mean, misspelt, nearest
from windlass.formats.slips import label_slip, slip_of

COMMANDS = ("status", "stop", "run", "resume", "retry", "log", "plan")
FIELDS = ("acceptance criteria", "depends on", "files", "stage", "model", "max turns", "task")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("staus", "status"),
        ("STATUS", "status"),
        ("rn", "run"),
        ("lgo", "log"),
        ("pland", "plan"),
        ("frobnicate", None),
        ("", None),
        ("s" * 10_000, None),
    ],
)
def test_the_nearest_command_is_suggested(typed: str, meant: str | None):
    assert nearest(typed, COMMANDS) == meant


@pytest.mark.parametrize(
    ("typed", "known", "meant"),
    [
        ("1.9", ("1.1", "1.2"), None),
        ("12", ("1.1", "1.2"), "1.2"),
        ("t12", ("T012", "T013"), "T012"),
        ("TASK-001", ("TASK-0001", "TASK-0010"), "TASK-0001"),
    ],
)
def test_a_suggestion_never_changes_a_number(typed: str, known: tuple[str, ...], meant: str | None):
    assert nearest(typed, known) == meant


def test_the_question_is_followed_by_what_to_do_otherwise():
    assert did_you_mean("staus", COMMANDS, "see --help") == "did you mean 'status'? see --help"
    assert did_you_mean("zzz", COMMANDS, "see --help") == "see --help"
    assert did_you_mean("zzz", COMMANDS) == ""


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("acceptence criteria", "acceptance criteria"),
        ("Acceptance Critera", "acceptance criteria"),
        ("acceptance criterion", "acceptance criteria"),
        ("depend on", "depends on"),
        ("dependson", "depends on"),
        ("dpeends on", "depends on"),
        ("max turn", "max turns"),
        ("Tsk", "task"),
        ("taks", "task"),
        ("atsk", "task"),
        ("fiels", "files"),
    ],
)
def test_a_slip_is_known(written: str, meant: str):
    assert misspelt(written, FIELDS) == meant


@pytest.mark.parametrize(
    "written",
    [
        *("depends on", "dependencies", "depends upon", "success criteria", "acceptance"),
        *("mask", "desk", "title", "estimate", "depends on others", "", "x", "task 1"),
    ],
)
def test_another_word_is_no_slip(written: str):
    assert misspelt(written, FIELDS) is None


def test_a_short_word_inside_is_never_a_slip():
    assert misspelt("blocked_at", ("blocked_by",)) is None
    assert misspelt("id", ("ids", "is")) is None


@pytest.mark.parametrize("word", ["mode", "Models", "state", "stages", "tasks"])
def test_a_word_of_its_own_is_no_slip(word: str):
    assert slip_of(word, ("model", "stage", "task")) is None
    assert label_slip(word, ("Model", "Stage", "Task")) is None


def test_labels_are_compared_without_case_and_returned_as_written():
    assert label_slip("depends on", ("Depends on",)) is None
    assert label_slip("depend on", ("Depends on",)) == "Depends on"


@given(st.text(max_size=200))
def test_any_text_is_compared(text: str):
    misspelt(text, FIELDS)
    nearest(text, COMMANDS)
