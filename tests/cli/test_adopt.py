"""What another tool has done is taken over only as far as git bears it out."""  # X11

import json
from pathlib import Path

import pytest

import plans
from desk import Desk
from quick import quick_run
from windlass.testing.agents import ScriptedAgent

TASKS = {"1.1": (), "1.2": ("1.1",), "1.3": ("1.2",), "1.4": ("1.3",)}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.build({"plan.md": plans.plan_text(TASKS)})
    return made


def state_file(desk: Desk, *completed: str, commits: dict[str, str] | None = None) -> None:
    results = {id_: {"commit": commit} for id_, commit in (commits or {}).items()}
    text = json.dumps({
        "milestone_id": "plan",
        "plan_path": "plan.md",
        "completed_tasks": list(completed),
        "failed_tasks": ["1.4"],
        "task_results": results,
    })  # fmt: skip
    (desk.repo / "old_state.json").write_text(text)


def test_commits_that_the_base_holds_are_taken_and_the_run_goes_on_with_the_rest(desk):
    head = desk.git("rev-parse", "HEAD").strip()
    away = desk.git("commit-tree", "-m", "elsewhere", f"{head}^{{tree}}").strip()
    commits = {"1.1": head[:12], "1.2": away, "1.3": "feed" * 10}
    state_file(desk, "1.1", "1.2", "1.3", "9.9", commits=commits)
    code, out, err = desk.call("adopt", "old_state.json")
    assert code == 3, err
    assert "windlass adopt old_state.json --yes" in err
    assert f"done   1.1 Write 1.1.txt · {head[:10]} is in main" in out
    assert f"to do  1.2 Write 1.2.txt · {away[:10]} is not in {head[:10]}" in out
    assert "to do  1.3 Write 1.3.txt · git has no commit feedfeed" in out
    assert "to do  1.4 Write 1.4.txt · the file says failed" in out
    assert "?      9.9 · the plan has no such task" in out
    assert desk.call("status", "plan")[0] == 2, "nothing is recorded unconfirmed"

    code, _, err = desk.call("adopt", "old_state.json", "--yes")
    assert code == 0, err
    agent = ScriptedAgent({t: {f"{t}.txt": "x\n"} for t in ("1.2", "1.3", "1.4")}, default={})
    before = json.loads(desk.call("status", "plan", "--json")[1])
    assert before["tasks"]["1.1"]["status"] == "completed"
    assert before["tasks"]["1.1"]["merged"] == head
    state = quick_run(desk.repo, agent, run=before["run"])
    assert state.ended == "completed"
    assert state.done == ("1.1", "1.2", "1.3", "1.4")
    assert state.tasks["1.1"].attempts == (), "nobody was paid for it"
    assert "ADOPTED" in desk.call("log", "plan")[1]


@pytest.mark.parametrize("name", ["HEAD", "main", "a\0b", "\x1b[31mred", "--help", "ab"])
def test_only_a_hash_names_a_commit(desk, name):
    state_file(desk, "1.1", commits={"1.1": name})
    code, out, err = desk.call("adopt", "old_state.json", "--yes")
    assert (code, "nothing to adopt" in err) == (2, True)
    assert "it names no commit hash" in out


def test_a_branch_that_looks_like_a_hash_is_none(desk):
    desk.git("branch", "feed")
    state_file(desk, "1.1", commits={"1.1": "feed"})
    assert "git has no commit feed" in desk.call("adopt", "old_state.json").out


def test_of_what_the_plan_does_not_have_a_few_are_enough(desk):
    state_file(desk, *(f"9.{number}" for number in range(60_000)))
    code, out, _ = desk.call("adopt", "old_state.json")
    assert code == 2
    assert "and 59980 tasks more like these" in out


def test_without_a_commit_only_the_persons_word_counts(desk):
    state_file(desk, "1.1", "1.2")
    code, out, err = desk.call("adopt", "old_state.json", "--yes")
    assert code == 2
    assert "there is nothing to adopt" in err
    assert "names no commit (--unverified adopts it)" in out
    assert desk.call("adopt", "old_state.json", "--unverified", "--yes")[0] == 0
    told = json.loads(desk.call("status", "plan", "--json")[1])
    assert told["tasks"]["1.2"] == {**told["tasks"]["1.2"], "status": "completed", "merged": None}
    code, _, err = desk.call("adopt", "old_state.json", "--unverified", "--yes")
    assert code == 2
    assert "is stopped" in err


def test_the_marks_in_a_plan_are_claims_too(desk):  # B10
    folder = desk.repo / "specs/001-albums"
    folder.mkdir(parents=True)
    lines = "- [x] T001 Make src/a.py\n- [ ] T002 Make src/b.py\n"
    (folder / "tasks.md").write_text(f"# Tasks: Albums\n\n## Phase 1: Setup\n\n{lines}")
    code, out, err = desk.call("adopt", "specs/001-albums/tasks.md", "--unverified", "--yes")
    assert code == 0, err
    assert "done   T001" in out
    assert "to do  T002" in out
    told = json.loads(desk.call("status", "001-albums", "--json")[1])
    assert {id_: task["status"] for id_, task in told["tasks"].items()} == {
        "T001": "completed",
        "T002": "pending",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "neither a state file that Windlass can read nor a plan"),
        ("hello", "x.json is not JSON: JSON is malformed"),
        ('{"completed_tasks": [', "x.json is not JSON: Input data was truncated"),
        ('{"completed_tasks": [], "plan_path": ""}', "does not name its plan"),
        ('{"completed_tasks": [1, {}], "plan_path": "gone.md"}', "gone.md"),
    ],
)
def test_what_is_no_state_file_is_refused(desk, text, said):
    (desk.repo / "x.json").write_text(text)
    code, _, err = desk.call("adopt", "x.json", "--yes")
    assert code == 2
    assert said in err
    assert desk.call("adopt", "nothing-here", "--yes")[0] == 2
