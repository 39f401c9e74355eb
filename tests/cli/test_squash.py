"""`land --squash` and `pr --squash`: one commit a task, and every command knows that it landed."""

from pathlib import Path

import pytest

from desk import Desk
from finished_run import BRANCH, finished
from forge import Forge


@pytest.fixture
def done(tmp_path: Path) -> Desk:
    return finished(tmp_path)


def subjects(desk: Desk, what: str = "main") -> list[str]:
    base = desk.git("rev-parse", "refs/windlass/plan/r1/base").strip()
    return desk.git("log", "--reverse", "--format=%s", f"{base}..{what}").splitlines()


def tree(desk: Desk, commit: str) -> str:
    return desk.git("rev-parse", f"{commit}^{{tree}}").strip()


def trailers(desk: Desk, key: str) -> list[str]:
    asked = f"--format=%(trailers:key={key},valueonly,separator=%x2C)"
    return desk.git("log", "-2", "--reverse", asked, "main").split()


def test_the_branch_gets_one_commit_a_task_in_merge_order(done: Desk) -> None:
    answer = done.call("land", "plan", "--squash")
    assert answer.code == 0, answer.err
    assert subjects(done) == ["1.1: Add the endpoint", "1.2: Document it"]
    assert done.git("log", "--merges", "--format=%s", "main").strip() == ""
    assert tree(done, "main") == tree(done, "refs/windlass/plan/r1/tip")
    assert trailers(done, "Windlass-Task") == ["1.1", "1.2"]
    assert trailers(done, "Windlass-Run") == ["r1", "r1"]
    body = done.git("log", "-1", "--format=%b", "main~1")
    assert "# Done\n" in body
    assert "@octocat" not in body, "no person is called"
    assert "#12" not in body, "no issue is closed"
    authors = set(done.git("log", "-2", "--format=%an %cn", "main").splitlines())
    assert len(authors) == 1
    assert (done.repo / "docs.md").read_text() == "see health\n"
    assert done.git("status", "--porcelain", "--untracked-files=no").strip() == ""


def test_every_command_knows_that_it_has_landed(done: Desk) -> None:
    done.call("land", "plan", "--squash")
    main = done.git("rev-parse", "main").strip()
    status = done.call("status", "plan").out
    assert f"on main, landed at {main[:10]}\n" in status
    assert "completed, landed" in done.call("history").out
    assert "windlass land" not in status
    again = done.call("run", "plan.md")
    assert "2 tasks merged, landed" in again.out + again.err
    assert done.call("land").code == 2, "nothing is left to land"
    for more in ((), ("--squash",)):
        answer = done.call("land", "plan", *more)
        assert (answer.code, answer.out) == (
            0,
            f"main already has all of it, at {main[:10]}.\n",
        ), answer.err
    assert done.git("rev-parse", "main").strip() == main


def test_work_that_was_squashed_without_windlass_counts_as_landed(done: Desk) -> None:
    """The journal knows of no landing; the trailers of the rebased commits tell."""
    done.call("land", "plan", "--squash")
    done.git("branch", "squashed", "main")
    done.git("reset", "--quiet", "--hard", "refs/windlass/plan/r1/base")
    desk = finished(done.repo.parent.parent / "other")
    desk.git("fetch", "--quiet", str(done.repo), "squashed")
    (desk.repo / "mine.txt").write_text("mine\n")
    desk.git("add", "mine.txt")
    desk.git("commit", "--quiet", "--message", "Mine")
    desk.git("cherry-pick", "refs/windlass/plan/r1/base..FETCH_HEAD")
    status = desk.call("status", "plan").out
    assert "windlass land" not in status
    assert "windlass clean plan" in status
    report = desk.call("report", "plan", "--format", "markdown", "-o", "-").out
    assert "which has all of it" in report


def test_a_moved_branch_stays_linear(done: Desk) -> None:
    (done.repo / "mine.txt").write_text("mine\n")
    done.git("add", "mine.txt")
    done.git("commit", "--quiet", "--message", "Mine")
    answer = done.call("land", "plan", "--squash")
    assert answer.code == 0, answer.err
    assert subjects(done) == ["Mine", "1.1: Add the endpoint", "1.2: Document it"]
    assert (done.repo / "health.py").read_text() == "ok\n"
    assert (done.repo / "mine.txt").read_text() == "mine\n"


def test_a_pull_request_has_the_commits_that_a_landing_takes(done: Desk, tmp_path: Path) -> None:
    forge = Forge(done, tmp_path / "forge")
    bare = forge.remote()
    assert done.call("pr", **forge.environment).code == 0, "the merges first"
    answer = done.call("pr", "--squash", **forge.environment)
    assert answer.code == 0, answer.err
    pushed = forge.branch_commit(bare)
    assert f"{BRANCH} ({pushed[:10]})" in answer.err
    done.git("fetch", "--quiet", str(bare), BRANCH)
    assert subjects(done, "FETCH_HEAD") == ["1.1: Add the endpoint", "1.2: Document it"]
    [*_, edited] = forge.calls("edit")
    assert pushed[:10] in str(edited["body"]), "the text names the commits that were pushed"
    again = done.call("pr", "--squash", **forge.environment)
    assert "already has" in again.err
    assert done.call("land", "plan", "--squash").code == 0
    assert done.git("rev-parse", "main").strip() == pushed
    done.git("push", "--quiet", str(bare), "main")
    late = done.call("pr", "plan", "--squash", **forge.environment)
    assert (late.code, "has all of it already" in late.err) == (2, True), late.err


def test_a_lost_journal_is_recovered_after_a_squashed_landing(done: Desk) -> None:  # X10
    done.call("land", "plan", "--squash")
    for path in (done.repo / ".windlass/plans/plan").glob("journal.db*"):
        path.unlink()
    answer = done.call("recover", "plan")
    assert answer.code == 0, answer.err
    assert "landed at" in done.call("status", "plan").out
    assert done.call("land", "plan").out.startswith("main already has all of it")
