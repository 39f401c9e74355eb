"""When two texts of a task ask for the same, so that what was merged for one is done for both."""

# B7
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from strategies import instances
from windlass.core.plan import Task, digest_of, same_meaning, with_meaning

TASK = Task(
    id="a",
    title="Write it",
    text="Do this:\n\n- [ ] first\n- [ ] second\n\n```sh\nrun  it\n  twice\n```\n",
    acceptance_criteria=("it runs", "- [ ] it stops"),
    checks=("pytest -q", "ruff check"),
    files=("a.py",),
    creates=("a.py",),
)

SAME = {
    "ticked": {"text": TASK.text.replace("[ ]", "[X]")},
    "marked as begun": {"text": TASK.text.replace("- [ ] first", "- [~] first")},
    "a criterion ticked": {"acceptance_criteria": ("it runs", "- [x] it stops")},
    "lines of Windows": {"text": TASK.text.replace("\n", "\r\n")},
    "wrapped otherwise": {"text": TASK.text.replace("Do this:\n", "Do\n  this:  \n\n")},
    "spaces at the end": {"text": TASK.text.replace("run  it", "run  it   ") + "\n\n"},
    "another order": {
        "acceptance_criteria": TASK.acceptance_criteria[::-1],
        "checks": TASK.checks[::-1],
    },
    "moved": {"line": 7, "path": "b.md", "depends_on": ("x",), "stage": "2"},
    "another hint": {"files": ("b.py",), "complexity": 9, "model": "m", "max_turns": 2},
    "said to be done": {"marked_done": True},
}
OTHER = {
    "title": {"title": "Write them"},
    "a word": {"text": TASK.text.replace("first", "the first")},
    "a new item": {"text": TASK.text.replace("second\n", "second\n- [ ] third\n")},
    "code": {"text": TASK.text.replace("run  it", "run it")},
    "indented code": {"text": TASK.text.replace("  twice", "    twice")},
    "a criterion": {"acceptance_criteria": (*TASK.acceptance_criteria, "it lasts")},
    "fewer criteria": {"acceptance_criteria": ("it runs",)},
    "a check": {"checks": (*TASK.checks, "mypy")},
    "spaces in a check": {"checks": ("pytest  -q", "ruff check")},
    "no check": {"checks": ()},
    "a file to create": {"creates": ("a.py", "b.py")},
    "absent checks": {"skip_absent": True},
}


@pytest.mark.parametrize("edit", SAME.values(), ids=SAME)
def test_what_asks_for_the_same(edit: dict):
    other = replace(TASK, **edit)
    assert same_meaning(TASK, other)
    assert digest_of(TASK) == digest_of(other)


@pytest.mark.parametrize("edit", OTHER.values(), ids=OTHER)
def test_what_asks_for_something_else(edit: dict):
    other = replace(TASK, **edit)
    assert not same_meaning(TASK, other)
    assert digest_of(TASK) != digest_of(other)


def test_a_line_of_code_outside_of_a_fence_is_kept_as_it_is():
    code = replace(TASK, text="Say:\n\n    if a:\n        b\n\nThen go.")
    other = replace(TASK, text="Say:\n\n    if a:\n    b\n\nThen go.")
    assert not same_meaning(code, other)
    assert same_meaning(code, replace(code, text="Say:\n    if a:\n        b  \nThen\ngo."))
    unfinished = replace(TASK, text="```\nopen  fence\n~~~\n")
    assert not same_meaning(unfinished, replace(TASK, text="```\nopen fence\n~~~\n"))


@given(instances(Task), instances(Task))
def test_digest_and_meaning_agree(one: Task, other: Task):
    assert same_meaning(one, one)
    assert same_meaning(one, replace(one, text=f"{one.text}\n \n"))
    assert same_meaning(one, other) == (digest_of(one) == digest_of(other))
    assert same_meaning(with_meaning(one, other), other)
    assert with_meaning(one, other).depends_on == one.depends_on


@given(st.lists(st.text(alphabet="ab `~[]x-\t ", max_size=20), max_size=6))
def test_ticks_alone_never_count(lines: list[str]):
    open_, ticked = (
        Task(id="a", title="", text="\n".join(f"- [{mark}] {line}" for line in lines))
        for mark in " X"
    )
    assert same_meaning(open_, ticked)
