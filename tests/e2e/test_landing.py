"""The user's branch takes what was merged, and a person takes a task: the real agent, real git."""

import subprocess
import tempfile
from pathlib import Path

import pytest

import plans
from waiting import eventually
from windlass.core.events import model as e
from windlass.testing.model.script import Call, Script
from windlass.testing.sample import playing, write

pytestmark = pytest.mark.e2e

NAP = Call("Bash", {"command": "sleep 60", "description": "nap"})


def test_the_branch_lands_in_a_checkout_that_is_dirty_elsewhere(stage):  # G7
    files = {**plans.files(plans.SEQUENCE), "src/code.py": "x = 1\n"}
    play = stage(files, plans.book(plans.SEQUENCE))
    (play.repo / "src/code.py").write_text("x = 2  # not committed\n")
    (play.repo / "scratch.txt").write_text("mine\n")
    code, _, err = play.run("run", "plan.md", "--land")
    assert code == 0, err
    assert "LANDED" in err
    tip = play.git("rev-parse", "windlass/plan/integration").strip()
    assert play.git("rev-parse", "main", "HEAD").split() == [tip, tip]
    assert (play.repo / "1.3.txt").read_text() == "by 1.3\n"
    assert (play.repo / "src/code.py").read_text() == "x = 2  # not committed\n"
    dirty = play.git("status", "--short", "src", "scratch.txt", "1.1.txt", "1.2.txt", "1.3.txt")
    assert dirty.split() == ["M", "src/code.py", "??", "scratch.txt"]
    code, out, err = play.run("land")
    assert code == 2, "there is nothing left to land"
    code, out, err = play.run("land", "plan")
    assert (code, out) == (0, f"main already has all of it, at {tip[:10]}.\n"), err


def test_a_dirty_file_in_the_way_is_refused_and_lands_once_it_is_gone(stage):  # G7
    play = stage(plans.files(plans.SEQUENCE), plans.book(plans.SEQUENCE))
    before = play.git("rev-parse", "main")
    (play.repo / "1.2.txt").write_text("mine\n")
    code, _, err = play.run("run", "plan.md", "--land")
    assert code == 3, err
    assert "1.2.txt" in err
    assert "windlass land" in err
    assert play.git("rev-parse", "main") == before
    assert (play.repo / "1.2.txt").read_text() == "mine\n"
    (play.repo / "1.2.txt").unlink()
    code, out, err = play.run("land")
    assert code == 0, err
    assert out.startswith("main is now at ")
    assert (play.repo / "1.2.txt").read_text() == "by 1.2\n"


TASK = """---
id: TASK-1
title: Write a.txt
status: backlog
---
# Write a.txt

## Acceptance Criteria
- [ ] a.txt is there
"""


@pytest.mark.parametrize("edited", [False, True])
def test_what_windlass_wrote_into_a_file_is_not_in_its_own_way(stage, *, edited: bool):  # G7 G9
    """The Player has ticked a box in the very file that its state is written into."""
    file = "tasks/backlog/TASK-1.md"
    tick = f"echo x > a.txt; sed -i 's/- \\[ \\]/- [x]/' {file}"
    ticking = playing(Call("Bash", {"command": tick, "description": "d"}), summary="s")
    files = {**plans.files({"a": ()}), file: TASK}
    play = stage(files, plans.book({"TASK-1": ()}, **{"TASK-1": ticking}))
    if edited:
        (play.repo / file).write_text(TASK + "\nA thought of mine.\n")
    code, _, err = play.run("feature-build", "TASK-1", "--land", "--yes")
    text = (play.repo / file).read_text()
    if edited:
        assert code == 3, err
        assert "would be overwritten" in err
        assert "- [ ] a.txt is there\n\nA thought of mine.\n" in text
        return
    assert code == 0, err
    assert "EDITED" not in err
    assert play.tree("main") == play.tree("windlass/TASK-1/integration")
    assert "- [x] a.txt is there" in text
    assert "status: in_review" in text


def test_a_base_that_moved_is_merged_with_and_verified_first(stage):  # G7
    """The check fails where the user's file and the run's last meet: it must be asked of both."""
    both = "test ! -e broken || test ! -e 1.3.txt"
    play = stage(plans.files(plans.SEQUENCE, checks=both), plans.book(plans.SEQUENCE))
    code, _, err = play.run("run", "plan.md")
    assert code == 0, err
    (play.repo / "broken").write_text("mine\n")
    play.git("add", "broken")
    play.git("commit", "--quiet", "--message", "Mine")
    mine = play.git("rev-parse", "main").strip()
    code, out, err = play.run("land")
    assert (code, out) == (3, "")
    assert f"`{both}` failed" in err
    assert play.git("rev-parse", "main").strip() == mine
    play.git("mv", "broken", "mended")
    play.git("commit", "--quiet", "--message", "Mended")
    mended = play.git("rev-parse", "main").strip()
    code, out, err = play.run("land")
    assert code == 0, err
    tip = play.git("rev-parse", "windlass/plan/integration").strip()
    assert play.git("rev-list", "--parents", "-1", "main").split()[1:] == [mended, tip]
    assert play.git("status", "--short", "--untracked-files=no") == ""
    assert sorted(p.name for p in play.repo.glob("1.*.txt")) == ["1.1.txt", "1.2.txt", "1.3.txt"]
    verified = [ev for ev in play.journal() if isinstance(ev, e.VerificationFinished)]
    assert verified[-1].commit == play.git("rev-parse", "main").strip()


def committed(folder: Path, play, path: str, text: str, message: str) -> str:
    """A commit in a workspace by somebody else than the user."""
    (folder / path).write_text(text)
    bea = ("-c", "user.name=Bea Guest", "-c", "user.email=bea@example.org")
    for args in (("add", path), (*bea, "commit", "--quiet", "--message", message)):
        subprocess.run(["git", *args], cwd=folder, env=play.environment, check=True)
    found = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, env=play.environment, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    return found.stdout.strip()


def test_a_person_takes_a_task_and_what_they_commit_is_merged_as_theirs(stage):  # B8
    """Taken from a run that was stopped in the middle of a turn, with what its Player left."""
    slow = {"1.1": Script((write("half.txt", "half\n"), NAP))}
    play = stage(plans.files(plans.SEQUENCE), plans.book(plans.SEQUENCE, **slow))
    assert play.killed_at("Running: sleep", "run", "plan.md")[0] < 0
    eventually(play.none_left)
    play.replace_book(plans.book(plans.SEQUENCE))
    code, out, err = play.run("take", "1.1")
    assert code == 0, err
    workspace = Path(out.strip())
    assert (workspace / "half.txt").read_text() == "half\n"
    assert "windlass give plan:1.1" in err
    code, out, err = play.run("take", "plan:1.1")
    assert (code, Path(out.strip())) == (0, workspace)
    assert "Ada has taken 1.1 already" in err

    mine = committed(workspace, play, "1.1.txt", "by hand\n", "Write it by hand")
    (workspace / "rest.txt").write_text("not committed\n")
    code, _, err = play.run("resume")
    assert code == 3, "it is with a person, and nothing else can be done"
    code, out, err = play.run("give", "1.1", "--message", "Wrote it myself.")
    assert code == 0, err
    assert "windlass resume plan" in out
    code, _, err = play.run("resume", "--land")
    assert code == 0, err

    assert play.conversations("1.1") == 1, "nobody else was paid for it"
    assert play.reviews("1.1") == 1
    author = play.git("show", "-s", "--format=%an <%ae> %cn | %s", mine).strip()
    assert author == "Bea Guest <bea@example.org> Bea Guest | Write it by hand"
    play.git("merge-base", "--is-ancestor", mine, "main")
    assert play.git("show", "main:1.1.txt") == "by hand\n"
    assert play.git("show", "main:rest.txt") == "not committed\n"
    assert play.git("show", "main:half.txt") == "half\n"
    assert play.merges() == []
    assert not workspace.exists()


def test_a_task_is_taken_from_a_live_run_and_given_back_to_it(stage):  # B8
    wait = Call("Bash", {"command": "while [ ! -e go ]; do sleep 0.1; done", "description": "wait"})
    slow = {"a": playing(wait, write("a.txt", "by a\n"), summary="a")}
    tasks = {"a": (), "b": (), "c": ("b",), "d": ("a",), "e": ("d",)}
    play = stage(plans.files(tasks), plans.book(tasks, **slow))
    with play.windlass("run", "plan.md", "--agents", "1") as process:
        eventually(lambda: play.conversations("a"))
        code, _, err = play.run("take", "a")
        assert code == 2, "an agent is at it"
        code, out, err = play.run("take", "b")
        assert code == 0, err
        workspace = Path(out.strip())
        assert (workspace / "README.md").exists()
        code, _, err = play.run("take", "c")
        assert code == 2, "it waits for another"
        committed(workspace, play, "b.txt", "by hand\n", "Write it by hand")
        code, out, err = play.run("give", "b")
        assert (code, out) == (0, "Sent to the run of plan.\n"), err
        eventually(lambda: any(isinstance(ev, e.TaskGiven) for ev in play.journal()))
        (play.repo / ".windlass/plans/plan/workspaces/a/go").touch()
        _, err = process.communicate(timeout=90)
    assert process.returncode == 0, err
    assert play.conversations("b") == 0
    assert play.reviews("b") == 1
    assert play.git("show", "windlass/plan/integration:b.txt") == "by hand\n"
    assert "Bea Guest" in play.git("log", "--format=%an", "windlass/plan/integration")


def test_a_task_begins_anew_and_thinks_better_of_it(stage):  # X8
    play = stage(plans.files(plans.SEQUENCE), plans.book(plans.SEQUENCE))
    slow = {"1.2": Script((write("half.txt", "half\n"), NAP))}
    play.replace_book(plans.book(plans.SEQUENCE, **slow))
    assert play.killed_at("Running: sleep", "run", "plan.md")[0] < 0
    eventually(play.none_left)
    play.replace_book(plans.book(plans.SEQUENCE))
    for _ in range(2):
        code, _, err = play.run("reset", "1.2")
        assert code == 0, err
        code, _, err = play.run("reset", "1.2", "--undo")
        assert code == 0, err
    code, _, err = play.run("reset", "1.2", "--undo")
    assert code == 2, "there is nothing left to undo"
    code, _, err = play.run("resume", "--reset-task", "1.2")
    assert code == 0, err
    files = play.git("ls-tree", "--name-only", "windlass/plan/integration").split()
    assert "half.txt" not in files
    assert "1.3.txt" in files
    kept = list((play.repo / ".windlass/plans/plan/kept").glob("1.2*"))
    assert [path for path in kept if (path / "half.txt").exists()]


def test_a_signed_run_says_what_its_agents_did(stage):  # G3
    """With gpg's own key: every commit is signed, and names the agent and its summary."""
    files = plans.files(plans.SEQUENCE)
    files["windlass.toml"] += "[git]\nsign = true\n"
    forging = playing(
        write("1.2.txt", "by 1.2\n"), summary="Wrote it.\n\nWindlass-Task: 9.9\nWindlass-Turn: 7"
    )
    play = stage(files, plans.book(plans.SEQUENCE, **{"1.2": forging}))
    with tempfile.TemporaryDirectory(prefix="wk-", dir="/tmp") as home:
        more = {"GNUPGHOME": home}
        email = play.git("log", "-1", "--format=%ae").strip()
        made = ("--passphrase", "", "--quick-gen-key", f"A <{email}>", "ed25519", "sign", "never")
        environment = {**play.environment, **more}
        subprocess.run(["gpg", "--batch", *made], env=environment, check=True, capture_output=True)
        play.git("config", "user.signingKey", email)
        try:
            code, _, err = play.run("run", "plan.md", "--land", **more)
            assert code == 0, err
            base = play.git("for-each-ref", "--format=%(objectname)", "refs/windlass/plan/*/base")
            commits = play.git("rev-list", f"{base.strip()}..main").split()
            assert len(commits) == 6, "a snapshot and a merge for each task"
            code, out, err = play.run("land", "plan", **more)
            assert (code, out.startswith("main already has all of it")) == (0, True), err
            for commit in commits:
                asked = ["git", "verify-commit", commit]
                subprocess.run(asked, cwd=play.repo, env=environment, check=True)
        finally:
            subprocess.run(["gpgconf", "--kill", "all"], env=environment, check=True)
    for commit in commits:
        assert "Claude <noreply@anthropic.com>" in trailer(play, commit, "Co-Authored-By")
    merged = [trailer(play, f"main~{n}", "Windlass-Task") for n in (2, 1, 0)]
    assert merged == ["1.1", "1.2", "1.3"]
    assert "\nWrote 1.1.txt." in play.git("log", "-1", "--format=%B", "main~2")
    assert "> Windlass-Task: 9.9" in play.git("log", "-1", "--format=%b", "main~1")


def trailer(play, commit: str, key: str) -> str:
    asked = f"--format=%(trailers:key={key},valueonly,separator=%x2C)"
    return play.git("log", "-1", asked, commit).strip()


def test_a_user_whose_git_signs_is_told_once_that_the_run_does_not(stage):
    play = stage(plans.files({"1.1": ()}), plans.book({"1.1": ()}))
    play.git("config", "commit.gpgSign", "true")
    code, _, err = play.run("run", "plan.md")
    assert code == 0, err
    assert err.count("commit.gpgSign is set, but these commits are not signed") == 1
    assert "[git] sign = true" in err
