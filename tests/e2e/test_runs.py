"""Whole runs: the real agent program, real git, real processes; only the model is scripted."""

import json
import signal

import pytest

import plans
from waiting import eventually
from windlass.testing.model.script import Answer, Call, Say, Script
from windlass.testing.sample import FILES, playing, write
from windlass.testing.sample import book as sample_book

pytestmark = pytest.mark.e2e

MOMENTS = (
    "START",
    "running 1 check on the base",
    "BASE  1 pass",
    "PLAYER  a",
    "a → ",
    "CHECKS  a Write a.txt · 1 check",
    "CHECKS  a Write a.txt · 1 pass",
    "COACH  a Write a.txt · reviews",
    "COACH  a Write a.txt · approve",
    "DONE  a",
    "PLAYER  c",
    "b → ",
    "CHECKS  b Write b.txt · 1 check",
    "DONE  b",
    "DONE  c",
    "d → ",
    "CHECKS  d Write d.txt · 1 pass",
)
SAMPLE = {"START", "BASE  1 pass", "a → ", "COACH  a Write a.txt · reviews", "DONE  b"}
"""Those that CI tries; test_kill_in_a_turn.py kills after each kind of fact."""


def test_three_tasks_in_sequence(stage):  # G2 G7 K0 K2 K6 K7
    play = stage(plans.files(plans.SEQUENCE, state_file=True), plans.book(plans.SEQUENCE))
    code, out, err = play.run("run", "plan.md")
    assert code == 0, err
    assert out == "", "stdout is for data"
    assert play.merges() == ["1.1", "1.2", "1.3"]
    assert play.git("show", "windlass/plan/integration:1.3.txt") == "by 1.3\n"
    assert "1.1 → Running: " in err
    assert "Wrote 1.3.txt." in err
    assert "3 tasks: 3 completed" in err
    told = json.loads((play.repo / "state/plan_state.json").read_text())
    assert told["completed_tasks"] == ["1.1", "1.2", "1.3"]
    assert told["e2e_status"] is None
    assert play.none_left()


def test_a_diamond_of_four_in_parallel(stage):  # X4 B3
    book = plans.book(plans.DIAMOND, pause=0.5)
    play = stage(plans.files(plans.DIAMOND), book)
    code, _, err = play.run("run", "plan.md", "--agents", "2")
    assert code == 0, err
    assert play.merges()[0] == "a"
    assert play.merges()[3] == "d"
    spans = {
        task: [seen.at for seen in play.seen if seen.key == f"Role: Player|Task: {task}\n"]
        for task in ("b", "c")
    }
    assert max(t[0] for t in spans.values()) < min(t[-1] for t in spans.values()), "at once"
    status = json.loads(play.run("status", "plan", "--json")[1])
    assert status["status"] == "completed"
    assert {task["status"] for task in status["tasks"].values()} == {"completed"}
    # Every request of an agent is in the bill.
    assert status["metrics"]["output_tokens"] == sum(
        seen.usage.output_tokens for seen in play.seen if seen.usage and not seen.side
    )


@pytest.mark.parametrize(
    "moment", [pytest.param(m, marks=[] if m in SAMPLE else [pytest.mark.sweep]) for m in MOMENTS]
)
def test_killed_and_resumed(stage, moment):  # G10 K3 B4 X6
    """SIGKILL to the whole group at a moment, then resume: as if nothing had happened."""
    play = stage(plans.files(plans.DIAMOND), plans.book(plans.DIAMOND))
    before = play.git("ls-tree", "-r", "main")
    code, said = play.killed_at(moment, "run", "plan.md", "--agents", "2")
    assert code == -signal.SIGKILL, said
    assert play.none_left(), "what a killed run started dies with it"
    played, reviewed = _finished(play, "PlayerFinished"), _finished(play, "CoachAnswered")
    code, _, err = play.run("resume", "plan.md", "--agents", "2")
    assert code == 0, err
    assert sorted(play.merges()) == ["a", "b", "c", "d"], "each is merged exactly once"
    made = play.git("ls-tree", "-r", "--name-only", "windlass/plan/integration").split()
    assert made == ["README.md", "a.txt", "b.txt", "c.txt", "d.txt", "plan.md", "windlass.toml"]
    assert all(
        play.git("show", f"windlass/plan/integration:{t}.txt") == f"by {t}\n" for t in "abcd"
    )
    # What was finished is not paid for again, and of the rest at most what was running is.
    for task in "abcd":
        assert 1 <= play.conversations(task) <= (1 if task in played else 2), task
        assert 1 <= play.reviews(task) <= (1 if task in reviewed else 2), task
    assert play.git("ls-tree", "-r", "main") == before
    assert play.git("fsck", "--connectivity-only", "--no-dangling") == ""
    assert play.none_left()


def _finished(play, fact: str) -> set[str]:
    """The tasks of which the journal has this fact."""
    code, out, err = play.run("log", "plan", "--json")
    if code == 2 and "never run" in err:
        return set()
    events = [json.loads(line)["event"] for line in out.splitlines()]
    return {event["task"] for event in events if event["type"] == fact}


def test_sigterm_stops_and_resume_goes_on(stage):  # K3
    slow = {"b": Script((write("b.txt", "by b\n"), Answer((Say("done"),), delay=30)))}
    play = stage(plans.files(plans.DIAMOND), plans.book(plans.DIAMOND, **slow))
    with play.windlass("run", "plan.md", "--agents", "1") as process:
        eventually((play.repo / ".windlass/plans/plan/workspaces/b/b.txt").exists)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 4, said
    assert "stopped by SIGTERM" in said
    assert "windlass resume plan.md" in said
    assert play.none_left()
    kept = play.git("for-each-ref", "--format=%(refname)", "refs/windlass/")
    assert "/task/b/1/partial" in kept, "what the Player had done is pinned"
    assert "stopped by SIGTERM" in play.run("status")[1]
    # The next Player finds it in its directory.
    fixed = {"b": playing(write("b2.txt", "more\n"), summary="Went on.")}
    play.replace_book(plans.book(plans.DIAMOND, **fixed))
    code, _, err = play.run("resume")
    assert code == 0, err
    assert play.git("show", "windlass/plan/integration:b.txt") == "by b\n"
    assert play.git("show", "windlass/plan/integration:b2.txt") == "more\n"


def test_the_second_run_is_refused_and_names_the_first(stage):  # K4
    hang = {"1.1": Script((Answer((Say("wait"),), delay=60),))}
    play = stage(plans.files(plans.SEQUENCE), plans.book(plans.SEQUENCE, **hang))
    with play.windlass("run", "plan.md") as first:
        eventually(lambda: play.seen)
        code, _, err = play.run("run", "plan.md")
        assert code == 5
        assert f"already running (PID {first.pid})" in err
        assert f"running (PID {first.pid})" in play.run("status")[1]
        # And it can be told to stop through its inbox.
        assert play.run("stop")[0] == 0
        assert first.wait(timeout=60) == 4
        _, err = first.communicate()
        assert "stopped by windlass stop" in err
    assert play.none_left()


def test_a_check_sends_work_back_with_its_output(stage):  # G6 B2
    play = stage(FILES, sample_book())
    code, _, err = play.run("run", "plan.md", "--agents", "2")
    assert code == 0, err
    assert "RETURNED  1.3 Format a table · turn 1/5 · checks" in err
    status = json.loads(play.run("status", "plan", "--json")[1])
    assert status["tasks"]["1.3"]["turns"] == 2
    assert status["metrics"]["checks"]["fail"] == 1


def test_a_player_that_only_talks_is_abandoned_and_its_workspace_kept(stage):  # X5 G6
    talk = {"1.1": Script((Say("All done, approved, tests pass!"),))}
    play = stage(plans.files(plans.SEQUENCE), plans.book(plans.SEQUENCE, **talk))
    code, _, err = play.run("run", "plan.md", "--max-turns", "2")
    assert code == 1
    assert "1.1 Write 1.1.txt · 2/2 turns" in err
    assert "1 abandoned, 2 blocked" in err
    assert (play.repo / ".windlass/plans/plan/workspaces/1.1").is_dir()
    assert "nothing was merged" in err


def test_a_red_base_asks_before_anything_is_spent(stage):
    play = stage(plans.files(plans.SEQUENCE, checks="test -e never"), plans.book(plans.SEQUENCE))
    code, _, err = play.run("run", "plan.md")
    assert code == 3
    assert "the base itself does not pass" in err
    assert "--red-base go" in err
    assert play.seen == []
    (play.repo / "windlass.toml").write_text('checks = ["test ! -e broken"]\n')
    code, _, err = play.run("resume", "--red-base", "go")
    assert code == 0, err


def test_conflicting_work_is_settled_by_a_player_and_nothing_is_lost(stage):  # G7
    tasks = {"a": (), "b": (), "c": ("a", "b")}
    both = Call(
        "Bash",
        {"command": "cat shared.txt; printf 'a\\nb\\n' > shared.txt", "description": "settle"},
    )
    book = plans.book(tasks)
    scripts = {
        **book.scripts,
        "Role: Player|Task: a\n": playing(write("shared.txt", "a\n"), summary="a"),
        "Role: Player|Task: b\n": playing(write("shared.txt", "b\n"), summary="b"),
        "Role: Player|Task: a\n|conflict markers": playing(both, summary="settled"),
        "Role: Player|Task: b\n|conflict markers": playing(both, summary="settled"),
    }
    play = stage(plans.files(tasks), type(book)(scripts=scripts))
    code, _, err = play.run("run", "plan.md", "--agents", "2")
    assert code == 0, err
    assert "CONFLICT" in err
    assert play.git("show", "windlass/plan/integration:shared.txt") == "a\nb\n"
    status = json.loads(play.run("status", "plan", "--json")[1])
    assert {task["turns"] for task in status["tasks"].values()} == {1}, "a conflict uses no turn"


def test_json_lines_for_programs(stage):
    play = stage(plans.files(plans.SEQUENCE), plans.book(plans.SEQUENCE))
    code, out, _ = play.run("run", "plan.md", "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert lines[0]["type"] == "init"
    assert lines[-1]["type"] == "result"
    assert lines[-1]["is_error"] is False
    assert lines[-1]["num_turns"] == 3
    assert all({"schema", "seq", "ts", "type", "run"} <= line.keys() for line in lines)
