"""A merged task's box is ticked in tasks.md, one byte and no other (B10)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from windlass.core.state import RunState, fold
from windlass.formats import load, project
from worlds import World, writes

PATH = "specs/001-x/tasks.md"
TEXT = """\
# Tasks: X

```
- [ ] T001 in code
```

## Phase 1: Setup

- [ ] T001 a
* [~] **T002** b
  - [ ] a criterion
1. [ ] T003 c
- [x] T004 d
- [] T005 e

## Summary
- [ ] T001 again
"""


def finished() -> World:
    plan = load(PATH, TEXT)
    made = World(plan, {task.id: writes(task.id, "1") for task in plan.tasks})
    made.go()
    return made


STATES = finished()


def after(*, merged: int) -> RunState:
    """The state at the first moment when so many tasks are merged."""
    for count in range(1, len(STATES.events) + 1):
        state = fold(STATES.events[:count])
        assert state is not None
        if sum(task.status == "completed" for task in state.tasks.values()) == merged:
            return state
    raise AssertionError(merged)


def test_boxes_are_ticked_as_tasks_are_merged():
    shown = TEXT
    assert project(after(merged=0), {PATH: shown}) == {}
    for count, (old, new) in enumerate(
        [
            ("- [ ] T001 a", "- [X] T001 a"),
            ("* [~] **T002** b", "* [X] **T002** b"),
            ("1. [ ] T003 c", "1. [X] T003 c"),
        ],
        1,
    ):
        texts = project(after(merged=count), {PATH: shown})
        assert texts == {PATH: shown.replace(f"{old}\n", f"{new}\n")}
        shown = texts[PATH] or ""
        assert project(after(merged=count), {PATH: shown}) == {}, "nothing is new"
    assert project(STATES.state, {PATH: shown}) == {}, "T004 has its tick, T005 no room for one"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_exactly_one_character_changes_for_each(newline: str, mark: str):
    text = mark + TEXT.replace("\n", newline)
    made = project(STATES.state, {PATH: text})[PATH]
    assert made is not None
    assert len(made) == len(text)
    changed = [text[at - 1 : at + 2] for at in range(len(text)) if made[at] != text[at]]
    assert changed == ["[ ]", "[~]", "[ ]"]


def test_what_a_person_ticked_is_never_taken_back():
    state = STATES.state
    tasks = {each: replace(task) for each, task in after(merged=0).tasks.items()}
    ticked = TEXT.replace("[ ]", "[x]").replace("[~]", "[x]")
    assert project(replace(state, tasks=tasks), {PATH: ticked}) == {}
    assert project(state, {PATH: ticked}) == {}


def test_a_list_that_was_moved_about_meanwhile():
    text = "# Tasks: X\n\n- [ ] T003 c\n- [ ] T001 moved\n- [ ] T001 copied\n- [ ] T009 new\n"
    made = project(STATES.state, {PATH: text})[PATH]
    assert made == text.replace("[ ] T003", "[X] T003").replace("[ ] T001 moved", "[X] T001 moved")
    only_in_code = "# Tasks: X\n\n```\n- [ ] T001 a\n```\n"
    assert project(STATES.state, {PATH: only_in_code}) == {}
    assert project(STATES.state) == {}, "gone"


LINES = st.sampled_from(
    [*TEXT.split("\n"), "> - [ ] T002 q", "    - [ ] T003 i", "### T002 h", "\t"]
)


@given(st.lists(LINES, max_size=20), st.sampled_from(["\n", "\r\n", "\r"]))
def test_whatever_the_file_is_only_boxes_change(lines: list[str], newline: str):
    text = newline.join(lines)
    made = project(STATES.state, {PATH: text}).get(PATH) or text
    assert len(made) == len(text)
    assert all(a == b or (b == "X" and a in " ~") for a, b in zip(text, made, strict=True))
