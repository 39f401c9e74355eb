"""Commands find their run from any folder of the repository, a task's workspace included."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import plans
from desk import Desk
from quick import ENVIRONMENT, quick_run
from windlass.app.wiring import Project
from windlass.core.events.model import Failure
from windlass.core.settings import Settings, WorkspaceSettings
from windlass.testing.agents import Play, ScriptedAgent

PARTS = {"1.1": {"docs/1.1.txt": "1"}, "1.2": {"1.2.txt": "2"}, "1.3": {"1.3.txt": "3"}}
LIMIT = Play(edits={"half.txt": "half"}, failure=Failure.AUTH, message="no key")
LOOKS = (
    ("status", "--json"),
    ("log",),
    ("history", "--json"),
    ("costs", "--json"),
    ("report", "--format", "markdown", "--output", "-"),
    ("plan", "plan.md", "--json"),
    ("diff", "1.1"),
    ("doctor", "--json"),
)


@pytest.fixture(params=["clone", "worktree"])
def taken(desk: Desk, request: pytest.FixtureRequest) -> tuple[Desk, Path]:
    """A person stands in the workspace of 1.2; another plan was run here too, and is unfinished."""
    desk.commit("plan.md", plans.plan_text(plans.SEQUENCE))
    desk.commit("windlass.toml", "max_turns = 4\n")
    desk.commit("other.md", plans.plan_text({"1.2": ()}))
    quick_run(desk.repo, ScriptedAgent({"1.2": LIMIT}), plan_path="other.md", run="o1")
    settings = Settings(workspace=WorkspaceSettings(kind=request.param))
    quick_run(desk.repo, ScriptedAgent({**PARTS, "1.2": LIMIT}), settings=settings)
    answer = desk.call("take", "plan:1.2")
    assert answer.code == 0, answer.err
    return desk, Path(answer.out.strip())


def test_every_command_that_looks_finds_the_run_of_the_workspace(taken: tuple[Desk, Path]):
    desk, workspace = taken
    alone = {"plan", "doctor"}
    named = {
        args: desk.call(*args) if args[0] in alone else desk.call(*args, "plan")
        for args in LOOKS
        if args[0] != "diff"
    }
    named["diff", "1.1"] = desk.call("diff", "plan:1.1")
    assert all(answer.out for answer in named.values())
    for place in (workspace, workspace / "docs"):
        desk.directory = place
        for args in LOOKS:
            typed = ("plan", "../plan.md", "--json") if place.name == "docs" else args
            there = desk.call(*(typed if args[0] == "plan" else args))
            assert there == named[args], (place, args)


def test_a_task_is_given_back_from_its_workspace_and_the_run_goes_on(taken: tuple[Desk, Path]):
    desk, workspace = taken
    (workspace / "1.2.txt").write_text("by hand")
    desk.directory = workspace
    assert "diff --git a/half.txt" in desk.call("diff").out, "what was done for it so far"
    answer = desk.call("give")
    assert (answer.code, answer.out) == (0, "Recorded. To continue: windlass resume plan\n")
    assert desk.call("pause").err.startswith("windlass: no run of 'plan' is in progress")
    assert "nothing to land" not in desk.call("land", "--yes").err
    assert desk.call("abort", "--yes").out.startswith("The run of plan: it is aborted")


def test_a_repository_of_an_agent_inside_a_workspace_is_not_taken_for_the_project(
    taken: tuple[Desk, Path],
):
    """Nor is a folder that looks like a workspace: only Windlass writes the note beside it."""
    desk, workspace = taken
    nested = workspace / "nested"
    fake = nested / ".windlass/plans/plan/workspaces/1.1"
    fake.mkdir(parents=True)
    desk.git("init", "--quiet", str(nested))
    note = nested / ".windlass/plans/plan/private/1.1/prepared.json"
    note.parent.mkdir(parents=True)
    real = desk.repo / ".windlass/plans/plan/private/1.2/prepared.json"
    note.write_bytes(real.read_bytes())
    for place in (nested, fake):
        project = Project(place, ENVIRONMENT)
        assert project.root == desk.repo
        assert project.here is not None
        assert (project.here.plan, project.here.task) == ("plan", "1.2")
    real.unlink()
    assert Project(workspace.parent, ENVIRONMENT).here is None
    assert Project(workspace.parent, ENVIRONMENT).root == desk.repo


def test_outside_of_a_workspace_a_task_must_be_named(desk: Desk):
    answer = desk.call("give")
    assert answer.code == 2
    assert "name the task" in answer.err
    assert "windlass give TASK" in answer.err


@pytest.mark.parametrize(
    ("file", "text", "named"),
    [
        ("services/api/windlass.toml", 'checks = ["make test"]\n', "services/api/windlass.toml is"),
        ("services/windlass.toml", "", "services/windlass.toml is"),
        (
            "services/api/pyproject.toml",
            "[tool.windlass]\nagents = 2\n",
            "[tool.windlass] of services/api/pyproject.toml is",
        ),
    ],
)
def test_settings_in_a_sub_folder_are_refused_by_name(desk: Desk, file: str, text: str, named: str):
    desk.write("services/api/plan.md", plans.plan_text({"1.1": ()}))
    desk.commit(file, text)
    before = desk.everything()
    desk.directory = desk.repo / "services/api"
    said = f"windlass: {named} not at the root of the repository, and is not read; move its keys to"
    asked = (("run", "plan.md"), ("run", "plan.md", "--dry-run"))
    for args in (*asked, ("plan", "plan.md"), ("plan", "plan.md", "--json")):
        answer = desk.call(*args)
        assert (answer.code, answer.err[: len(said)]) == (2, said), answer.err
        assert str(desk.repo / "windlass.toml") in answer.err
    doctor = json.loads(desk.call("doctor", "--json").out)
    assert not doctor["usable"]
    assert any(each["said"].startswith(named) for each in doctor["findings"])
    desk.directory = desk.repo
    assert desk.call("plan", "services/api/plan.md", "--json").code == 0, "it is not meant here"
    assert desk.everything() == before


def test_settings_beside_the_plan_are_said_to_be_unused_by_a_run_from_the_root(desk: Desk):
    desk.write("services/api/plan.md", plans.plan_text({"1.1": ()}))
    desk.write("windlass.toml", 'checks = ["false"]\n')
    desk.commit("services/windlass.toml", "agents = 2\n")
    answer = desk.call("run", "services/api/plan.md", "--red-base", "stop")
    used = "services/windlass.toml is not used: a run reads the settings at the repository's root"
    assert f"NOTE  {used}" in answer.err, answer.err


def test_another_tools_file_in_a_sub_folder_is_none_of_windlass(desk: Desk):
    desk.write("services/plan.md", plans.plan_text({"1.1": ()}))
    desk.commit("services/pyproject.toml", "[tool.ruff]\nline-length = 100\n")
    desk.directory = desk.repo / "services"
    assert desk.call("plan", "plan.md", "--json").code == 0
    desk.write("services/pyproject.toml", "this is not TOML")
    assert desk.call("plan", "plan.md", "--json").code == 0


def test_a_shell_in_a_removed_workspace_still_finds_its_repository(taken: tuple[Desk, Path]):
    """`resume` removes the workspace of a merged task, also under the shell that stands in it."""
    desk, workspace = taken
    script = f'cd "{workspace}/docs" && rm -rf "{workspace}" && exec "$@" status plan --json'
    done = subprocess.run(
        ["sh", "-c", script, "sh", sys.executable, "-m", "windlass"],
        cwd=desk.repo, env=desk.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["plan"] == "plan"
    assert done.stderr == f"{workspace}/docs no longer exists; using the repository around it\n"
