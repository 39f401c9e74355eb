"""Clean lets go of what is merged or pinned, and of nothing else, wherever work was left."""

import json
from pathlib import Path

import pytest

import plans
from desk import Desk
from quick import quick_run
from windlass.adapters.locks import PlanLock
from windlass.core.events import model as e
from windlass.core.settings import Settings, WorkspaceSettings
from windlass.testing.agents import ScriptedAgent

TASKS = {"a": (), "b": ("a",), "c": ("a",)}
DONE = {id_: {f"{id_}.txt": f"by {id_}\n"} for id_ in TASKS}
HOME = ".windlass/plans/plan"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.build({**plans.files(TASKS), ".gitignore": "*.local\n"})
    return made


def failed(desk: Desk) -> None:
    """A run of which a is merged, and b and c were given up with work in their workspaces."""
    parts = {**DONE, "b": {"broken": "b\n"}, "c": {"broken": "c\n"}}
    go_on = Settings(max_turns=1, checks=("test ! -e broken",))
    state = quick_run(desk.repo, ScriptedAgent(parts), settings=go_on)
    assert state.ended is e.RunEnd.FAILED


def work(desk: Desk, path: str, content: str) -> Path:
    target = desk.repo / HOME / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content)
    return target


def everything_pinned(desk: Desk) -> str:
    """All that any pin of the plan holds, as text."""
    refs = desk.git("for-each-ref", "--format=%(refname) %(objecttype)", "refs/windlass/").split(
        "\n"
    )
    commits = [ref.split()[0] for ref in refs if ref.endswith(" commit")]
    commits = [ref for ref in commits if not ref.endswith("/journal")]  # which holds records
    return "".join(
        desk.git("grep", "-h", "-e", "", ref) + desk.git("ls-tree", "-r", "--name-only", ref)
        for ref in commits
    )


def test_nothing_that_no_pin_holds_is_ever_lost(desk: Desk):  # G7 X8
    failed(desk)
    assert desk.call("abort", "--yes").code == 0
    places = {
        "workspaces/b/new.txt": "unpinned in a workspace",
        "workspaces/b/deep/er/new.txt": "unpinned and deep",
        "workspaces/c/README.md": "unpinned change of a tracked file",
        "workspaces/a/after.txt": "unpinned, after the merge",
        "workspaces/notes/mine.txt": "in a folder that is nobody's task",
        "workspaces/loose.txt": "a file between the workspaces",
        "kept/b.r1/set-aside.txt": "unpinned and set aside",
        "kept/b.r1+/again.txt": "set aside twice",
        "kept/strange/x.txt": "in no workspace at all",
        "kept/zz.r1/x.txt": "of a task nobody knows",
        "inbox/x.json": "said to the run",
        "mine.txt": "in the plan's own folder",
    }
    files = {work(desk, path, f"{text}\n"): text for path, text in places.items()}
    answer = desk.call("clean", "--yes")
    assert answer.code == 0, answer
    pinned = everything_pinned(desk)
    for path, text in files.items():
        there = path.exists() and text in path.read_text()
        assert there or text in pinned, (path, answer.out)
    left = sorted(path.name for path in (desk.repo / HOME / "workspaces").iterdir())
    assert left == ["loose.txt", "notes"], answer.out
    assert sorted(p.name for p in (desk.repo / HOME / "kept").iterdir()) == ["strange", "zz.r1"]
    assert (desk.repo / HOME / "journal.db").exists()
    assert desk.git("rev-parse", "windlass/plan/integration")


def test_it_shows_first_and_changes_nothing_unasked(desk: Desk):
    failed(desk)
    desk.call("abort", "--yes")
    work(desk, "workspaces/b/new.txt", "x")
    refs = desk.git("for-each-ref")
    answer = desk.call("clean", "plan")
    assert answer.code == 3
    assert (
        "delete  .windlass/plans/plan/workspaces/b · pinned first, as refs/windlass/plan/r1/kept/b/"
        in (answer.out)
    )
    assert "delete  .windlass/plans/plan/workspaces/c · all of it is pinned" in answer.out
    assert "--yes" in answer.err
    assert desk.git("for-each-ref") == refs
    assert (desk.repo / HOME / "workspaces/b/new.txt").exists()


def test_what_an_unfinished_run_still_needs_stays(desk: Desk):  # X5
    failed(desk)
    work(desk, "throwaway/x/checkout/f", "x")
    work(desk, "pool/1/f", "x")
    work(desk, "furnished/abc/venv/f", "x")
    work(desk, "furnished/abc.exclude", "/venv\n")
    answer = desk.call("clean", "--yes")
    assert answer.code == 0, answer
    assert "keep    .windlass/plans/plan/workspaces/b · b is abandoned, and the run is failed" in (
        answer.out
    )
    assert (desk.repo / HOME / "workspaces/b/broken").exists()
    for gone in ("throwaway/x", "pool/1", "furnished/abc", "furnished/abc.exclude"):
        assert not (desk.repo / HOME / gone).exists()


def test_what_git_ignores_and_nothing_has_stays_unless_it_may_go(desk: Desk):
    failed(desk)
    desk.call("abort", "--yes")
    file = work(desk, "workspaces/b/settings.local", "mine\n")
    work(desk, "workspaces/c/node_modules/x.js", "a by-product\n")
    answer = desk.call("clean", "--yes")
    assert answer.code == 0, answer
    assert "git ignores settings.local, so no commit has it" in answer.out
    assert file.exists()
    assert not (desk.repo / HOME / "workspaces/c").exists()
    assert desk.call("clean", "--yes", "--ignored").code == 0
    assert not file.exists()


def test_what_setup_made_in_a_workspace_is_not_pinned(desk: Desk):
    """And what another workspace has under the same name is work."""
    parts = {**DONE, "b": {"broken": "b\n"}, "c": {"broken": "c\n"}}
    workspace = WorkspaceSettings(setup=("mkdir made; echo by setup > made/it",))
    settings = Settings(max_turns=1, checks=("test ! -e broken",), workspace=workspace)
    quick_run(desk.repo, ScriptedAgent(parts), settings=settings)
    (desk.repo / HOME / "private/c/made-by-setup").write_text("")
    quick_run(desk.repo, ScriptedAgent(parts), settings=settings, run="r2", anew=True)
    desk.call("abort", "--yes")
    assert sorted(path.name for path in (desk.repo / HOME / "kept").iterdir()) == ["b.r1", "c.r1"]
    answer = desk.call("clean", "--yes")
    assert answer.code == 0, answer
    assert not list((desk.repo / HOME / "kept").iterdir()), answer.out
    refs = desk.git("for-each-ref", "--format=%(refname)", "refs/windlass/**/kept/**").split()
    assert [ref.rpartition("/")[0] for ref in refs] == ["refs/windlass/plan/r1/kept/c"]
    assert desk.git("show", f"{refs[0]}:made/it") == "by setup\n"
    assert not list((desk.repo / HOME / "private").glob("**/made-by-setup"))


@pytest.mark.parametrize("hostile", ["nested/.git/HEAD", ".gitmodules"])
def test_what_cannot_be_committed_stays(desk: Desk, hostile: str):
    failed(desk)
    desk.call("abort", "--yes")
    if hostile == ".gitmodules":
        (desk.repo / HOME / "workspaces/b/.gitmodules").symlink_to("/etc/passwd")
    else:
        desk.git("init", "--quiet", str(desk.repo / HOME / "workspaces/b/nested"))
        work(desk, "workspaces/b/nested/x.txt", "x")
        desk.git("-C", str(desk.repo / HOME / "workspaces/b/nested"), "add", ".")
        desk.git("-C", str(desk.repo / HOME / "workspaces/b/nested"), "commit", "-qm", "x")
    answer = desk.call("clean", "--yes")
    assert "keep    .windlass/plans/plan/workspaces/b · it cannot be pinned" in answer.out
    assert (desk.repo / HOME / "workspaces/b").exists()


def test_a_live_run_is_left_alone(desk: Desk):
    failed(desk)
    with PlanLock(desk.repo / HOME / "lock"):
        assert desk.call("clean", "plan", "--yes").code == 5
        answer = desk.call("clean", "--yes")
    assert answer.code == 5
    assert answer.err.startswith("windlass: plan 'plan' is already running (PID ")
    assert (desk.repo / HOME / "workspaces/b").exists()


def test_pins_go_only_at_a_word_and_only_where_a_branch_of_the_users_holds_them(desk: Desk):
    parts = {**DONE, "b": ({"broken": "1"}, {"broken": None, "b": "2"})}
    checked = Settings(checks=("test ! -e broken",))
    assert quick_run(desk.repo, ScriptedAgent(parts), settings=checked).ended == "completed"
    before = desk.git("for-each-ref", "--format=%(refname)", "refs/windlass/").split()
    desk.call("clean", "--yes", "--pins")
    assert desk.git("for-each-ref", "--format=%(refname)", "refs/windlass/").split() == before
    desk.git("merge", "--quiet", "windlass/plan/integration")
    held = desk.git("for-each-ref", "--format=%(objectname)", "refs/windlass/").split()
    assert desk.call("clean", "--yes").code == 0
    assert desk.git("for-each-ref", "--format=%(refname)", "refs/windlass/").split() == before
    answer = desk.call("clean", "--yes", "--pins")
    assert answer.code == 0, answer
    after = desk.git("for-each-ref", "--format=%(refname)", "refs/windlass/").split()
    assert 2 < len(after) < len(before)
    assert {"refs/windlass/plan/r1/base", "refs/windlass/plan/r1/tip"} < set(after)
    assert any("verdict" in ref for ref in after), "no branch has a verdict"
    desk.git("reflog", "expire", "--expire=now", "--all")
    desk.git("gc", "--quiet", "--prune=now")
    for each in held:
        desk.git("cat-file", "-e", each)


def test_run_folders_go_only_at_a_word_and_never_the_last(desk: Desk):
    quick_run(desk.repo, ScriptedAgent(DONE))
    runs = desk.repo / HOME / "runs"
    (runs / "other").mkdir()
    desk.call("clean", "--yes", "--runs")
    assert sorted(path.name for path in runs.iterdir()) == ["other", "r1"]
    assert json.loads((runs / "r1/state.json").read_text())["status"] == "completed"


def test_what_was_saved_can_be_taken_up_again(desk: Desk):
    failed(desk)
    desk.call("abort", "--yes")
    work(desk, "workspaces/b/new.txt", "precious\n")
    assert desk.call("clean", "--yes").code == 0
    [ref] = desk.git("for-each-ref", "--format=%(refname)", "refs/windlass/**/kept/**").split()
    assert desk.git("show", f"{ref}:new.txt") == "precious\n"
    assert "Windlass-Task: b" in desk.git("log", "-1", "--format=%B", ref)
    assert desk.call("clean", "--yes").code == 0
