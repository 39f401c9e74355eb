"""A task file is a plan of one task (G1)."""

import pytest

from windlass.errors import PlanError
from windlass.formats import load, taskfile, writes
from windlass.formats.dialect import Source

TASK = """\
---
id: TASK-042
title: "Log in --- with OAuth"
status: backlog
complexity: 4
dependencies: [TASK-041, TASK-040]
---

# Task: Log in

## Acceptance Criteria

### Must
- [ ] a user can log in
  - also twice

**Later:**
1. the token is refreshed

## Notes
- no criterion

**Checks:** `make test`, `make lint`
"""


def test_the_whole_task():
    plan = load("tasks/TASK-042.md", TASK)
    task = plan.tasks[0]
    assert (plan.id, plan.dialect, plan.title) == ("TASK-042", "taskfile", "Log in --- with OAuth")
    assert len(plan.tasks) == 1
    assert task.id == "TASK-042"
    assert task.complexity == 4
    assert task.acceptance_criteria == (
        "a user can log in\n- also twice",
        "the token is refreshed",
    )
    assert task.checks == ("make test", "make lint")
    assert task.depends_on == ()
    assert task.text.startswith("# Task: Log in\n")
    assert task.text in TASK
    assert task.text.endswith("`make lint`")
    note = plan.notes[0]
    assert note.line == 6
    assert "TASK-041, TASK-040" in note.text
    assert writes(plan) == ("tasks/TASK-042.md",)


def test_what_windlass_writes_above_changes_nothing_of_the_task():
    """Else every resumed run would be told that its plan has changed."""
    written = TASK.replace("complexity: 4\n", "complexity: 4\nfeature_build:\n  turns: []\n")
    assert load("t.md", written).tasks == load("t.md", TASK).tasks


def one(front: str = "", text: str = "") -> str:
    return f"---\nid: T-1\nstatus: backlog\n{front}---\n{text}"


def test_without_a_title_the_heading_is_it_else_the_id():
    assert load("t.md", one(text="text\n\n# The\n")).title == "The"
    assert load("t.md", one("title:\n", "text\n")).title == "T-1"


def test_criteria_under_a_label_or_as_data():
    label = one(text="**Acceptance Criteria:**\n- a\n\n**Other:**\n- b\n")
    assert load("t.md", label).tasks[0].acceptance_criteria == ("a",)
    data = one("acceptance_criteria: [a, {b: c}, '', 'd ']\n", "## Acceptance Criteria\nprose\n")
    assert load("t.md", data).tasks[0].acceptance_criteria == ("a", "d")
    inner = one(text="## Acceptance Criteria\n- a\n### Acceptance Criteria\n- b\n")
    assert load("t.md", inner).tasks[0].acceptance_criteria == ("a", "b")


def test_criteria_of_another_name_are_read_where_there_are_no_others():
    both = one(text="## Success Criteria\n- a\n## Acceptance Criteria\n- b\n")
    plan = load("t.md", both)
    assert plan.tasks[0].acceptance_criteria == ("b",)
    assert [(note.line, note.text) for note in plan.notes] == [
        (5, "'Success Criteria' are not read; 'Acceptance Criteria' are")
    ]
    alone = one(text="## Success Criteria\n- a\n")
    assert load("t.md", alone).tasks[0].acceptance_criteria == ("a",)


def test_what_else_the_frontmatter_says():
    front = "files_to_create: [a.py, '', b.py]\nfiles_to_modify: [a.py]\nfiles: none\nname: N\n"
    task = load("t.md", one(f"{front}complexity: 5/10 (medium)\n")).tasks[0]
    assert (task.title, task.files, task.complexity) == ("N", ("a.py", "b.py"), 5)
    assert load("t.md", one("complexity: High\n")).tasks[0].complexity == 8
    assert not task.marked_done
    done = load("t.md", one().replace("backlog", "Completed")).tasks[0]
    assert done.marked_done, "a claim, which nobody but adopt looks at"


def test_an_older_name_for_the_id():
    text = "---\ntask_id: T-9\ntitle: Nine\nstatus: backlog\n---\n"
    assert load("t.md", text).tasks[0].id == "T-9"


def test_checks_as_a_list_or_none():
    listed = one(text="**Checks:**\n- `a b`\n- run `c`\n\n**Check:** look at `d`\n")
    plan = load("t.md", listed)
    assert plan.tasks[0].checks == ("a b", "c"), "'Check' is what an author wants looked at"
    assert [note.line for note in plan.notes] == [9]
    assert load("t.md", one(text="**Checks:** none\n")).tasks[0].checks == ()
    with pytest.raises(PlanError, match=r"t\.md:6: 'checks' has no command"):
        load("t.md", one(text="x\n**Checks:** run them all\n"))


def test_one_dependency_may_be_a_word():
    assert "is ignored" in load("t.md", one("depends_on: T-0\n")).notes[0].text
    assert load("t.md", one("depends_on: []\ndependencies:\n")).notes == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (one("complexity: much\n"), "t.md:4: 'complexity' is not a number from 0 to 10"),
        (one("complexity: 11\n"), "t.md:4: 'complexity' is not"),
        (one("title: [a]\n"), "t.md:4: 'title' is not one word"),
        (one("id: T-2\n"), "t.md:4: the frontmatter has the key 'id' twice"),
        ("---\nid:\nstatus: x\n---\n", "the task has no id"),
        ("---\nid: a/../b\nstatus: x\n---\n", "a/../b"),
    ],
)
def test_what_cannot_be_used_says_where(text, why):
    with pytest.raises(PlanError) as refused:
        load("t.md", text)
    assert why in str(refused.value)


def test_without_frontmatter_there_is_no_task():
    with pytest.raises(PlanError, match="there is no frontmatter"):
        load("t.md", "# Title\n", dialect="taskfile")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (TASK, True),
        ("\ufeff" + TASK.replace("\n", "\r\n"), True),
        ("---\nid: a\npriority: high\n---\n", True),
        ("---\nid: a\ntitle: a blog post\n---\n# x\n", False),
        ("---\nstatus: x\n---\n", False),
        ("---\ntask_id: a\nstatus: completed\n---\n# Report\n", False),
        ("---\nid: SPEC-1\nstatus: x\n---\n", False),
        ("---\nid:\nstatus: x\n---\n", True),
        ("# Report\n\nid: a\nstatus: done\n", False),
        ("---\nid: a\nstatus: x\n---\n## Task 1.1: Milestones have these\n", False),
        ("---\nid: a\nstatus: 'x\n---\n", True),
        ("---\nid: 'a\n---\n", False),
    ],
)
def test_it_is_known_by_what_it_contains(text, meant):
    assert taskfile.TASKFILE.recognises(Source(path="any.md", texts={"any.md": text})) is meant


def test_the_declared_id():
    assert taskfile.declared_id("t.md", TASK) == "TASK-042"
    assert taskfile.declared_id("t.md", "---\nid: [a]\n---\n") is None
    assert taskfile.declared_id("t.md", "---\nid: 'a\n---\n") is None
    assert taskfile.declared_id("t.md", "# T\n") is None
