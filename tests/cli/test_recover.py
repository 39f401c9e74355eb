"""The journal is gone, or cannot be trusted: `windlass recover` restores it from git alone."""
# X10

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import plans
import windlass
from quick import ENVIRONMENT, quick_run
from windlass import RecoverRequest
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.adapters.locks import PlanLock
from windlass.app.wiring import Project, ended, now, resumed_unchanged
from windlass.app.wiring.bundling import read_records
from windlass.app.wiring.configuration import configure, resumed_settings
from windlass.core.events import codec, segments
from windlass.core.events import model as e
from windlass.core.events.segments import Mark
from windlass.core.settings import Settings
from windlass.core.state import fold
from windlass.ports import Brief
from windlass.testing.agents import ScriptedAgent
from windlass.testing.stage import Stage

DONE = {"1.1": {"a": "1"}, "1.2": {"b": "1"}, "1.3": {"c": "1"}}


class Counting(ScriptedAgent):
    """A scripted agent that remembers whom it worked for."""

    def __init__(self, *args, **more) -> None:
        super().__init__(*args, **more)
        self.worked: list[tuple[str, str, int]] = []

    async def work(self, brief: Brief, workspace, watch):
        self.worked.append((brief.role, brief.task, brief.n))
        return await super().work(brief, workspace, watch)


class Lost(Stage):
    """A repository whose run of three tasks came to a stop at the third."""

    @property
    def journal(self) -> Path:
        return self.repo / ".windlass/plans/plan/journal.db"

    def tell(self, *args: str) -> tuple[int, str, str]:
        with self.windlass(*args) as process:
            out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def lose(self) -> None:
        for path in self.journal.parent.glob("journal.db*"):
            path.unlink()

    def events(self) -> list[e.Event]:
        with SqliteJournal.read_only(self.journal) as journal:
            return [entry.event for entry in journal.read()]

    def records(self) -> list[bytes]:
        with SqliteJournal.read_only(self.journal) as journal:
            return journal.records()

    def became_older(self) -> None:
        """The repository as the version before the mirror left it."""
        [began] = [event for event in self.events() if isinstance(event, e.RunStarted)]
        blob = subprocess.run(
            ["git", "-C", self.repo, "hash-object", "-w", "--stdin"],
            input=codec.encode(began),
            capture_output=True,
            check=True,
        )
        self.git("update-ref", "refs/windlass/plan/r1/began", blob.stdout.decode().strip())
        self.git("update-ref", "-d", "refs/windlass/plan/r1/journal")

    def pins(self) -> list[str]:
        return self.git("for-each-ref", "--format=%(refname)", "refs/windlass").split()

    def status(self) -> dict:
        return json.loads(self.tell("status", "plan", "--json")[1])


@pytest.fixture
def stage(tmp_path: Path) -> Lost:
    made = Lost(tmp_path, "http://127.0.0.1:9")
    made.build({"plan.md": plans.plan_text(plans.SEQUENCE)})
    agent = ScriptedAgent({"1.1": {"a": "1"}, "1.2": {"b": "1"}}, default={})
    state = quick_run(made.repo, agent, settings=Settings(max_turns=2))
    assert state.merged == ("1.1", "1.2")
    assert state.ended == "failed"
    return made


def test_a_deleted_journal_is_rebuilt_and_the_run_goes_on(stage: Lost):
    before, records, pins = stage.status(), stage.records(), stage.pins()
    costs = stage.tell("costs", "plan", "--json")[1]
    stage.lose()
    code, out, err = stage.tell("recover")
    assert code == 0, err
    assert "2 of 3 tasks merged onto main" in out
    assert "the journal: there is none" in out
    assert f"its mirror: {len(records)} records" in out
    assert "note:" not in out
    assert "windlass resume plan" in out
    assert stage.records() == records, "byte for byte"
    assert stage.status() == before, "money included"
    assert stage.tell("costs", "plan", "--json")[1] == costs
    assert stage.pins() == pins
    assert stage.tell("retry", "1.3")[0] == 0, "it was abandoned, and still is"
    agent = Counting(DONE)
    state = quick_run(stage.repo, agent)
    assert state.ended is e.RunEnd.COMPLETED, state.reason
    assert {task for _, task, _ in agent.worked} == {"1.3"}
    assert min(n for _, _, n in agent.worked) == 3, "numbers go on after the highest pin"
    assert stage.git("show", "windlass/plan/integration:c") == "1"
    merges = stage.git(
        "log", "--merges", "--first-parent", "--format=%s", "main..refs/windlass/plan/r1/tip"
    )
    assert len(merges.splitlines()) == 3


def test_a_task_done_once_more_whose_merge_stands_stays_merged(stage: Lost):  # X6
    assert stage.tell("retry", "1.1", "--yes")[0] == 0
    assert stage.tell("retry", "1.3")[0] == 0
    quick_run(stage.repo, ScriptedAgent({"1.1": {"a": "1"}}, default={}))
    assert any(isinstance(event, e.MergeStands) for event in stage.events())
    stage.lose()
    code, out, err = stage.tell("recover")
    assert code == 0, err
    assert "2 of 3 tasks merged onto main" in out
    assert "does not fit" not in out
    agent = Counting(DONE)
    assert quick_run(stage.repo, agent).ended is e.RunEnd.COMPLETED
    assert {task for _, task, _ in agent.worked} == {"1.3"}


def test_a_good_journal_is_not_touched(stage: Lost):
    before = stage.journal.read_bytes()
    code, _, err = stage.tell("recover", "plan")
    assert code == 2
    assert "the journal of 'plan' is good; to continue: windlass resume plan" in err
    assert stage.journal.read_bytes() == before
    assert stage.tell("recover")[0] == 2
    code, _, err = stage.tell("recover", "plan", "--force")
    assert code == 0, err
    assert (stage.journal.parent / "journal.db.damaged-1").read_bytes() == before


def test_a_good_journal_of_a_run_that_is_over_names_nothing_to_go_on_with(tmp_path: Path):
    stage = Lost(tmp_path, "http://127.0.0.1:9")
    stage.build({"plan.md": plans.plan_text(plans.SEQUENCE)})
    parts = {"1.1": {"a": "1"}, "1.2": {"b": "1"}, "1.3": {"c": "1"}}
    assert quick_run(stage.repo, ScriptedAgent(parts)).ended == "completed"
    code, _, err = stage.tell("recover", "plan.md")
    assert (code, "the run is finished; --force" in err, "resume" in err) == (2, True, False)


def test_a_damaged_journal_says_the_cure_and_is_kept_aside(stage: Lost):
    db = sqlite3.connect(stage.journal)
    db.execute("UPDATE entries SET payload = replace(payload, 'PlayerFinished', 'PlayerFinishes')")
    db.commit()
    db.close()
    assert "windlass recover" in stage.tell("resume", "plan")[2]
    code, out, err = stage.tell("recover", "plan.md")
    assert code == 0, err
    assert "journal.db.damaged-1" in out
    assert stage.status()["metrics"]["completed"] == 2
    assert (stage.journal.parent / "journal.db.damaged-1").exists()


@pytest.mark.parametrize("told", [True, False])
def test_a_journal_that_was_cut_short_is_rebuilt(stage: Lost, told: bool):  # noqa: FBT001
    db = sqlite3.connect(stage.journal)
    db.execute("DELETE FROM entries WHERE seq > 20")
    db.commit()
    db.close()
    if not told:
        next(stage.repo.glob(".windlass/plans/plan/runs/*/state.json")).unlink()
    assert "windlass recover" in stage.tell("resume", "plan")[2]
    code, _, err = stage.tell("recover")
    assert code == 0, err
    assert stage.status()["metrics"]["completed"] == 2


def test_all_that_windlass_kept_beside_git_may_be_gone(stage: Lost):
    shutil.rmtree(stage.repo / ".windlass")
    (stage.repo / "plan.md").unlink()
    code, out, err = stage.tell("recover", "plan")
    assert code == 0, err
    assert "2 of 3 tasks merged" in out
    assert stage.status()["metrics"]["completed"] == 2


def test_a_tip_that_was_deleted_or_put_back_is_said_and_put_again(stage: Lost):
    tip = "refs/windlass/plan/r1/tip"
    at = stage.git("rev-parse", tip).strip()
    stage.lose()
    stage.git("update-ref", "-d", tip)
    code, out, _ = stage.tell("recover")
    assert code == 0
    assert f"the tip's pin was lost; it is at {at[:10]} again" in out
    assert stage.git("rev-parse", tip).strip() == at
    stage.lose()
    stage.git("branch", "-D", "windlass/plan/integration")
    stage.git("update-ref", tip, "main")
    code, out, _ = stage.tell("recover")
    assert code == 0
    assert "was moved back" in out
    assert stage.git("rev-parse", tip).strip() == at


def test_a_task_that_a_person_has_taken_is_theirs_though_the_journal_is_lost(stage: Lost):  # B8 X10
    assert stage.tell("take", "1.3")[0] == 0
    stage.lose()
    assert stage.tell("recover")[0] == 0
    assert stage.status()["tasks"]["1.3"]["status"] == "needs_human"


def test_what_recover_wrote_is_nobodys_edit(stage: Lost):  # X10
    stage.lose()
    code, _, err = stage.tell("recover")
    assert (code, err) == (0, "")
    code, _, err = stage.tell("retry", "1.2", "--yes")
    assert code == 0, err
    assert "was edited" not in err
    assert not list(stage.repo.glob(".windlass/plans/plan/runs/*/*.edited-*"))


def test_a_tip_that_was_put_back_under_a_good_journal_is_refused_and_recovered(stage: Lost):  # S7
    tip = "refs/windlass/plan/r1/tip"
    was = stage.git("rev-parse", tip).strip()
    stage.git("update-ref", tip, "main")
    before = stage.events()
    for args in (("resume", "plan", "--yes"), ("land", "plan")):
        code, _, err = stage.tell(*args)
        assert code == 3, err
        assert f"{tip} stands at" in err
        assert "windlass recover" in err
        assert "Verified" not in err
    assert stage.events() == before, "nothing was begun, and nothing paid"
    code, _, err = stage.tell("recover", "plan")
    assert code == 0, err
    assert stage.git("rev-parse", tip).strip() == was
    assert stage.status()["metrics"]["completed"] == 2


def test_status_says_that_git_was_restored_from_an_older_copy(stage: Lost, tmp_path: Path):
    """Of the whole `.git`, as it was after the first merge: `.windlass` knows more than it."""
    assert "older" not in stage.tell("status")[1]
    newer = stage.repo / ".git"
    merges = stage.git("rev-list", "--first-parent", "--merges", "refs/windlass/plan/r1/tip")
    second, first = merges.split()
    older = tmp_path / "older.git"
    stage.git("clone", "-q", "--bare", "--no-local", "--single-branch", ".", str(older))
    for name, commit in (("tip", first), ("base", "main")):
        copied = f"+{stage.git('rev-parse', commit).strip()}:refs/windlass/plan/r1/{name}"
        stage.git("--git-dir", str(older), "fetch", "-q", str(newer), copied)
    (older / "config").write_text((newer / "config").read_text())
    newer.rename(tmp_path / "newer.git")
    older.rename(newer)
    code, out, _ = stage.tell("status")
    said = " ".join(out.split())
    assert code == 0
    assert f"git is older than the journal: it lacks the merge of 1.2 ({second[:10]})" in said
    assert "windlass recover plan" in said
    code, out, err = stage.tell("status", "plan", "--json")
    assert json.loads(out)["run"] == "r1"
    assert "plan: git is older than the journal" in err
    stage.git("update-ref", "-d", "refs/windlass/plan/r1/tip")
    assert "windlass run plan --restart" in " ".join(stage.tell("status")[1].split())
    shutil.rmtree(newer)
    (tmp_path / "newer.git").rename(newer)
    assert "older" not in stage.tell("status")[1]


def test_status_says_that_the_tip_was_put_back(stage: Lost):
    stage.git("update-ref", "refs/windlass/plan/r1/tip", "main")
    said = " ".join(stage.tell("status")[1].split())
    assert "git is older than the journal: refs/windlass/plan/r1/tip stands at" in said
    assert "windlass recover plan" in said


def test_nothing_in_git_is_said(tmp_path: Path):
    stage = Lost(tmp_path, "http://127.0.0.1:9")
    stage.build({"plan.md": plans.plan_text(plans.SEQUENCE)})
    for args in ((), ("plan.md",)):
        code, _, err = stage.tell("recover", *args)
        assert code == 2
        assert "git has nothing of" in err
        assert err.count("\n") == 1
    assert not (stage.repo / ".windlass").exists()


def test_a_run_that_died_before_its_first_fact_is_nothing_to_recover(tmp_path: Path):  # B4
    stage = Lost(tmp_path, "http://127.0.0.1:9")
    stage.build({"plan.md": plans.plan_text(plans.SEQUENCE)})
    for pin in ("base", "tip"):
        stage.git("update-ref", f"refs/windlass/plan/4e366767/{pin}", "HEAD")
    code, _, err = stage.tell("resume", "plan.md")
    assert code == 2
    assert "was never run here; start a new one: windlass run plan.md" in err
    code, _, err = stage.tell("recover")
    assert code == 2
    assert "git has nothing of" in err


def test_a_commit_on_the_tip_that_is_nobodys_is_refused(stage: Lost):
    stage.lose()
    made = stage.git(
        "commit-tree", "-p", "windlass/plan/integration", "-m", "mine", "main^{tree}"
    ).strip()
    stage.git("update-ref", "refs/windlass/plan/r1/tip", made)
    code, _, err = stage.tell("recover")
    assert code == 2
    assert "which is no merge of it" in err


def test_an_edited_plan_is_recovered_with_its_edits(stage: Lost):  # B7
    text = (stage.repo / "plan.md").read_text()
    edited = text.replace("Write 1.1.txt", "Write it better").replace("1.3.txt", "four.txt")
    (stage.repo / "plan.md").write_text(edited)
    stage.tell("retry", "1.3")
    quick_run(stage.repo, ScriptedAgent({}, default={}), settings=Settings(max_turns=1))
    stage.lose()
    (stage.repo / "plan.md").unlink()
    assert stage.tell("recover")[0] == 0
    state = fold(stage.events())
    assert state is not None
    assert state.specs["1.3"].title == "Write four.txt"
    assert state.is_stale("1.1"), "it was merged for what it said then"
    assert not state.is_stale("1.2")
    assert len(state.tasks["1.3"].attempts) == 3


def test_of_several_runs_the_newest_is_taken_and_others_are_named(stage: Lost):
    with Project(stage.repo, ENVIRONMENT).journals.session("plan") as session:
        session.note(ended(e.RunEnd.ABANDONED, "restarted"))
    agent = ScriptedAgent(DONE)
    state = quick_run(stage.repo, agent, run="r2", anew=True)
    assert state.run == "r2"
    stage.lose()
    code, out, _ = stage.tell("recover", "plan", "--dry-run")
    assert code == 0
    assert "run r2" in out
    assert "other runs stay pinned: r1" in out
    assert not stage.journal.exists()
    assert stage.tell("recover", "plan", "--run", "r3")[0] == 2
    code, out, _ = stage.tell("recover", "plan", "--run", "r1")
    assert code == 0
    assert "2 of 3 tasks merged" in out


def two_runs(stage: Lost) -> None:
    with Project(stage.repo, ENVIRONMENT).journals.session("plan") as session:
        session.note(ended(e.RunEnd.ABANDONED, "restarted"))
    assert quick_run(stage.repo, ScriptedAgent(DONE), run="r2", anew=True).run == "r2"


def test_the_newest_run_is_known_by_a_count_and_not_by_a_clock(stage: Lost):
    two_runs(stage)
    stage.lose()
    # The older run's tip is a commit from the future, as after a clock that was set back.
    tip = "refs/windlass/plan/r1/tip"
    late = stage.git("cat-file", "commit", tip).replace("> 1", "> 9")
    made = subprocess.run(
        ["git", "-C", stage.repo, "hash-object", "-t", "commit", "-w", "--stdin"],
        input=late,
        capture_output=True,
        text=True,
        check=True,
    )
    stage.git("update-ref", tip, made.stdout.strip())
    assert "run r2" in stage.tell("recover", "plan", "--dry-run")[1]


def test_a_run_that_was_recovered_by_name_is_the_newest_from_then_on(stage: Lost):
    two_runs(stage)
    stage.lose()
    assert stage.tell("recover", "plan", "--run", "r1")[0] == 0
    stage.lose()
    assert "run r1" in stage.tell("recover", "plan", "--dry-run")[1]
    before = stage.pins()
    assert stage.tell("recover", "plan")[0] == 0
    assert stage.pins() == before, "it was the newest already"


def test_runs_of_earlier_versions_are_ordered_by_their_first_facts(stage: Lost):
    two_runs(stage)
    stage.lose()
    for pin in stage.pins():
        if "/order-" in pin:
            stage.git("update-ref", "-d", pin)
    assert "run r2" in stage.tell("recover", "plan", "--dry-run")[1]


def test_where_nothing_tells_which_run_is_the_newest_you_are_asked(stage: Lost):
    stage.lose()
    for pin in stage.pins():
        stage.git("update-ref", pin.replace("/r1/", "/r0/"), pin)
    code, _, err = stage.tell("recover", "plan")
    assert code == 2
    assert "which run of 'plan' is the newest: r0, r1" in err
    assert "--run RUN" in err
    assert stage.tell("recover", "plan", "--run", "r1")[0] == 0


def test_a_journal_that_cannot_be_read_shows_the_state_of_the_newest_run(stage: Lost):
    two_runs(stage)
    older = stage.repo / ".windlass/plans/plan/runs/r1/state.json"
    for path in (older, older.parent):
        os.utime(path, (2e9, 2e9))  # touched later than the newer run's
    project = Project(stage.repo, ENVIRONMENT)
    told = project.journals.state_file("plan")
    assert told is not None
    assert told.run == "r2"
    assert read_records(project, "plan").run == "r2"


def test_a_run_of_the_version_before_the_mirror_is_recovered_from_its_pins(stage: Lost):
    before = stage.status()
    stage.became_older()
    stage.lose()
    code, out, err = stage.tell("recover", "plan")
    assert code == 0, err
    assert "an older Windlass made this run" in out
    assert "what was spent" in out
    after = stage.status()
    assert after["tip"] == before["tip"]
    assert [task["merged"] for task in after["tasks"].values()] == [
        task["merged"] for task in before["tasks"].values()
    ]
    assert after["metrics"]["cost_known"] is False
    agent = Counting(DONE)
    state = quick_run(stage.repo, agent)
    assert state.ended is e.RunEnd.COMPLETED, state.reason
    assert {task for _, task, _ in agent.worked} == {"1.3"}
    assert min(n for _, _, n in agent.worked) == 3, "numbers go on after the highest pin"


def test_a_mirror_that_was_put_back_is_enough_with_the_pins(stage: Lost):
    records = stage.records()
    ref = "refs/windlass/plan/r1/journal"
    segment, _ = segments.write("plan", records[:9], Mark())
    tree = stage.git("hash-object", "-t", "tree", "-w", "/dev/null").strip()
    shorter = stage.git("commit-tree", tree, "-m", segment.decode().rstrip())
    stage.git("update-ref", ref, shorter.strip())
    stage.lose()
    code, out, err = stage.tell("recover", "plan")
    assert code == 0, err
    assert "its mirror: 9 records" in out
    assert "2 of 3 tasks merged" in out
    assert "what was spent" in out
    assert stage.records()[:9] == records[:9]
    agent = Counting(DONE)
    assert quick_run(stage.repo, agent).ended is e.RunEnd.COMPLETED
    assert {task for _, task, _ in agent.worked} == {"1.3"}


def test_a_journal_behind_its_mirror_is_refused_by_all_who_would_use_it(stage: Lost):
    db = sqlite3.connect(stage.journal)
    db.execute("DELETE FROM entries WHERE seq > 30")
    db.commit()
    db.close()
    records = stage.records()
    next(stage.repo.glob(".windlass/plans/plan/runs/*/state.json")).unlink()
    for args in (("status", "plan"), ("resume", "plan", "--yes"), ("run", "plan.md", "--yes")):
        code, _, err = stage.tell(*args)
        assert code == 3, (args, err)
        assert "the journal of 'plan' is behind" in err
        assert "windlass recover" in err
    assert stage.records() == records


def test_a_run_that_pinned_no_beginning_is_recovered_by_the_plan_as_it_is(stage: Lost):
    stage.lose()
    stage.git("update-ref", "-d", "refs/windlass/plan/r1/journal")
    code, _, err = stage.tell("recover", "plan")
    assert code == 2
    assert "name the plan's file: windlass recover FILE" in err
    code, out, err = stage.tell("recover", "plan.md")
    assert code == 0, err
    assert "2 of 3 tasks merged onto main" in out


def test_a_setting_that_is_changed_after_a_recovery_from_pins_counts(stage: Lost):
    settings = stage.repo / "windlass.toml"
    settings.write_text("max_turns = 2\n")
    stage.lose()
    stage.git("update-ref", "-d", "refs/windlass/plan/r1/journal")
    code, _, err = stage.tell("recover", "plan.md")
    assert code == 0, err
    recovered = fold(stage.events())
    assert recovered is not None
    settings.write_text("max_turns = 7\n")
    project = Project(stage.repo, ENVIRONMENT)
    now = configure(project.root, ENVIRONMENT, {})
    [change] = resumed_settings(now, recovered, project.redactor).changes
    assert (change.key, change.before, change.after) == ("max_turns", 2, 7)


def test_who_resumes_or_begins_anew_without_a_journal_is_told(stage: Lost):
    stage.lose()
    for typed in ("plan", "plan.md"):
        code, _, err = stage.tell("resume", typed)
        assert code == 2
        assert "windlass recover plan" in err


SAID = ("reset", "retry", "take", "give", "approve", "diff")
LOOKED = ("status", "log", "history", "costs", "report", "clean", "land", "pr")
RESTED = ("resume", "pause", "stop", "abort")


def test_whoever_looks_for_a_run_whose_journal_is_gone_is_told(stage: Lost):  # X10
    shutil.rmtree(stage.repo / ".windlass")
    for args in (
        *((command,) for command in (*LOOKED, *RESTED)),
        *((command, "plan.md") for command in (*LOOKED, *RESTED)),
        *((command, "1.2") for command in SAID),
        ("answer", "1.2", "yes"),
        ("retry", "plan:1.2"),
    ):
        code, out, err = stage.tell(*args)
        assert (code, out) == (2, ""), args
        assert "windlass recover plan" in err, args


def dies(project: Project) -> None:
    """The run goes on, and its process is killed."""
    with project.journals.session("plan") as session:
        session.note(resumed_unchanged(session.state))


def asks(project: Project) -> None:
    windlass.retry(project, "1.3")
    with project.journals.session("plan") as session:
        session.note(e.HelpNeeded(at=now(), task="1.3", question="which?"))


def edits(project: Project) -> None:
    plan = project.root / "plan.md"
    plan.write_text(plan.read_text().replace("Write 1.1.txt", "Write it better"))


def adopts(project: Project) -> None:
    windlass.abort(project, confirmed=True)
    project.root.joinpath("old.json").write_text(
        '{"milestone_id": "plan", "plan_path": "plan.md", "completed_tasks": ["1.1"],'
        ' "task_results": {}}'
    )


def adopted(project: Project) -> None:
    windlass.adopt(project, windlass.propose(project, "old.json", None, unverified=True))


AT_REST = {
    "retry": (None, lambda project: windlass.retry(project, "1.3")),
    "reset": (None, lambda project: windlass.reset(project, "1.3")),
    "reset --undo": (
        lambda project: windlass.reset(project, "1.3"),
        lambda project: windlass.reset(project, "1.3", undo=True),
    ),
    "take": (None, lambda project: windlass.take(project, "1.3")),
    "give": (
        lambda project: windlass.take(project, "1.3"),
        lambda project: windlass.give(project, "1.3"),
    ),
    "answer": (asks, lambda project: windlass.answer(project, "1.3", "the second")),
    "approve": (edits, lambda project: windlass.approve(project, "1.1")),
    "pause": (dies, windlass.pause),
    "stop": (dies, windlass.stop),
    "abort": (None, lambda project: windlass.abort(project, confirmed=True)),
    "adopt": (adopts, adopted),
}


@pytest.mark.parametrize("command", AT_REST)
def test_what_a_command_records_while_no_run_is_live_is_in_git_too(stage: Lost, command: str):
    """X10: `.windlass` is removed right after it, and the journal comes back byte for byte."""
    notices: list[str] = []
    prepare, record = AT_REST[command]
    if prepare is not None:
        prepare(Project(stage.repo, ENVIRONMENT))
    before = stage.records()
    record(Project(stage.repo, ENVIRONMENT, notices.append))
    records = stage.records()
    assert len(records) > len(before)
    assert records[: len(before)] == before
    shutil.rmtree(stage.repo / ".windlass")
    found = windlass.recover(Project(stage.repo, ENVIRONMENT), RecoverRequest(plan="plan"))
    assert stage.records() == records
    assert (found.records, found.notes, notices) == (len(records), (), [])
    assert stage.git("fsck") == "", "nothing is left for gc"


def test_an_aborted_run_comes_back_as_aborted(stage: Lost):
    windlass.abort(Project(stage.repo, ENVIRONMENT), confirmed=True)
    shutil.rmtree(stage.repo / ".windlass")
    assert stage.tell("recover")[0] == 0
    state = fold(stage.events())
    assert state is not None
    assert state.ended is e.RunEnd.ABORTED


def test_a_command_costs_two_git_processes_for_the_mirror(stage: Lost):
    project = Project(stage.repo, ENVIRONMENT)
    started: list[tuple[str, ...]] = []
    with project.journals.session("plan") as session:
        for _ in range(5):
            session.note(resumed_unchanged(session.state), ended(e.RunEnd.STOPPED, "again"))
        sys.addaudithook(
            lambda event, args: (
                started.append(args[1])
                if event == "subprocess.Popen" and os.fspath(stage.repo) in str(args[2:])
                else None
            )
        )
    assert len(started) == 2, started


def unwritable(folder: Path) -> None:
    """No new object can be made, not even by root: a file stands where its folder would be."""
    for n in range(256):
        place = folder / f"{n:02x}"
        if place.is_dir():
            place.rename(folder / f"was-{n:02x}")
        place.write_text("")


def test_where_git_takes_nothing_the_command_succeeds_and_says_so(stage: Lost):
    stage.git("gc", "-q")
    unwritable(stage.repo / ".git/objects")
    mirror = stage.git("rev-parse", "refs/windlass/plan/r1/journal")
    before = stage.records()
    code, out, err = stage.tell("retry", "1.3")
    assert (code, out) == (0, "Recorded. To continue: windlass resume plan\n"), err
    assert "git did not take a copy of it" in err
    assert "the next run of plan copies it" in err
    assert len(stage.records()) == len(before) + 1
    assert stage.git("rev-parse", "refs/windlass/plan/r1/journal") == mirror


def test_a_mirror_with_more_than_the_journal_is_left_alone_and_that_is_said(stage: Lost):
    mirror = stage.git("rev-parse", "refs/windlass/plan/r1/journal")
    db = sqlite3.connect(stage.journal)
    db.execute("DELETE FROM entries WHERE seq > (SELECT max(seq) - 3 FROM entries)")
    db.commit()
    db.close()
    notices: list[str] = []
    with Project(stage.repo, ENVIRONMENT, notices.append).journals.session("plan") as session:
        session.note(ended(e.RunEnd.STOPPED, "stopped"))
    assert ["the journal of 'plan' is behind" in each for each in notices] == [True]
    assert stage.git("rev-parse", "refs/windlass/plan/r1/journal") == mirror


def test_a_mirror_that_lost_a_part_is_written_anew_by_the_recovery_from_it(stage: Lost):
    ref = "refs/windlass/plan/r1/journal"
    line = stage.git("rev-list", "--first-parent", ref).split()
    lost = line[len(line) // 2]
    (stage.repo / ".git/objects" / lost[:2] / lost[2:]).unlink()
    stage.lose()
    code, out, err = stage.tell("recover")
    assert (code, err) == (0, "")
    assert "the mirror is damaged after record" in out
    records = stage.records()
    stage.lose()
    code, out, _ = stage.tell("recover")
    assert (code, stage.records()) == (0, records)
    assert "is damaged" not in out


def test_a_session_that_is_over_records_nothing(stage: Lost):
    with Project(stage.repo, ENVIRONMENT).journals.session("plan") as session:
        pass
    before = stage.records()
    with pytest.raises(RuntimeError, match="lock is not held"):
        session.note(ended(e.RunEnd.STOPPED, "stopped"))
    with pytest.raises(RuntimeError, match="lock is not held"):
        session.restore(before)
    assert stage.records() == before


def test_after_a_recovery_the_steps_that_fit_the_run_are_named(stage: Lost):
    stage.lose()
    out = stage.tell("recover")[1]
    assert "next   windlass resume plan --retry  retry 1.3 and continue" in out
    assert stage.tell("retry", "1.3")[0] == 0
    assert quick_run(stage.repo, ScriptedAgent(DONE)).ended == "completed"
    stage.lose()
    out = stage.tell("recover")[1]
    assert "next   windlass land plan" in out
    assert "resume" not in out, "there is nothing to resume"


def test_what_was_spent_before_a_recovery_from_pins_is_called_unknown(stage: Lost):
    stage.became_older()
    stage.lose()
    assert stage.tell("recover", "plan")[0] == 0
    report = ("report", "--format", "markdown", "--output", "-")
    for command in (("status",), ("costs",), report):
        out = " ".join(stage.tell(*command, "plan")[1].split())
        assert "what was spent before the run was recovered from git is unknown" in out, command
        assert "killed" not in out, command


def test_while_somebody_else_has_the_plan_nothing_is_recovered(stage: Lost):
    stage.lose()
    with PlanLock(stage.journal.parent / "lock"):
        code, _, err = stage.tell("recover")
    assert code == 5
    assert "already running" in err
    assert not stage.journal.exists()
