"""`windlass feature-build TASK-ID` with the real agent: the task's file tells how it went."""

import signal

import pytest

from waiting import eventually
from windlass.formats import frontmatter
from windlass.testing.model.script import Book, Script
from windlass.testing.sample import playing, reviewing, write

pytestmark = pytest.mark.e2e

FILE = "tasks/backlog/TASK-1-write-a.md"
TASK = """\
---
id: TASK-1
title: 'Write a.txt'
status: backlog   # moved by tools
complexity: 2
tags: [a,   b]
---

# Task: Write a.txt

---

## Acceptance Criteria
- [ ] a.txt is there
"""
FILES = {
    "README.md": "hello\n",
    FILE: TASK,
    "tasks/backlog/TASK-10-other.md": TASK.replace("TASK-1", "TASK-10"),
    "tasks/TASK-1-COMPLETION-REPORT.md": "# Report\n\n- [x] all done\n",
    "windlass.toml": 'checks = ["test ! -e broken"]\n',
}
PLAY = playing(write("a.txt", "by a\n"), summary="Wrote a.txt.")


def book(coach: Script, **more: Script) -> Book:
    return Book(scripts={"Role: Player": PLAY, "Role: Coach": coach, **more})


def front(play) -> dict:
    text = (play.repo / FILE).read_bytes().decode()
    assert frontmatter.body(text) == frontmatter.body(TASK), "the body is the user's own"
    above, _, _ = text.partition("feature_build:\n")
    data = frontmatter.read(FILE, text)
    assert data is not None
    status = data.data["status"]
    own = TASK.split("---\n\n", maxsplit=1)[0]
    assert above == own.replace("status: backlog", f"status: {status}")
    return data.data


def test_success_is_in_review(stage):  # G1 G9 G11 G12
    play = stage(FILES, book(reviewing()))
    code, _, err = play.run("feature-build", "TASK-1", "--verbose")
    assert code == 0, err
    data = front(play)
    assert data["status"] == "in_review"
    build = data["feature_build"]
    assert (build["current_turn"], build["max_turns"]) == ("1", "5")
    [turn] = build["turns"]
    assert turn["player_summary"] == "Wrote a.txt."
    assert turn["coach_decision"] == "approve"
    assert play.git("show", "windlass/TASK-1/integration:a.txt") == "by a\n"
    assert play.git("show", f"windlass/TASK-1/integration:{FILE}") == TASK
    # Its own writing is no change of the user's that a next run would have to warn of.
    code, _, err = play.run("feature-build", "TASK-1", "--restart")
    assert code == 0, err
    assert "uncommitted" not in err
    assert not list(play.repo.glob("tasks/**/*.tmp"))


def test_without_walls_its_own_writing_is_no_trespass(stage):
    play = stage(FILES, book(reviewing()))
    code, _, err = play.run("feature-build", "TASK-1", "--sandbox", "checkout")
    assert code == 0, err
    assert front(play)["status"] == "in_review"


def test_never_approved_is_blocked_and_kept(stage):  # G6 G7 G11
    def no(turn: int) -> Script:
        return reviewing(decision="feedback", feedback=f"not yet, {turn}")

    again = playing(write("a.txt", "by a, again\n"), summary="Wrote it again.")
    play = stage(
        FILES,
        book(no(1), **{"Role: Coach|Turn: 2\n": no(2), "Role: Player|Turn: 2\n": again}),
    )
    code, _, err = play.run("feature-build", "TASK-1", "--max-turns", "2")
    assert code == 1, err
    data = front(play)
    assert data["status"] == "blocked"
    build = data["feature_build"]
    assert [turn["coach_decision"] for turn in build["turns"]] == ["feedback", "feedback"]
    assert "not yet, 2" in build["turns"][1]["feedback"]
    assert build["worktree_path"] == ".windlass/plans/TASK-1/workspaces/TASK-1"
    assert (play.repo / build["worktree_path"] / "a.txt").read_text() == "by a, again\n"
    assert build["worktree_path"] in err or ".windlass/plans/TASK-1/workspaces" in err


def test_killed_and_resumed(stage):  # G10
    own = {"Role: Player|Task: TASK-1\n": PLAY}
    play = stage(FILES, book(reviewing(pause=0.5), **own))
    code, said = play.killed_at("COACH", "feature-build", "TASK-1")
    assert code == -signal.SIGKILL, said
    assert front(play)["status"] in {"backlog", "in_progress"}
    code, _, err = play.run("feature-build", "TASK-1", "--resume")
    assert code == 0, err
    assert "plan: " not in err
    assert front(play)["status"] == "in_review"
    assert play.conversations("TASK-1") == 1, "a finished Player is not paid again"


def test_what_is_not_there_or_not_clear_is_one_line(stage):  # G1
    more = {**FILES, "tasks/done/TASK-1.md": TASK, "tasks/x/TASK-7.md": "# no task\n"}
    play = stage(more, book(reviewing()))
    for typed, said in (
        ("TASK-99", "no task 'TASK-99': there is no file tasks/**/TASK-99*.md"),
        ("TASK-1", f"{FILE}, tasks/done/TASK-1.md"),
        ("TASK-7", "no tasks found"),
    ):
        code, _, err = play.run("feature-build", typed)
        assert code == 2, err
        assert said in err
        assert err.count("\n") == 1
    code, _, err = play.run("feature-build", "TASK-10", "--resume")
    assert code == 2, err
    assert "nothing to resume" in err


def test_steps_that_are_called_tasks_are_no_plan_of_their_own(stage):  # G1
    steps = f"{TASK}\n### Task 1: Write it\n\n### Task 2: Look at it\n"
    play = stage({**FILES, FILE: steps}, book(reviewing()))
    code, _, err = play.run("feature-build", "TASK-1")
    assert code == 0, err
    data = frontmatter.read(FILE, (play.repo / FILE).read_text(encoding="utf-8"))
    assert data is not None
    assert data.data["status"] == "in_review"
    assert play.git("show", "windlass/TASK-1/integration:a.txt") == "by a\n"


def test_a_file_that_goes_away_is_not_written_again(stage):  # G9
    play = stage(
        FILES,
        book(
            reviewing(),
            **{"Role: Player": playing(write("a.txt", "by a\n"), summary="Wrote a.txt.", pause=3)},
        ),
    )
    with play.windlass("feature-build", "TASK-1") as process:
        # Once its model is asked, the file was written for the last time before the Player is done.
        eventually(lambda: play.seen)
        eventually(lambda: "in_progress" in (play.repo / FILE).read_text())
        (play.repo / FILE).unlink()
        _, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    assert not (play.repo / FILE).exists()
