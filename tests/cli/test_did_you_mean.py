"""A name that is nearly right gets a suggestion, whatever it names (issue 15, line 7)."""

import pytest
from msgspec.structs import replace

from desk import Desk
from windlass.core.plan import Task
from worlds import World, plan_of, writes


def refused(desk: Desk, *args: str, **more: str) -> str:
    answer = desk.call(*args, **more)
    assert answer.code == 2, answer
    return answer.err.splitlines()[-1]


@pytest.fixture
def known(desk: Desk) -> Desk:
    """A desk where the plan `files` was run, with one task in one stage."""
    task = Task(id="alpha", title="A", stage="foundation")
    world = World(replace(plan_of(task), id="files", path="files.md"), {"alpha": writes("a", "1")})
    world.go()
    desk.record("files", world.events)
    return desk


@pytest.mark.parametrize(
    ("typed", "meant"), [("staus", "status"), ("resum", "resume"), ("Plan", "plan")]
)
def test_commands(desk: Desk, typed: str, meant: str):
    assert refused(desk, typed) == f"Error: No such command {typed!r}. Did you mean {meant!r}?"


def test_a_command_like_no_other_gets_none(desk: Desk):
    assert refused(desk, "frobnicate") == "Error: No such command 'frobnicate'."


@pytest.mark.parametrize("command", ["plan", "run", "status"])
def test_plan_files(desk: Desk, command: str):
    desk.write("docs/health.md", "x")
    assert "did you mean 'plan.md'?" in refused(desk, command, "paln.md")
    assert "did you mean 'docs/health.md'?" in refused(desk, command, "health.md")
    assert "did you mean" not in refused(desk, command, "quite-another-thing.txt")


def test_plan_files_are_named_from_where_one_stands(desk: Desk):
    desk.write("docs/health.md", "x")
    desk.directory = desk.repo / "docs"
    assert "did you mean 'health.md'?" in refused(desk, "plan", "heatlh.md")
    assert "did you mean '../plan.md'?" in refused(desk, "plan", "plan.md")


def test_dialects(desk: Desk):
    assert "did you mean 'milestone'?" in refused(desk, "plan", "plan.md", "--dialect", "milstone")


def test_tasks_and_stages_of_a_plan(desk: Desk):
    desk.write("plan.md", "## Task 1.1: a\n**Stage:** build\n")
    assert "did you mean '1.1'?" in refused(desk, "run", "plan.md", "--task", "11")
    assert "did you mean 'build'?" in refused(desk, "run", "plan.md", "--stage", "biuld")
    assert "did you mean" not in refused(desk, "run", "plan.md", "--task", "1.2")


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        (["diff", "alhpa"], "alpha"),
        (["diff", "files:alpah"], "alpha"),
        (["approve", "foundatoin"], "foundation"),
        (["log", "files", "--task", "alpah"], "alpha"),
        (["log", "files", "--kind", "RETRUNED"], "RETURNED"),
        (["log", "files", "--kind", "TaskMergd"], "TaskMerged"),
        (["status", "fiels"], "files"),
        (["resume", "files", "--reset-task", "alhpa"], None),
    ],
)
def test_tasks_stages_and_words_of_a_run(known: Desk, args: list[str], meant: str | None):
    words = refused(known, *args)
    assert meant is None or f"did you mean {meant!r}?" in words


def test_a_variable_that_is_nearly_a_setting(known: Desk):
    known.write("hard.md", "## Task 1: Hard\n**Complexity:** 9\n")
    answer = known.call("run", "hard.md", "--sandbox", "none", WINDLASS_MAX_COTS="3")
    assert answer.code == 3
    assert "did you mean 'WINDLASS_MAX_COST'?" in answer.err + answer.out


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("check = []\n", "checks"),
        ("[sandbox]\nhost = []\n", "sandbox.hosts"),
        ("[sandbx]\nhosts = []\n", "sandbox"),
        ("hosts = []\n", None),
        ("setup = []\n", "workspace.setup"),
        ('[sandbox]\nlevel = "chekout"\n', "checkout"),
        ('[policy]\nred_base = "sotp"\n', "stop"),
        ('[agent]\nname = "cluade"\n', "claude"),
        ("agents = 0\n", None),
    ],
)
def test_settings(desk: Desk, text: str, meant: str | None):
    desk.write("windlass.toml", text)
    words = refused(desk, "plan", "plan.md")
    assert (f"did you mean {meant!r}?" if meant else "did you mean") in words or meant is None
    assert meant is not None or "did you mean" not in words


def test_task_files(desk: Desk):
    desk.write("tasks/backlog/TASK-7-login.md", "---\nid: TASK-7\nstatus: backlog\n---\n")
    assert "did you mean 'TASK-7-login'?" in refused(desk, "feature-build", "TSK-7-logn")
