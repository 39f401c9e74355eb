"""What people do while a run goes on: each is said on the screen, and nothing is lost."""

import json
import subprocess
import threading

import pytest

import plans
from waiting import eventually
from windlass.core.events import model as e
from windlass.testing.model.script import Answer, Call, Say, Script
from windlass.testing.sample import playing, write

pytestmark = pytest.mark.e2e

LOOK = Call("Glob", {"pattern": "*"})


class Listening:
    """What a live process says, as far as it has."""

    def __init__(self, process) -> None:
        self.process = process
        self.said = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stderr:
            self.said += line

    def hears(self, text: str, timeout: float = 30) -> None:
        eventually(lambda: text in self.said, timeout=timeout)

    def end(self) -> tuple[int, str]:
        self.process.stdout.read()
        code = self.process.wait(timeout=90)
        self._reader.join(timeout=10)
        return code, self.said


def slow(task: str, seconds: float) -> Script:
    return playing(
        write(f"{task}.txt", f"by {task}\n"), Answer((LOOK,), delay=seconds), summary=task
    )


def test_edits_moves_and_deletions_are_said_and_nothing_is_lost(stage):  # B7 G7
    tasks = plans.SEQUENCE
    play = stage(plans.files(tasks), plans.book(tasks, **{"1.2": slow("1.2", 12)}))
    base = play.git("rev-parse", "main").strip()
    with play.windlass("run", "plan.md") as process:
        run = Listening(process)
        eventually(lambda: play.conversations("1.2"), timeout=60)
        plan = play.repo / "plan.md"
        plan.write_text(plan.read_text() + "\n## Task 1.4: Write 1.4.txt\n\n- [ ] it is there\n")
        run.hears("plan.md was edited: the run keeps the old plan")
        play.git("commit", "--quiet", "--allow-empty", "-m", "meanwhile")
        run.hears(f"main has moved to {play.git('rev-parse', 'main')[:10]}")
        play.git("branch", "--quiet", "-D", "windlass/plan/integration")
        run.hears("windlass/plan/integration was deleted; nothing is lost")
        code, said = run.end()
    assert code == 0, said
    assert said.count("was edited") == 1
    assert said.count("main has moved to") == 2, "once when it moved, once at the end"
    assert "which is not in these merges" in said
    assert play.merges() == ["1.1", "1.2", "1.3"]
    play.git("merge-base", "--is-ancestor", base, "windlass/plan/integration")


def test_a_workspace_that_is_deleted_is_made_anew_and_disturbs_nobody(stage):  # G7 S11
    tasks = {"a": (), "b": ()}
    slowly = {task: slow(task, 6) for task in tasks}
    play = stage(plans.files(tasks), plans.book(tasks, **slowly))
    with play.windlass("run", "plan.md", "--sandbox", "bwrap") as process:
        run = Listening(process)
        workspaces = play.repo / ".windlass/plans/plan/workspaces"
        for task in tasks:
            eventually((workspaces / task / f"{task}.txt").exists, timeout=60)
        subprocess.run(["rm", "-rf", workspaces / "a"], check=True)
        run.hears("the workspace of a is gone, with the work done in it since")
        code, said = run.end()
    assert code == 0, said
    assert "its workspace was taken away while it worked" in said
    assert "the workspace of a was gone; it is made again from " in said
    assert sorted(play.merges()) == ["a", "b"]
    assert [play.conversations(task) for task in tasks] == [2, 1]
    told = json.loads(play.run("status", "plan", "--json")[1])["tasks"]
    assert [told[task]["turns"] for task in tasks] == [1, 1]


@pytest.mark.parametrize("lost", ["plans/plan/journal.db*", ""])
def test_a_journal_that_is_deleted_ends_the_run_and_recover_takes_it_up(stage, lost):  # B4 X10
    tasks = {"a": (), "b": ("a",)}
    play = stage(plans.files(tasks), plans.book(tasks, b=slow("b", 3)))
    with play.windlass("run", "plan.md") as process:
        run = Listening(process)
        eventually(lambda: play.conversations("b"), timeout=60)
        home = play.repo / ".windlass"
        subprocess.run(["rm", "-rf", *(home.glob(lost) if lost else (home,))], check=True)
        code, said = run.end()
    assert code == 4, said
    assert "run `windlass recover plan` to restore the journal" in said
    assert play.none_left()
    code, _, err = play.run("recover")
    assert code == 0, err
    code, _, err = play.run("resume", "plan.md")
    assert code == 0, err
    assert play.merges() == ["a", "b"]
    assert play.conversations("a") == 1, "what was merged is not paid for again"


def test_a_pause_in_mid_turn_finishes_it_and_resume_pays_nothing_twice(stage):  # S9 S10 G10
    tasks = plans.SEQUENCE
    play = stage(plans.files(tasks), plans.book(tasks, **{"1.2": slow("1.2", 4)}))
    here = play.repo / ".windlass/continue-here"
    with play.windlass("run", "plan.md") as process:
        run = Listening(process)
        eventually(lambda: play.conversations("1.2"), timeout=60)
        code, out, _ = play.run("pause")
        assert code == 0
        assert "turns that have started finish first" in out
        code, said = run.end()
    assert code == 4, said
    assert "Execution paused at Task 1.3." in said
    assert "Progress saved to .windlass/continue-here" in said
    assert play.merges() == ["1.1", "1.2"], "the turn came to its end"
    assert "Commits: 2 completed" in here.read_text()
    spent = play.spent()
    code, _, err = play.run("resume")
    assert code == 0, err
    assert "Resuming from Task 1.3..." in err
    assert "- 1.1: ✓ 1 commit found" in err
    assert not here.exists()
    assert [play.conversations(task) for task in tasks] == [1, 1, 1]
    assert [play.reviews(task) for task in tasks] == [1, 1, 1]
    assert play.spent() > spent
    reserved = {f.id for f in play.journal() if isinstance(f, e.SpendReserved)}
    settled = {f.id for f in play.journal() if isinstance(f, e.SpendSettled)}
    assert reserved == settled, "nothing was cut short"


def test_abort_ends_agents_and_keeps_their_work(stage):  # S3
    tasks = plans.SEQUENCE
    patient = Script((write("1.1.txt", "half\n"), Answer((Say("…"),), delay=60)))
    play = stage(plans.files(tasks), plans.book(tasks, **{"1.1": patient}))
    with play.windlass("run", "plan.md") as process:
        run = Listening(process)
        workspace = play.repo / ".windlass/plans/plan/workspaces/1.1"
        eventually((workspace / "1.1.txt").exists, timeout=60)
        assert play.run("abort", "--yes")[0] == 0
        code, said = run.end()
    assert code == 1, said
    assert "Next  windlass run plan.md" in said
    assert json.loads(play.run("status", "plan", "--json")[1])["status"] == "failed"
    [partial] = play.git("for-each-ref", "--format=%(refname)", "refs/windlass/**/partial").split()
    assert play.git("show", f"{partial}:1.1.txt") == "half\n"
    assert workspace.is_dir()
    assert play.run("resume", "plan")[0] == 2
