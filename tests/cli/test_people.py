"""What people do with a run that nobody hauls: land it, take a task, give it back, reset it."""

import json
import sqlite3
from pathlib import Path

import pytest

import plans
from desk import Desk
from quick import quick_run
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.adapters.locks import PlanLock
from windlass.core.events import model as e
from windlass.core.events.model import Failure
from windlass.core.settings import Settings
from windlass.testing.agents import Play, ScriptedAgent

PARTS = {"1.1": {"1.1.txt": "1"}, "1.2": {"1.2.txt": "2"}, "1.3": {"1.3.txt": "3"}}
LIMIT = Play(edits={"half.txt": "half"}, failure=Failure.AUTH, message="no key")
STAGED = """# Milestone: Stages

## Task 1.1: One
**Stage:** Phase 1: Setup
**Depends on:** none

## Task 2.1: Two
**Stage:** Phase 2: Rest
**Depends on:** none
"""


def built(desk: Desk, text: str = "") -> Desk:
    desk.commit("plan.md", text or plans.plan_text(plans.SEQUENCE))
    return desk


@pytest.fixture
def merged(desk: Desk) -> Desk:
    """A run that has completed."""
    built(desk)
    assert quick_run(desk.repo, ScriptedAgent(PARTS)).ended == "completed"
    return desk


@pytest.fixture
def paused(desk: Desk) -> Desk:
    """A run whose second task was cut short, by a limit that stopped the run."""
    built(desk)
    assert quick_run(desk.repo, ScriptedAgent({**PARTS, "1.2": LIMIT})).ended == "limit"
    return desk


def events(desk: Desk) -> list[e.Event]:
    with SqliteJournal.read_only(desk.repo / ".windlass/plans/plan/journal.db") as journal:
        return [entry.event for entry in journal.read()]


def status(desk: Desk, task: str) -> str:
    return json.loads(desk.call("status", "plan", "--json").out)["tasks"][task]["status"]


class TestLand:
    def test_it_lands_the_only_run_there_is(self, merged: Desk):  # G7
        answer = merged.call("land")
        tip = merged.git("rev-parse", "windlass/plan/integration").strip()
        assert answer.code == 0, answer.err
        assert answer.out == f"main is now at {tip[:10]}.\n"
        assert "LANDED" in answer.err
        assert merged.git("rev-parse", "main").strip() == tip
        assert (merged.repo / "1.3.txt").read_text() == "3"

    def test_it_needs_no_key(self, merged: Desk):
        assert merged.call("land", without=["ANTHROPIC_API_KEY"]).code == 0

    def test_a_second_time_says_that_it_is_there(self, merged: Desk):
        merged.call("land")
        answer = merged.call("land", "plan.md")
        assert answer.code == 0
        assert "main already has all of it" in answer.out
        assert merged.call("land").code == 2, "and there is no other"

    def test_a_refusal_is_for_a_person_and_says_the_cure(self, merged: Desk):
        merged.write("1.2.txt", "mine")
        answer = merged.call("land")
        assert (answer.code, answer.out) == (3, "")
        assert "1.2.txt" in answer.err
        assert "then `windlass land`" in answer.err
        assert "needs_human" in merged.call("status", "plan").out
        (merged.repo / "1.2.txt").unlink()
        assert merged.call("land").code == 0
        assert "completed" in merged.call("status", "plan").out

    def test_a_conflict_names_the_cure_and_the_cure_works(self, merged: Desk):  # G7
        merged.commit("1.1.txt", "mine")
        answer = merged.call("land", "plan")
        assert answer.code == 3
        cure = "git merge windlass/plan/integration"
        assert f"merge it by hand on main: `{cure}`, then `windlass land plan`" in answer.err
        merged.git(*cure.split()[1:], "--quiet", "--strategy-option=theirs")
        answer = merged.call("land", "plan")
        assert answer.code == 0, answer.err
        assert "main already has all of it" in answer.out

    def test_a_branch_that_is_gone_names_the_cure_and_the_cure_works(self, merged: Desk):  # G7
        merged.git("switch", "--quiet", "--create", "other")
        merged.git("branch", "--quiet", "-D", "main")
        answer = merged.call("land", "plan")
        assert answer.code == 3
        cure = "git branch main windlass/plan/integration"
        assert f"main was not moved: the branch is gone; `{cure}` creates it again" in answer.err
        merged.git(*cure.split()[1:])
        assert merged.call("land", "plan").code == 0

    def test_a_branch_that_was_put_back_is_filled_again_only_at_a_word_for_it(
        self, desk: Desk
    ):  # G7
        desk.commit("second.txt", "2")
        built(desk)
        assert quick_run(desk.repo, ScriptedAgent(PARTS)).ended == "completed"
        desk.git("reset", "--quiet", "--hard", "HEAD~2")
        back = desk.git("rev-parse", "main")
        answer = desk.call("land", "plan")
        assert answer.code == 3, answer.err
        assert "main was not moved: it was put back behind" in answer.err
        assert "`windlass land plan --yes`" in answer.err
        assert desk.git("rev-parse", "main") == back
        assert desk.call("land", "plan", "--yes").code == 0
        assert desk.git("show", "main:second.txt") == "2"

    def test_a_run_that_no_branch_began_stays_as_it_is(self, desk: Desk):
        built(desk)
        desk.git("checkout", "--quiet", "--detach")
        assert quick_run(desk.repo, ScriptedAgent(PARTS)).ended == "completed"
        before = events(desk)
        for args in ([], ["plan"]):
            answer = desk.call("land", *args)
            assert (answer.code, answer.out) == (2, "")
            assert answer.err.endswith(": git merge windlass/plan/integration\n"), answer.err
        assert events(desk) == before

    def test_what_is_merged_of_an_unfinished_run_lands_too(self, paused: Desk):
        answer = paused.call("land", "plan")
        assert answer.code == 0, answer.err
        assert "2 tasks of plan not merged yet" in answer.err
        assert (paused.repo / "1.1.txt").exists()
        ended = [event for event in events(paused) if isinstance(event, e.RunEnded)]
        assert [event.status for event in ended] == ["limit", "limit"], "it stays as it was"

    def test_nothing_merged_is_said_and_nothing_is_changed(self, desk: Desk):
        built(desk)
        quick_run(desk.repo, ScriptedAgent({"1.1": LIMIT}))
        before = desk.everything()
        answer = desk.call("land", "plan")
        assert answer.code == 2
        assert "no task of 'plan' is merged" in answer.err
        assert desk.everything() == before
        assert desk.call("land").code == 2

    def test_a_live_run_is_not_landed_beside(self, merged: Desk):
        with PlanLock(merged.repo / ".windlass/plans/plan/lock"):
            answer = merged.call("land", "plan")
        assert answer.code == 5
        assert "already running" in answer.err

    def test_a_plan_that_was_never_run_is_said(self, desk: Desk):
        assert desk.call("land", "plan.md").code == 2
        assert "no run here has something to land" in desk.call("land").err

    def test_several_that_could_land_are_named(self, merged: Desk):
        merged.commit("other.md", plans.plan_text({"z": ()}))
        done = quick_run(merged.repo, ScriptedAgent({"z": {"z.txt": "z"}}), plan_path="other.md")
        assert done.ended == "completed"
        answer = merged.call("land")
        assert answer.code == 2
        assert "other, plan" in answer.err
        assert merged.call("land", "other").code == 0
        assert merged.call("land").code == 0, "the one that is left, merged with what has landed"
        assert (merged.repo / "z.txt").exists()
        assert (merged.repo / "1.3.txt").exists()


class TestTake:
    def test_the_workspace_is_printed_with_all_that_was_done_in_it(self, paused: Desk):  # B8
        answer = paused.call("take", "1.2")
        assert answer.code == 0, answer.err
        workspace = Path(answer.out.strip())
        assert (workspace / "half.txt").read_text() == "half"
        assert (workspace / "1.1.txt").read_text() == "1"
        assert "windlass give plan:1.2" in answer.err
        assert "windlass resume plan" in answer.err
        assert status(paused, "1.2") == "needs_human"
        shown = json.loads(
            next(paused.repo.glob(".windlass/plans/plan/runs/*/state.json")).read_text()
        )
        assert shown["tasks"]["1.2"]["status"] == "needs_human", "the state files say so too"

    def test_status_says_what_is_waited_for_and_the_command(self, paused: Desk):
        paused.call("take", "1.2")
        lines = [line.strip() for line in paused.call("status").out.splitlines()]
        where = next(n for n, line in enumerate(lines) if line.startswith("needs_human"))
        assert lines[where + 1 : where + 3] == ["Ada works on it", "windlass give plan:1.2"]

    def test_it_is_given_back_and_goes_on(self, paused: Desk):  # B8
        workspace = Path(paused.call("take", "1.2").out.strip())
        (workspace / "1.2.txt").write_text("by hand")
        answer = paused.call("give", "1.2", "--message", "Did it.")
        assert answer.code == 0, answer.err
        given = next(event for event in events(paused) if isinstance(event, e.TaskGiven))
        assert (given.summary, given.by) == ("Did it.", "Ada")
        agent = ScriptedAgent(PARTS)
        assert quick_run(paused.repo, agent).ended == "completed"
        assert [b.task for b in agent.briefs if b.role == "player"] == ["1.3"]
        assert paused.git("show", "windlass/plan/integration:1.2.txt") == "by hand"

    def test_a_task_that_nobody_began_can_be_taken_once_it_is_free(self, desk: Desk):
        built(desk)
        quick_run(desk.repo, ScriptedAgent({"1.1": LIMIT}))
        assert desk.call("take", "1.2").code == 2, "it waits for another"
        assert desk.call("take", "1.1").code == 0

    def test_a_run_that_died_in_the_middle_of_a_turn(self, paused: Desk):
        """It is taken over first, as a resume would, and laid to rest again."""
        _forget_after(paused, e.PlayerStarted, task="1.2")
        answer = paused.call("take", "1.2")
        assert answer.code == 0, answer.err
        assert (Path(answer.out.strip()) / "half.txt").exists()
        names = [type(event).__name__ for event in events(paused)][-3:]
        assert names == ["RunResumed", "TaskTaken", "RunEnded"]
        assert status(paused, "1.2") == "needs_human"

    def test_what_was_recorded_and_not_prepared_is_prepared_by_the_next(self, paused: Desk):  # B4
        workspace = Path(paused.call("take", "1.2").out.strip())
        (paused.repo / ".windlass/plans/plan/private/1.2/prepared.json").unlink()
        answer = paused.call("take", "1.2")
        assert answer.code == 0, answer.err
        assert Path(answer.out.strip()) == workspace
        assert "Ada has taken" in answer.err

    @pytest.mark.parametrize(
        ("task", "why"),
        [
            ("1.1", "it is merged; windlass retry plan:1.1"),
            ("1.3", "it needs 1.2, not merged yet; take 1.2 first"),
            ("9.9", "no plan that was run here has a task '9.9'"),
        ],
    )
    def test_what_cannot_be_taken_is_refused_and_told_why(self, paused: Desk, task: str, why: str):
        before = events(paused)
        answer = paused.call("take", task)
        assert answer.code == 2
        assert why in answer.err
        assert events(paused) == before

    def test_nothing_is_recorded_where_git_lacks_what_the_journal_speaks_of(self, paused: Desk):
        # B8 S7
        tip = paused.git("rev-parse", "refs/windlass/plan/r1/tip").strip()
        lost = paused.repo / ".git/objects" / tip[:2] / tip[2:]
        lost.rename(paused.root / "lost")
        before = events(paused)
        answer = paused.call("take", "1.2")
        assert answer.code == 2
        assert f"git has lost {tip[:10]}" in answer.err
        assert events(paused) == before
        (paused.root / "lost").rename(lost)
        assert paused.call("take", "1.2").code == 0

    def test_what_was_not_taken_cannot_be_given(self, paused: Desk):
        assert paused.call("give", "1.2").code == 2


class TestRetry:
    def test_what_was_merged_stays_merged_until_it_is_replaced(self, paused: Desk):  # X6 G7
        assert paused.call("retry", "1.1", "--yes").code == 0
        told = json.loads(paused.call("status", "plan", "--json").out)
        assert told["metrics"]["merges"] == 1, "the tip holds it"
        answer = paused.call("land", "plan")
        assert answer.code == 0, answer.err
        assert paused.git("show", "main:1.1.txt") == "1"

    def test_every_merge_is_counted_that_git_holds(self, merged: Desk):  # X6 X9
        assert merged.call("retry", "1.3", "--yes").code == 0
        again = quick_run(merged.repo, ScriptedAgent({"1.3": {"1.3.txt": "again"}}))
        assert again.ended == "completed"
        in_git = merged.git("rev-list", "--count", "--merges", "main..windlass/plan/integration")
        told = json.loads(merged.call("status", "plan", "--json").out)
        assert told["metrics"]["merges"] == int(in_git) == 4

    def test_where_nothing_is_to_change_what_was_merged_stands(self, merged: Desk):  # X6
        assert merged.call("retry", "1.2", "--yes").code == 0
        assert quick_run(merged.repo, ScriptedAgent(PARTS)).ended == "completed"
        stands = [event for event in events(merged) if isinstance(event, e.MergeStands)]
        assert [event.task for event in stands] == ["1.2"]


class TestGivenUp:
    def test_nothing_that_is_said_wakes_it(self, paused: Desk):  # S3
        assert paused.call("abort", "plan", "--yes").code == 0
        before = events(paused)
        said = ("reset", "retry", "take", "give", "approve")
        for args in (*((command, "1.2") for command in said), ("answer", "1.2", "yes")):
            answer = paused.call(*args)
            assert answer.code == 2, args
            assert "was aborted, and cannot be continued" in answer.err
            assert "start a new one: windlass run plan" in answer.err
        assert events(paused) == before

    def test_nor_where_its_last_process_died_in_the_middle_of_a_turn(self, paused: Desk):  # S3
        _forget_after(paused, e.PlayerStarted, task="1.2")
        assert paused.call("abort", "plan", "--yes").code == 0
        assert "was aborted" in paused.call("reset", "1.2").err
        assert isinstance(events(paused)[-1], e.RunEnded)

    def test_what_was_merged_lands_and_it_stays_given_up(self, paused: Desk):  # S3 G7
        assert paused.call("abort", "plan", "--yes").code == 0
        assert paused.call("land", "plan").code == 0
        ended = events(paused)[-1]
        assert isinstance(ended, e.RunEnded)
        assert ended.status is e.RunEnd.ABORTED


class TestReset:
    def test_it_begins_anew_and_the_old_work_is_kept(self, paused: Desk):  # X8
        assert paused.call("reset", "1.2").code == 0
        assert status(paused, "1.2") == "pending"
        assert quick_run(paused.repo, ScriptedAgent(PARTS)).ended == "completed"
        assert "half.txt" not in paused.git("ls-tree", "-r", "windlass/plan/integration")
        [kept] = (paused.repo / ".windlass/plans/plan/kept").iterdir()
        assert (kept / "half.txt").exists()

    def test_it_can_be_undone_until_somebody_begins(self, paused: Desk):  # X8
        was = status(paused, "1.2")
        assert paused.call("reset", "plan:1.2").code == 0
        assert paused.call("reset", "1.2", "--undo").code == 0
        assert status(paused, "1.2") == was
        assert paused.call("reset", "1.2", "--undo").code == 2
        agent = ScriptedAgent(PARTS)
        assert quick_run(paused.repo, agent).ended == "completed"
        assert "half.txt" in paused.git("ls-tree", "-r", "windlass/plan/integration")

    def test_undone_it_leaves_the_run_as_it_had_ended(self, merged: Desk):  # X8
        before = merged.call("status", "plan").out
        assert merged.call("reset", "1.2").code == 0
        assert "1.2 is to be redone" in merged.call("status", "plan").out
        assert merged.call("reset", "1.2", "--undo").code == 0
        assert merged.call("status", "plan").out == before

    def test_a_run_that_died_in_the_middle_of_a_turn(self, paused: Desk):
        _forget_after(paused, e.PlayerStarted, task="1.2")
        assert paused.call("reset", "1.2").code == 0
        assert status(paused, "1.2") == "pending"

    def test_the_option_refuses_what_it_cannot_do(self, paused: Desk):
        for args in (("9.9",), ("1.3",), ("1.2", "--retry")):
            assert paused.call("resume", "--reset-task", *args).code == 2
        assert paused.call("run", "plan.md", "--restart", "--reset-task", "1.2").code == 2

    def test_a_finished_run_is_opened_for_it(self, merged: Desk):
        assert merged.call("reset", "1.3").code == 0
        assert status(merged, "1.3") == "pending"
        assert (
            quick_run(merged.repo, ScriptedAgent({"1.3": {"1.3.txt": "again"}})).ended
            == "completed"
        )
        assert merged.git("show", "windlass/plan/integration:1.3.txt") == "again"


class TestStages:
    @pytest.fixture
    def unverified(self, desk: Desk) -> Desk:
        """A run that waits for a person, for its first stage did not verify."""
        built(desk, STAGED)
        parts = {"1.1": {"bad.py": "def f(:\n"}, "2.1": {"2.txt": "2"}}
        done = quick_run(desk.repo, ScriptedAgent(parts), settings=Settings(barrier=True))
        assert done.ended == "needs_human", done.reason
        assert "bad.py:1" in done.reason
        return desk

    @pytest.mark.parametrize(
        "typed", ["Phase 1: Setup", "plan:Phase 1: Setup", "plan.md:Phase 1: Setup"]
    )
    def test_a_stage_is_let_pass_by_its_name(self, unverified: Desk, typed: str):  # S6
        answer = unverified.call("approve", typed)
        assert answer.code == 0, answer.err
        passed = [event for event in events(unverified) if isinstance(event, e.StagePassed)]
        assert [(event.stage, event.by) for event in passed] == [("Phase 1: Setup", "Ada")]
        told = unverified.call("status", "plan").out
        assert "did not verify" not in told, "which was answered"
        assert "stage Phase 1: Setup was passed by Ada" in told

    def test_it_lands_only_at_a_word_for_it(self, unverified: Desk):  # S6 G7
        main = unverified.git("rev-parse", "main")
        answer = unverified.call("land", "plan")
        assert answer.code == 3, answer.err
        assert "main was not moved: stage Phase 1: Setup did not verify; " in answer.err
        for command in ("approve", "retry"):
            assert f"`windlass {command} 'plan:Phase 1: Setup'`" in answer.err
        assert unverified.git("rev-parse", "main") == main
        assert unverified.call("land", "plan", "--yes").code == 0
        assert unverified.git("rev-parse", "main") != main

    def test_a_stage_that_is_shown_can_be_named_where_none_waits_for_it(self, desk: Desk):  # S3
        built(desk, STAGED)
        parts = {"1.1": {"1.txt": "1"}, "2.1": {"2.txt": "2"}}
        assert quick_run(desk.repo, ScriptedAgent(parts)).ended == "completed"
        assert "Phase 1: Setup" in desk.call("status", "plan").out
        answer = desk.call("retry", "Phase 1: Setup", "--yes")
        assert answer.code == 0, answer.err
        reopened = [event for event in events(desk) if isinstance(event, e.TaskReopened)]
        assert [event.task for event in reopened] == ["1.1"]
        assert quick_run(desk.repo, ScriptedAgent(parts)).ended == "completed"

    def test_a_stage_is_done_once_more_and_told_why(self, unverified: Desk):  # S3 S6
        assert unverified.call("retry", "Phase 1: Setup").code == 0
        agent = ScriptedAgent({"1.1": {"bad.py": "def f(): ...\n"}, "2.1": {"2.txt": "2"}})
        done = quick_run(unverified.repo, agent, settings=Settings(barrier=True))
        assert done.ended == "completed", done.reason
        assert "bad.py:1" in agent.briefs[0].prompt

    @pytest.mark.parametrize("typed", ["Phase 2: Rest", "plan:Phase 2: Rest"])
    def test_a_stage_that_waits_for_nothing_is_refused(self, unverified: Desk, typed: str):
        for command in ("approve", "retry"):
            answer = unverified.call(command, typed)
            assert answer.code == 2
            assert "stage 'Phase 2: Rest' does not wait" in answer.err

    def test_what_is_neither_is_said(self, unverified: Desk):
        assert (
            "no plan that was run here has a task or stage 'nope'"
            in unverified.call("retry", "nope").err
        )
        assert (
            "plan 'plan' has no task or stage 'nope'" in unverified.call("retry", "plan:nope").err
        )
        assert (
            "plan 'plan' has no task 'Phase 1: Setup'"
            in unverified.call("take", "plan:Phase 1: Setup").err
        )


def _forget_after(desk: Desk, kind: type[e.Event], *, task: str) -> None:
    """Let the journal end with that fact of the task, as if its process had died then."""
    last = max(
        i for i, event in enumerate(events(desk), 1)
        if isinstance(event, kind) and getattr(event, "task", "") == task
    )  # fmt: skip
    with sqlite3.connect(desk.repo / ".windlass/plans/plan/journal.db") as journal:
        journal.execute("DELETE FROM entries WHERE seq > ?", (last,))
    for path in desk.repo.glob(".windlass/plans/plan/runs/*/state.json"):
        path.unlink()  # or it would be seen that the journal was cut
    for ref in desk.git("for-each-ref", "--format=%(refname)", "refs/windlass").split():
        # The mirror of the journal is never ahead of it; one that is would show the cut.
        if ref.endswith((f"/task/{task}/1/partial", "/journal")):
            desk.git("update-ref", "-d", ref)
