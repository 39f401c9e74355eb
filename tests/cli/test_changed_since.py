"""A run that goes on has a base of its own, wherever its user stands by now."""  # B7 G7

from pathlib import Path

import pytest

import plans
from desk import Desk
from quick import quick_run
from windlass.core.settings import Settings
from windlass.testing.agents import ScriptedAgent

HARD = """
## Task 1.2: Write 1.2.txt

**Depends on:** 1.1
**Complexity:** 9

**Acceptance Criteria:**
- [ ] 1.2.txt is there
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A repository with a run from branch `dev` that waits for a person."""
    made = Desk(tmp_path)
    made.build({"plan.md": plans.plan_text({"1.1": ()}) + HARD})
    made.git("switch", "--quiet", "-c", "dev")
    agent, settings = ScriptedAgent({"1.1": {"1.1.txt": "one\n"}}), Settings(checks=("true",))
    state = quick_run(made.repo, agent, settings=settings)
    assert (state.done, state.base_branch) == (("1.1",), "dev")
    return made


def stand_on_no_commit(desk: Desk) -> None:
    desk.git("switch", "--quiet", "--orphan", "pages")


def stand_on_a_submodule(desk: Desk) -> None:
    desk.git("switch", "--quiet", "-c", "vendor")
    commit = desk.git("rev-parse", "HEAD").strip()
    desk.git("update-index", "--add", "--cacheinfo", f"160000,{commit},lib")
    desk.git("commit", "--quiet", "-m", "a submodule")


def delete_the_base(desk: Desk) -> None:
    desk.git("switch", "--quiet", "main")
    desk.git("branch", "--quiet", "-D", "dev")
    desk.write("windlass.toml", 'base = "dev"\n')


@pytest.mark.parametrize(
    ("done", "refused"),
    [
        (stand_on_no_commit, "this repository has no commit yet"),
        (stand_on_a_submodule, "the repository has a submodule at 'lib'"),
        (delete_the_base, "the base 'dev' is not a commit here"),
    ],
)
def test_what_keeps_a_new_run_from_beginning_keeps_none_from_going_on(desk, done, refused):
    done(desk)
    text = plans.plan_text({"1.1": ()}) + HARD
    desk.write("plan.md", text)
    code, _, err = desk.call("resume", "plan")
    assert code == 3, err
    assert "1.2" in err
    assert refused not in err
    gone = "the base 'dev' is gone; the run continues from its own"
    assert (gone in err) == (done is delete_the_base)
    before = desk.call("log", "plan").out
    code, _, err = desk.call("run", "plan.md", "--restart")
    assert (code, refused in err) == (2, True)
    assert desk.call("log", "plan").out == before, "no run is given up for one that cannot begin"


def test_a_base_that_moved_is_said_also_to_who_stands_elsewhere(desk):
    desk.git("commit", "--quiet", "--allow-empty", "-m", "meanwhile")
    moved = desk.git("rev-parse", "HEAD")[:10]
    desk.git("switch", "--quiet", "main")
    desk.write("notes.txt", "mine\n")
    code, _, err = desk.call("resume", "plan")
    assert code == 3, err
    assert f"the base has moved to {moved}; the run continues from its own" in err
    base = desk.git("rev-parse", "dev~1")[:10]
    assert f"1 uncommitted change is not part of the run: it works from commit {base}" in err


def test_a_checkout_that_brings_commands_to_runs_is_refused_to_a_resume_too(desk):
    desk.git("switch", "--quiet", "-c", "trap")
    desk.write(".windlass/plans/plan/inbox/1.json", "{}")
    desk.git("add", "--force", ".windlass/plans/plan/inbox/1.json")
    desk.git("commit", "--quiet", "-m", "a trap")
    (desk.repo / "src").mkdir()
    desk.directory = desk.repo / "src"
    code, _, err = desk.call("resume", "plan")
    assert code == 2
    assert "the repository tracks '.windlass/plans/plan/inbox/1.json'" in err


def test_a_run_keeps_its_checks_where_none_are_set(desk):
    desk.git("switch", "--quiet", "--orphan", "pages")
    desk.write("plan.md", plans.plan_text({"1.1": ()}) + HARD)
    assert not (desk.repo / "windlass.toml").exists()
    code, _, err = desk.call("resume", "plan", WINDLASS_AGNETS="3")
    assert code == 3, err
    assert 'WARNING  checks ["true"] kept (not set here)' in err, "an older journal has no sources"
    assert "the setting 'checks'" not in err
    assert "WINDLASS_AGNETS is not a setting of Windlass" in err


def test_a_new_run_says_what_of_the_one_before_was_not_landed(desk):
    tip = desk.git("for-each-ref", "--format=%(refname)", "refs/windlass/plan/*/tip").strip()
    assert "not landed" not in desk.call("resume", "plan").err
    assert desk.call("abort", "plan", "--yes").code == 0
    desk.write("plan.md", "# Hard\n" + HARD.replace("**Depends on:** 1.1\n", ""))
    code, _, err = desk.call("run", "plan.md")
    assert code == 3, err
    assert f"not landed: 1 merge of the run before; to take that: git merge {tip}" in err
    assert desk.git("rev-parse", tip) == desk.git("rev-parse", "windlass/plan/integration")


def test_a_plan_and_settings_that_are_not_committed_are_part_of_the_run(desk):
    desk.write("plan.md", plans.plan_text({"1.1": ()}) + HARD + "\nOne more word.\n")
    desk.write("windlass.toml", 'checks = ["true"]\n')
    code, _, err = desk.call("resume", "plan")
    assert code == 3, err
    assert "uncommitted" not in err
    desk.write("windlass.toml.orig", "")
    assert "1 uncommitted change is not part" in desk.call("resume", "plan").err
