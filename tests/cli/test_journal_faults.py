"""A journal that is damaged, cut short or from the future: said, never half-read."""

import sqlite3
import subprocess
from pathlib import Path

import pytest

import plans
from quick import quick_run
from windlass.core.settings import Settings
from windlass.testing.agents import ScriptedAgent
from windlass.testing.stage import Stage


class Unfinished(Stage):
    """A repository whose run of three tasks stopped after the second."""

    @property
    def journal(self) -> Path:
        return self.repo / ".windlass/plans/plan/journal.db"

    def tell(self, *args: str) -> tuple[int, str, str]:
        with self.windlass(*args) as process:
            out, err = process.communicate(timeout=30)
        return process.returncode, out, err


@pytest.fixture
def stage(tmp_path: Path) -> Unfinished:
    made = Unfinished(tmp_path, "http://127.0.0.1:9")
    made.build({"plan.md": plans.plan_text(plans.SEQUENCE)})
    agent = ScriptedAgent({"1.1": {"a": "1"}, "1.2": {"b": "1"}}, default={})
    state = quick_run(made.repo, agent, settings=Settings(max_turns=1))
    assert state.merged == ("1.1", "1.2")
    assert state.ended == "failed"
    return made


def test_a_newer_journal_is_refused_and_status_still_shows_the_run(stage):
    db = sqlite3.connect(stage.journal)
    db.execute("PRAGMA user_version = 999")
    db.close()
    code, _, err = stage.tell("resume", "plan")
    assert code == 2
    assert "newer" in err
    assert "upgrade windlass" in err
    assert "`windlass recover PLAN --force`" in err
    code, out, _ = stage.tell("status", "plan")
    assert code == 0
    assert "2/3 done" in out
    assert "from state.json" in out


def test_a_version_that_only_a_flipped_bit_made_newer_is_recovered_from(stage):
    db = sqlite3.connect(stage.journal)
    db.execute("PRAGMA user_version = 257")
    db.close()
    damaged = stage.journal.read_bytes()
    code, _, err = stage.tell("recover", "plan")
    assert code == 2, "unasked, what a newer Windlass may have written is not thrown away"
    assert "--force" in err
    assert stage.journal.read_bytes() == damaged
    code, out, err = stage.tell("recover", "plan", "--force")
    assert code == 0, err
    assert "version 257" in out
    assert stage.journal.with_name("journal.db.damaged-1").read_bytes() == damaged
    code, out, err = stage.tell("status", "plan")
    assert code == 0, err
    assert "2/3 done" in out
    assert "from state.json" not in out


def test_a_flipped_byte_is_reported_with_its_position(stage):
    db = sqlite3.connect(stage.journal)
    db.execute("UPDATE entries SET payload = replace(payload, 'PlayerFinished', 'PlayerFinishes')")
    db.commit()
    db.close()
    before = stage.git("for-each-ref")
    code, _, err = stage.tell("resume", "plan")
    assert code == 3
    assert "cannot be trusted from entry 5 on" in err
    assert "`windlass recover`" in err
    assert err.count("\n") == 1
    assert stage.git("for-each-ref") == before


def test_a_journal_behind_its_state_file_has_lost_its_end(stage):
    """A cut log opens clean and shorter; the state file remembers better."""
    db = sqlite3.connect(stage.journal)
    db.execute("DELETE FROM entries WHERE seq > 20")
    db.commit()
    db.close()
    code, _, err = stage.tell("resume", "plan")
    assert code == 3
    assert "ends at 20" in err
    state = next(stage.repo.glob(".windlass/plans/plan/runs/*/state.json"))
    state.unlink()
    code, _, err = stage.tell("resume", "plan", "--yes")
    assert code == 3
    assert "it ends at 20, its mirror in git at " in err
    assert "`windlass recover`" in err
    # The other pins remember better, too, where the mirror is gone as well.
    stage.git("update-ref", "-d", "refs/windlass/plan/r1/journal")
    code, _, err = stage.tell("resume", "plan", "--yes")
    assert code == 3
    assert "the journal is behind git" in err
    assert "`windlass recover`" in err


def test_lost_pins_are_written_again(stage):
    lost = stage.git("for-each-ref", "--format=%(refname)", "refs/windlass/plan/r1/task/")
    assert lost
    for ref in lost.split():
        stage.git("update-ref", "-d", ref)
    agent = ScriptedAgent({}, default={})
    quick_run(stage.repo, agent)
    assert stage.git("for-each-ref", "--format=%(refname)", "refs/windlass/plan/r1/task/") == lost


def test_a_lost_commit_is_said(stage):
    tip = stage.git("rev-parse", "windlass/plan/integration").strip()
    for ref in stage.git("for-each-ref", "--format=%(refname)", "refs/windlass").split():
        stage.git("update-ref", "-d", ref)
    stage.git("branch", "-D", "windlass/plan/integration")
    subprocess.run(["git", "gc", "--quiet", "--prune=now"], cwd=stage.repo, check=True)
    code, _, err = stage.tell("resume", "plan", "--yes")
    assert code == 2
    assert "git has lost" in err
    assert tip[:10] in err


def test_a_run_goes_on_when_its_plan_has_changed_or_is_gone(stage):  # B7
    plan = stage.repo / "plan.md"
    plan.write_text(plan.read_text().replace("Write 1.3.txt", "Write something else"))
    code, _, err = stage.tell("resume", "plan.md", "--yes")
    assert code == 1, "1.3 was abandoned, and stays so"
    assert "plan: ~ 1.3 Write something else: changed, and still abandoned" in err
    plan.unlink()
    code, _, err = stage.tell("resume", "plan", "--yes")
    assert code == 1
    assert "2 completed, 1 abandoned" in err


def test_no_sandbox_at_all_cannot_be_a_habit(stage):  # B5
    (stage.repo / "windlass.toml").write_text('[sandbox]\nlevel = "none"\n')
    code, _, err = stage.tell("resume", "plan")
    assert code == 2
    assert "windlass.toml: a setting cannot turn the sandbox off" in err
