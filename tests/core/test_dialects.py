"""What holds for every dialect: how one is found, and what one that nobody knows amounts to."""

import pytest
from msgspec.structs import replace

from windlass.core.plan import Task
from windlass.errors import PlanError
from windlass.formats import continue_here_path, load, project, refers_to, shares, writes
from worlds import World, plan_of


def test_a_plan_of_one_file_refers_to_no_other():
    assert refers_to("p.md", {"p.md": "## Task 1: a\n"}) == ()


def test_what_nobody_recognises_refers_to_nothing():
    assert refers_to("notes", {"notes/a.md": "hello\n"}) == ()


def test_a_folder_that_nobody_recognises_is_no_plan():
    with pytest.raises(PlanError, match="no tasks found"):
        load("notes", {"notes/a.md": "hello\n"})


SPEC = """\
---
id: SPEC-1
---
# S

### Task Groups

| Group | Tasks | Dependencies |
|---|---|---|
| G1 | a | - |
"""


@pytest.mark.parametrize(
    ("path", "text", "shared"),
    [
        ("p.md", "## Task 1: a\n", ()),
        ("T.md", "---\nid: T\nstatus: x\n---\n# T\n", ("T.md",)),
        ("S.md", SPEC, (".specflow/STATE.md",)),
    ],
)
def test_what_is_the_users_own_is_told_from_what_windlass_makes(path, text, shared):
    plan = load(path, text)
    assert shares(plan) == shared
    assert set(shared) <= set(writes(plan))


def test_a_dialect_of_a_newer_version_is_left_alone():
    plan = replace(plan_of(Task(id="a", title="a")), dialect="unheard-of")
    world = World(plan, {"a": lambda *_: None})
    world.go()
    assert writes(plan) == ()
    assert project(world.state) == {}


@pytest.mark.parametrize(
    ("dialect", "path"),
    [("spec", ".specflow/.continue-here"), ("milestone", ".windlass/continue-here")],
)
def test_where_a_paused_run_says_how_to_go_on(dialect: str, path: str):  # S9
    assert continue_here_path(replace(plan_of(Task(id="a", title="a")), dialect=dialect)) == path
