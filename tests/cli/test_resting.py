"""Pause, stop and abort; where a paused run is left, and how the next command finds it again."""

import os
import pty
import subprocess
import sys
from pathlib import Path
from select import select

import anyio.to_thread
import pytest

import plans
from desk import Desk
from quick import quick_run
from waiting import eventually
from windlass.adapters.journal.inbox import send
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.adapters.locks import PlanLock
from windlass.core.events import model as e
from windlass.core.exchange import Message
from windlass.core.settings import Settings
from windlass.core.state import fold
from windlass.ports import Report
from windlass.testing.agents import ScriptedAgent

SPEC = """\
---
id: SPEC-001
type: feature
status: draft
---

# Export

## Context
Something.

## Acceptance Criteria
- it works

## Implementation Tasks

### Task Groups

| Group | Wave | Tasks | Dependencies |
|-------|------|-------|--------------|
| G1 | 1 | Write g1.txt | - |
| G2 | 2 | Write g2.txt | G1 |
| G3 | 2 | Write g3.txt | G1 |
| G4 | 3 | Write g4.txt | G2, G3 |
"""
SPEC_PATH = ".specflow/specs/SPEC-001.md"
PARTS = {f"G{n}": {f"g{n}.txt": "1"} for n in range(1, 5)}
SEQUENCE = {id_: {f"{id_}.txt": "1"} for id_ in plans.SEQUENCE}
ONE_BY_ONE = Settings(agents=1)


class Pausing(ScriptedAgent):
    """Asks for a pause while its Player works on one task, and goes on once it was heard."""

    def __init__(self, parts, repo: Path, plan: str, task: str, command: str = "pause") -> None:
        super().__init__(parts)
        self.folder = repo / ".windlass/plans" / plan
        self.task, self.command = task, command

    def _heard(self) -> bool:
        return any(isinstance(event, e.StopRequested) for event in facts(self.folder))

    async def work(self, brief, workspace, watch) -> Report:
        if brief.task == self.task and brief.role == "player":
            send(self.folder / "inbox", Message(command=self.command))
            await anyio.to_thread.run_sync(eventually, self._heard)
        return await super().work(brief, workspace, watch)


def facts(folder: Path) -> list[e.Event]:
    with SqliteJournal.read_only(folder / "journal.db") as journal:
        return [entry.event for entry in journal.read()]


def paused(desk: Desk, plan_path: str, plan: str, task: str, parts, **more) -> ScriptedAgent:
    """A run that came to rest at the end of a turn of that task."""
    agent = Pausing(parts, desk.repo, plan, task, **more)
    state = quick_run(desk.repo, agent, plan_path=plan_path, settings=ONE_BY_ONE)
    assert state.ended is e.RunEnd.PAUSED, state.reason
    return agent


def last(desk: Desk, plan: str = "plan"):
    state = fold(facts(desk.repo / ".windlass/plans" / plan))
    assert state is not None
    return state


@pytest.fixture
def spec(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.build({"README.md": "hello\n", SPEC_PATH: SPEC})
    return made


@pytest.fixture
def sequence(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.build(plans.files(plans.SEQUENCE))
    return made


class TestPause:
    def test_a_spec_is_continued_where_its_people_look(self, spec: Desk):  # S9 S10
        paused(spec, SPEC_PATH, "SPEC-001", "G2", PARTS)
        here = spec.repo / ".specflow/.continue-here"
        told = here.read_text()
        assert told.startswith("Execution paused at Wave 2, Group G3.\n")
        assert "\nPlan: SPEC-001\nRun: r1\n" in told
        assert "\nCommits: 2 completed\n" in told
        assert "- Wave 1: ✓ Complete (G1)\n- Wave 2: ⚡ In Progress\n  - G2: ✓ Complete\n" in told
        assert told.endswith("\nTo resume: windlass resume\n")
        agent = ScriptedAgent(PARTS)
        quick_run(spec.repo, agent, plan_path=SPEC_PATH)
        assert not here.exists()
        assert {b.task for b in agent.briefs} == {"G3", "G4"}, "nothing is paid for twice"

    def test_others_are_continued_in_windlass_own_folder(self, sequence: Desk):  # S9
        paused(sequence, "plan.md", "plan", "1.1", SEQUENCE)
        here = sequence.repo / ".windlass/continue-here"
        assert here.read_text().startswith("Execution paused at Task 1.2.\n")
        assert last(sequence).tasks["1.1"].merge_commit, "the turn came to its end"
        sequence.call("abort", "--yes")
        assert not here.exists()

    def test_now_keeps_what_the_player_did_so_far(self, sequence: Desk):  # S9
        paused(sequence, "plan.md", "plan", "1.1", SEQUENCE, command="pause_now")
        state = last(sequence)
        assert state.tasks["1.1"].merge_commit is None
        assert state.ended is e.RunEnd.PAUSED

    def test_of_a_run_that_died_it_is_recorded(self, sequence: Desk):
        _died(sequence)
        answer = sequence.call("pause")
        assert answer.code == 0, answer
        assert "recorded as paused" in answer.out
        assert last(sequence).ended is e.RunEnd.PAUSED
        assert (sequence.repo / ".windlass/continue-here").exists()
        answer = sequence.call("pause", "plan.md")
        assert answer.code == 2
        assert "no run of 'plan' is in progress" in answer.err

    @pytest.mark.parametrize(
        ("args", "message"),
        [(("pause",), "pause"), (("pause", "--now"), "pause_now"), (("abort", "--yes"), "abort")],
    )
    def test_a_live_run_is_told(self, sequence: Desk, args, message):
        _died(sequence)
        with PlanLock(sequence.repo / ".windlass/plans/plan/lock"):
            answer = sequence.call(*args, "plan")
        assert answer.code == 0, answer
        [file] = (sequence.repo / ".windlass/plans/plan/inbox").iterdir()
        assert f'"command":"{message}"' in file.read_text()
        assert last(sequence).ended is None

    def test_another_plans_pointer_is_never_taken_away(self, sequence: Desk):
        sequence.commit("other.md", plans.plan_text({"x": ()}))
        paused(sequence, "plan.md", "plan", "1.1", SEQUENCE)
        here = sequence.repo / ".windlass/continue-here"
        before = here.read_text()
        quick_run(sequence.repo, ScriptedAgent({"x": {"x": "1"}}), plan_path="other.md", run="r2")
        assert here.read_text() == before

    def test_what_another_tool_left_there_is_kept(self, spec: Desk):
        spec.write(".specflow/.continue-here", "by another tool\n")
        paused(spec, SPEC_PATH, "SPEC-001", "G1", PARTS)
        kept = list((spec.repo / ".specflow").glob(".continue-here.before-*"))
        assert [path.read_text() for path in kept] == ["by another tool\n"]


def _died(desk: Desk) -> None:
    """A run whose process was killed in its first turn."""
    quick_run(desk.repo, ScriptedAgent(SEQUENCE))
    events = facts(desk.repo / ".windlass/plans/plan")
    until = next(i for i, ev in enumerate(events) if isinstance(ev, e.PlayerStarted))
    for path in (desk.repo / ".windlass/plans/plan").glob("journal.db*"):
        path.unlink()
    for path in (desk.repo / ".windlass/plans/plan/runs").rglob("state.json"):
        path.unlink()
    with SqliteJournal.open(desk.repo / ".windlass/plans/plan/journal.db", _redactor()) as journal:
        journal.append(events[: until + 1], expected=0)


def _redactor():
    from windlass.core.secrets import Redactor

    return Redactor({})


class TestAbort:
    def test_it_ends_what_rests(self, sequence: Desk):  # S3
        paused(sequence, "plan.md", "plan", "1.1", SEQUENCE)
        answer = sequence.call("abort", "--yes")
        assert answer.code == 0, answer
        assert last(sequence).ended is e.RunEnd.ABORTED
        assert (
            '"status": "failed"'
            in next((sequence.repo / ".windlass/plans/plan/runs").rglob("state.json")).read_text()
        )
        answer = sequence.call("resume", "plan.md")
        assert answer.code == 2
        assert "nothing to resume" in answer.err
        assert sequence.call("abort", "plan", "--yes").code == 2


class TestPointer:
    def test_resume_follows_it_where_several_are_unfinished(self, sequence: Desk):  # S10
        sequence.commit("other.md", plans.plan_text({"x": ()}))
        quick_run(sequence.repo, ScriptedAgent({"x": {}}), plan_path="other.md", run="r2")
        paused(sequence, "plan.md", "plan", "1.1", SEQUENCE)
        with sequence.windlass("resume") as process:
            line = next(line for line in process.stderr if "RESUME" in line)  # pyright: ignore[reportOptionalIterable]
            process.terminate()
            process.communicate(timeout=60)
        assert "Resuming from Task 1.2..." in line

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("Plan: nowhere\nRun: r1\n", "names run r1 of 'nowhere', which was never run here"),
            ("Plan: ../..\nRun: r1\n", "which was never run here"),
            ("Plan: plan\nRun: old\n", "which is not the last one: the last run of it is r1"),
            ("Plan: plan\nRun: r1\n", "which is completed; ignored"),
            ("notes of mine\n", "names no plan and no run"),
        ],
    )
    def test_what_leads_nowhere_is_said_and_passed_over(self, sequence: Desk, text, said):  # S10
        quick_run(sequence.repo, ScriptedAgent(SEQUENCE))
        sequence.write(".windlass/continue-here", text)
        answer = sequence.call("resume")
        assert answer.code == 2
        assert said in answer.err
        assert "there is no unfinished run here" in answer.err

    def test_no_pipe_or_flood_in_its_place_is_read(self, sequence: Desk):
        quick_run(sequence.repo, ScriptedAgent(SEQUENCE))
        os.mkfifo(sequence.repo / ".windlass/continue-here")
        sequence.write(".specflow/.continue-here", "x" * 1_000_000)
        assert "no unfinished run" in sequence.call("resume").err


class TestAsking:
    def test_without_a_terminal_run_says_the_next_command(self, sequence: Desk):  # S4
        paused(sequence, "plan.md", "plan", "1.1", SEQUENCE)
        answer = sequence.call("run", "plan.md")
        assert answer.code == 3
        assert "is paused: 1 of 3 tasks merged; " in answer.err
        assert "; continue with `windlass resume plan.md`; " in answer.err

    def test_run_shows_the_tree_and_abort_ends_the_run(self, spec: Desk):  # S3 S4
        paused(spec, SPEC_PATH, "SPEC-001", "G2", PARTS)
        code, said = at_terminal(spec, "abort\n", "run", SPEC_PATH)
        assert "- Wave 1: ✓ Complete (G1)" in said
        assert "  - G3: ○ Pending" in said
        assert "(resume, restart, abort) [resume]" in said
        assert code == 1, said
        assert last(spec, "SPEC-001").ended is e.RunEnd.ABORTED
        assert not (spec.repo / ".specflow/.continue-here").exists()

    def test_what_failed_is_offered_and_an_interrupt_leaves_all_as_it_was(self, spec: Desk):  # S3
        parts = {**PARTS, "G3": {}}
        quick_run(
            spec.repo, ScriptedAgent(parts), plan_path=SPEC_PATH, settings=Settings(max_turns=1)
        )
        before = spec.everything()
        code, said = at_terminal(spec, "\x03", "resume", SPEC_PATH)
        assert "(retry, resume, retry-stage, abort) [retry]" in said
        assert code == 4, said
        assert spec.everything() == before

    def test_options_answer_for_scripts(self, spec: Desk):  # S3 X6
        parts = {**PARTS, "G3": {}}
        once = Settings(max_turns=1)
        quick_run(spec.repo, ScriptedAgent(parts), plan_path=SPEC_PATH, settings=once)
        answer = spec.call("resume", "SPEC-001", "--go-on")
        assert answer.code == 2
        assert "--go-on does not fit: run r1 is failed; use one of: retry, resume" in answer.err
        with spec.windlass("resume", "SPEC-001", "--retry") as process:
            folder = spec.repo / ".windlass/plans/SPEC-001"
            eventually(lambda: any(isinstance(x, e.TaskReopened) for x in facts(folder)))
            process.terminate()
            process.communicate(timeout=60)
        reopened = [x.task for x in facts(folder) if isinstance(x, e.TaskReopened)]
        assert reopened == ["G3"]

    @pytest.mark.parametrize("args", [("resume", "SPEC-001"), ("run", SPEC_PATH, "--resume")])
    def test_a_run_that_failed_does_not_go_on_unasked_to_the_same_end(self, spec: Desk, args):  # X6
        parts, once = {**PARTS, "G3": {}}, Settings(max_turns=1)
        quick_run(spec.repo, ScriptedAgent(parts), plan_path=SPEC_PATH, settings=once)
        folder = spec.repo / ".windlass/plans/SPEC-001"
        before = facts(folder)
        answer = spec.call(*args)
        assert answer.code == 3, answer.err
        for way in ("--retry`", "--retry-stage`"):
            assert f"`windlass resume {args[1]} {way}" in answer.err
        assert "--yes continues without G3" in answer.err
        assert facts(folder) == before
        assert spec.call(*args, "--yes").code == 1, "which is what was asked for"
        assert isinstance(facts(folder)[-1], e.RunEnded)
        assert len(facts(folder)) > len(before)

    def test_a_stage_once_more(self, spec: Desk):  # S3
        parts = {**PARTS, "G3": {}}
        once = Settings(max_turns=1)
        quick_run(spec.repo, ScriptedAgent(parts), plan_path=SPEC_PATH, settings=once)
        with spec.windlass("run", SPEC_PATH, "--retry-stage") as process:
            folder = spec.repo / ".windlass/plans/SPEC-001"
            eventually(lambda: any(isinstance(x, e.RunResumed) for x in facts(folder)))
            process.terminate()
            process.communicate(timeout=60)
        again = [x for x in facts(folder) if isinstance(x, e.StageRetried | e.TaskReopened)]
        assert [getattr(x, "task", "stage 2") for x in again] == ["stage 2", "G2", "G3"]

    def test_what_the_plan_does_not_have_cannot_be_asked_for(self, spec: Desk):
        for args, said in (
            (("--task", "G9"), "plan 'SPEC-001' has no task 'G9'"),
            (("--stage", "9"), "plan 'SPEC-001' has no stage '9'"),
        ):
            answer = spec.call("run", SPEC_PATH, *args)
            assert answer.code == 2
            assert said in answer.err
        assert not (spec.repo / ".windlass").exists()

    def test_a_stage_is_asked_for_by_the_tasks_in_it(self, spec: Desk):
        with spec.windlass("run", SPEC_PATH, "--stage", "2", "--task", "G1") as process:
            folder = spec.repo / ".windlass/plans/SPEC-001"
            eventually(lambda: (folder / "journal.db").exists() and facts(folder))
            process.terminate()
            process.communicate(timeout=60)
        began = facts(folder)[0]
        assert isinstance(began, e.RunStarted)
        assert began.only == ("G1", "G2", "G3")

    def test_what_mends_a_run_begins_none(self, sequence: Desk):
        quick_run(sequence.repo, ScriptedAgent(SEQUENCE))
        answer = sequence.call("run", "plan.md", "--retry")
        assert answer.code == 2
        assert "nothing to resume" in answer.err


def at_terminal(desk: Desk, typed: str, *args: str) -> tuple[int, str]:
    """A command at a terminal of its own, on which this is typed once it asks."""
    main, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "windlass", *args],
        cwd=desk.repo,
        env={**desk.environment, "TERM": "dumb"},
        stdin=side,
        stdout=side,
        stderr=side,
        start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509  nothing else runs in this process
    )
    os.close(side)
    said = b""
    try:
        while True:
            asked = b"What now?" in said or b"[y/N]" in said
            if asked and typed and not select([main], [], [], 0.5)[0]:
                # Typed while the question waits. An interrupt can fall between the question and
                # the wait for its answer, where Python loses it: a person presses it again.
                os.write(main, typed.encode())
                typed = typed if typed == "\x03" else ""
                continue
            try:
                part = os.read(main, 4096)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            said += part
        return process.wait(timeout=60), said.decode().replace("\r\n", "\n")
    finally:
        process.kill()
        process.wait()
        os.close(main)


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
