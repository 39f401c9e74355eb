"""The cause of a failure in every view, and no two views that contradict each other."""  # B16

import pytest
from msgspec.structs import replace

from recorded_run import RecordedRun
from windlass.core.events import model as e
from windlass.core.events.review import Issue, Review, TestResults
from windlass.core.exchange import task_of
from windlass.core.plan import Stage, Task
from windlass.core.scheduler.failures import step
from windlass.core.scheduler.gate import could_not_start, not_started
from windlass.core.scheduler.turns import steps
from windlass.core.settings import Settings
from windlass.core.state import Phase
from windlass.errors import SetupFailed
from windlass.ports import Activity
from windlass.views.activity import setup_line
from windlass.views.board import Screen, board, heartbeat
from windlass.views.closing import closing
from windlass.views.lines import ALL, Room, is_unchecked, not_passed, red_lines
from windlass.views.outcome import run_status
from windlass.views.report.gather import report_of
from windlass.views.report.markdown import markdown
from windlass.views.report.model import Report
from windlass.views.report.page import page
from windlass.views.steps import choices, how_to_go_on, unfinished
from windlass.views.story import line_of
from windlass.views.task_page import task_page
from worlds import NOON, World, plan_of, with_policy, writes

FAIL = e.Outcome.FAIL
SETUP = e.SetupFailure(command="npm ci", exit_code=127, output="npm: not found\nstopped")
A = Task(id="a", title="First", checks=("own check",))
B = Task(id="b", title="Second", max_turns=3)


def unable(command: str, **more: object) -> e.CheckResult:
    return e.CheckResult(
        command=command,
        outcome=e.Outcome.ABSENT,
        absence=e.Absence.UNABLE_TO_START,
        **more,  # pyright: ignore[reportArgumentType]
    )


def red_base(*results: e.CheckResult, ends: e.RunEnd = e.RunEnd.NEEDS_HUMAN) -> RecordedRun:
    return RecordedRun(A).record(
        e.BaselineStarted(at=NOON, commit="b", checks=tuple(r.command for r in results)),
        e.BaselineFinished(at=NOON, commit="b", results=results),
        e.RunEnded(at=NOON, status=ends, reason="the base itself does not pass: `t`"),
    )


def reported(run: RecordedRun) -> Report:
    entries = [e.Entry(seq=n, event=event) for n, event in enumerate(run.events, 1)]
    report = report_of(entries, plan="p.md", workspaces="w")
    assert report is not None
    return report


class TestSetup:
    @pytest.mark.parametrize(
        ("more", "how"),
        [
            ({"exit_code": 1}, "failed with exit code 1"),
            ({"exit_code": None}, "could not start"),
            ({"timed_out": True, "seconds": 1800.0}, "did not end within 1800 s"),
        ],
    )
    def test_a_sentence_says_how_it_failed(self, more: dict[str, object], how: str):
        failed = e.SetupFailure(command="npm ci", **more)  # pyright: ignore[reportArgumentType]
        assert failed.sentence == f"setup command `npm ci` {how}"

    def test_the_fact_has_all_that_the_error_had(self):
        error = SetupFailed("x", command="npm ci", exit_code=127, output="npm: not found\nstopped")
        assert e.SetupFailure.of(error) == SETUP

    def test_it_is_told_once_for_all_checks_that_could_not_start(self):
        results = (unable("t", setup=SETUP), unable("u", setup=SETUP))
        assert not_passed(results) == (
            "setup command `npm ci` failed with exit code 127",
            "  npm: not found",
            "  stopped",
            "`t` did not run",
            "`u` did not run",
        )
        assert len(not_passed(results, outputs=False)) == 3

    def test_a_person_is_asked_with_its_output(self):
        results = (unable("t", setup=SETUP), unable("u", setup=SETUP))
        assert could_not_start(results) == (
            "`t`, `u` could not start here: setup command `npm ci` failed with exit code 127; mend "
            "[workspace] setup in windlass.toml, or install what is missing\n"
            "    npm: not found\n    stopped"
        )
        assert not_started([unable("t", exit_code=127)]).startswith(
            "`t` could not start here (exit code 127); install"
        )
        assert not_started([unable("t")]).startswith("`t` could not start here; install")

    @pytest.mark.parametrize("role", ["Player", "Coach"])
    def test_an_agent_that_could_not_be_set_up_says_why(self, role: str):
        run = RecordedRun(A).opened().play("a")
        if role == "Player":
            failed: e.Event = e.PlayerFailed(
                at=NOON,
                task="a",
                n=1,
                failure=e.Failure.ENVIRONMENT,
                message=f"{SETUP.sentence}: stopped; mend it",
                usage=e.Usage(),
                setup=SETUP,
            )
            run.record(failed)
        else:
            failed = e.CoachFailed(
                at=NOON,
                task="a",
                n=1,
                k=1,
                failure=e.Failure.ENVIRONMENT,
                message=f"{SETUP.sentence}: stopped; mend it",
                usage=e.Usage(),
                setup=SETUP,
            )
            run.finish("a").checked("a")
            run.record(e.CoachStarted(at=NOON, task="a", n=1, k=1, commit="c"), failed)
        line = line_of(failed, run.now)
        assert line is not None
        assert line.text.endswith("environment · turn 1 goes on")
        assert line.details == (
            "setup command `npm ci` failed with exit code 127: stopped; mend it",
            "  npm: not found",
            "  stopped",
        )
        task = replace(run.now.tasks["a"], failures={e.Failure.ENVIRONMENT: 3})
        ended = task.failed
        assert ended is not None
        asked = step(task, ended, role, NOON)
        assert isinstance(asked, e.HelpNeeded)
        assert asked.question.endswith("mend it\n    npm: not found\n    stopped")
        shown = "\n".join(line for each in task_page(run.now, "a") for line in each.details)
        assert "npm: not found" in shown
        report = reported(run)
        assert "npm: not found" in page(report)
        assert "no turn used" not in page(report)

    def test_the_screen_names_the_command_that_runs_and_then_its_time(self):
        run = RecordedRun(A).record(e.BaselineStarted(at=NOON, commit="b", checks=("t",)))
        begun = Activity(task="", kind="setup", text="npm ci")
        assert setup_line(begun, run.now).text == "base · `npm ci` runs"
        assert setup_line(begun, None).text == "base · `npm ci` runs"
        run.add_activity("", "npm ci", kind="setup")
        assert self.row(run) == ("base", "setup", "npm ci")
        assert "base" in heartbeat(run.now, run.views, NOON)
        run.add_activity("", "npm ci", kind="setup", took=2.5)
        assert self.row(run) == ("base", "checks", "t")
        run.record(e.BaselineFinished(at=NOON, commit="b", results=())).play("a")
        run.add_activity("a", "npm ci", kind="setup")
        assert self.row(run) == ("a First", "setup", "npm ci")
        ended = Activity(task="a", kind="setup", text="npm ci", took=2.5)
        line = setup_line(ended, run.now)
        assert (line.word, line.text, line.took) == ("SETUP", "a First · `npm ci`", 2.5)
        unknown = Activity(task="gone", kind="setup", text="npm ci")
        assert setup_line(unknown, run.now).text == "gone · `npm ci` runs"
        run.add_activity("gone", "npm ci", kind="setup")
        assert "gone" not in run.views

    def row(self, run: RecordedRun) -> tuple[str, str, str]:
        """The name, the word and the detail of the first row below the title."""
        pieces = board(run.now, run.views, NOON, Screen(columns=100, rows=24))[1].pieces
        texts = [text.strip() for _, text in pieces]
        return texts[1], texts[3], texts[-1]

    @pytest.mark.parametrize(
        ("label", "task"),
        [
            ("1.1-1", "1.1"),
            ("1.1-12-merged", "1.1"),
            ("1.1-1-coach-2", "1.1"),
            ("a-1-2", "a-1"),
            ("base", ""),
            ("tip", ""),
        ],
    )
    def test_a_checkout_is_labelled_with_its_task(self, label: str, task: str):
        assert task_of(label) == task


class TestRedBase:
    RED = e.CheckResult(command="t", outcome=FAIL, exit_code=2, output="boom")
    LATE = e.CheckResult(
        command="t", outcome=e.Outcome.ABSENT, absence=e.Absence.TIMED_OUT, seconds=30
    )

    def test_every_place_shows_what_was_red(self):
        state = red_base(self.RED).now
        assert red_lines(state) == ("`t` fail · exit code 2", "  boom")
        assert "  boom" in unfinished(state)
        [line, *_] = closing(state, plan="p.md", workspaces="w")
        assert (line.word, line.details) == ("RED", ("`t` fail · exit code 2", "  boom"))
        assert red_lines(red_base(self.LATE).now) == ("`t` timed out after 30s",)

    def test_it_is_not_shown_once_a_person_has_accepted_it(self):
        state = red_base(self.RED).now
        accepted = replace(state, settings=with_policy(state.settings, red_base="go"))
        assert red_lines(accepted) == ()
        assert red_lines(replace(state, ended=None)) == ()

    def test_what_to_do_does_not_end_the_same_way_again(self):
        state = red_base(self.RED).now
        assert "stop again at the base" in choices(state)[0].text
        how = how_to_go_on(state, "p.md")
        assert "windlass run p.md --restart" in how
        assert "windlass resume p.md --red-base go" in how

    def test_the_sum_does_not_say_that_there_were_no_checks(self):
        told = closing(red_base(self.RED).now, plan="p.md", workspaces="w")
        [summary] = [line for line in told if line.word == "Summary"]
        assert "0 turns, 0 returned · checks 1 fail on the base" in summary.details
        report = reported(red_base(self.RED))
        assert "0 returned; checks: 1 fail on the base" in markdown(report)
        assert "1 fail on the base" in page(report)

    def test_a_red_tip_is_shown_too(self):
        world = World(plan_of(A), {"a": writes("a", "x")}, settings=Settings(checks=("t",)))
        world.go()
        red = replace(world.state, ended=e.RunEnd.NEEDS_HUMAN, verification=(self.RED,))
        assert red_lines(red) == ("`t` fail · exit code 2", "  boom")
        [line, *_] = closing(red, plan="p.md", workspaces="w")
        assert line.text == "the tip itself does not pass"
        assert run_status(red) == "needs_human"


class TestChecks:
    LONG = e.CheckResult(
        command="t", outcome=FAIL, exit_code=1, output="\n".join(f"line {n}" for n in range(30))
    )

    def test_a_screen_shows_the_end_of_a_plain_output_and_where_the_rest_is(self):
        shown = not_passed((self.LONG,), Room("windlass log p:a", 3))
        assert shown == (
            "`t` fail · exit code 1",
            "  line 27",
            "  line 28",
            "  line 29",
            "  … 27 more lines: windlass log p:a",
        )
        assert len(not_passed((self.LONG,), ALL)) == 31

    def test_work_that_checks_return_is_told_by_what_they_printed(self):
        run = RecordedRun(A).opened().play("a").finish("a")
        run.record(
            e.ChecksStarted(at=NOON, task="a", commit="c", tree="c", checks=("t",)),
            e.ChecksFinished(at=NOON, task="a", commit="c", tree="c", results=(self.LONG,)),
        )
        back = e.TurnReturned(
            at=NOON, task="a", cause="checks", feedback="Check `t` failed.\n    x"
        )
        run.record(back)
        short, whole = line_of(back, run.now), line_of(back, run.now, whole=True)
        assert short is not None
        assert whole is not None
        assert short.details[1] == "  line 24"
        assert whole.details == ("Check `t` failed.", "    x")

    def test_a_run_with_any_check_is_not_called_unchecked(self):
        state = RecordedRun(Task(id="a", title="A")).now
        bare = replace(state, settings=replace(state.settings, checks=()))
        assert is_unchecked(bare)
        staged = replace(bare.plan, stages=(Stage(name="one", checks=("make gate",)),))
        assert not is_unchecked(replace(bare, plan=staged))
        ran = e.CheckResult(command="t", outcome=e.Outcome.PASS)
        assert not is_unchecked(replace(bare, evidence={"tree": {"t": ran}}))
        assert not is_unchecked(replace(bare, baseline=(ran,)))


class TestLongTexts:
    def test_a_summary_that_a_screen_folded_is_whole_at_the_end(self):
        long = "\n".join(f"word {n}" for n in range(50))
        world = World(plan_of(A), {"a": writes("a", "x")}, settings=Settings(checks=("t",)))
        world.go()
        task = world.state.tasks["a"]
        told = replace(task, attempts=(replace(task.last, summary=long),))
        [line, *_] = closing(replace(world.state, tasks={"a": told}), plan="p.md", workspaces="w")
        assert (line.word, line.text) == ("DONE", "a First")
        assert line.details == tuple(long.splitlines())

    def test_a_long_answer_of_a_person_is_told_below(self):
        run = RecordedRun(A).opened().play("a")
        said = e.Answered(at=NOON, task="a", text="use Redis\nand no other", by="ada")
        line = line_of(said, run.now)
        assert line is not None
        assert (line.text, line.details) == ("a First", ("use Redis", "and no other"))


class TestTurns:
    def test_a_choice_names_the_turns_that_each_task_gets(self):
        state = RecordedRun(A, B, Task(id="c", title="Third"), max_turns=2).opened().now
        lost = {id_: replace(each, phase=Phase.ABANDONED) for id_, each in state.tasks.items()}
        index = replace(state.index, abandoned=("a", "b", "c"))
        ended = replace(state, tasks=lost, index=index, ended=e.RunEnd.FAILED)
        [again, *_] = choices(ended)
        assert again.text == "give a, c another 2 turns and b another 3 turns, and continue"

    def test_a_task_that_was_reopened_counts_all_its_turns_when_it_is_given_up(self):
        run = RecordedRun(A, max_turns=1).opened().play("a").finish("a").checked("a")
        run.record(e.TurnReturned(at=NOON, task="a", cause="review", feedback="no"))
        task = replace(run.now.tasks["a"], turn=3, first_turn=2)
        [given_up] = steps(replace(run.now, tasks={"a": task}), NOON)
        assert isinstance(given_up, e.TaskAbandoned)
        assert given_up.reason == "not approved after 2 turns: no"


class TestTaskPage:
    def test_a_task_that_never_began(self):
        bare = RecordedRun(B).opened().now
        unchecked = replace(bare, settings=replace(bare.settings, checks=()))
        assert [line.word for line in task_page(unchecked, "b")] == ["task", "status"]
        [task, status, checks] = task_page(RecordedRun(A).opened().now, "a")
        assert (task.word, task.text) == ("task", "a First")
        assert (status.word, status.text) == ("status", "pending")
        assert checks.text == "`pytest -q`"
        assert checks.details == ("`own check`",)

    def test_everything_that_was_said_of_it_is_whole(self):
        long = "\n".join(f"word {n}" for n in range(50))
        run = RecordedRun(A, B).opened().play("a")
        run.record(
            e.PlayerFinished(at=NOON, task="a", n=1, summary=long, usage=e.Usage(), question=long),
            e.SnapshotStarted(at=NOON, task="a", n=1, kind="snapshot"),
            e.SnapshotTaken(
                at=NOON, task="a", n=1, kind="snapshot", commit="c" * 40, tree="c", changed=True
            ),
            e.ChecksStarted(at=NOON, task="a", commit="c", tree="c", checks=("t",)),
            e.ChecksFinished(at=NOON, task="a", commit="c", tree="c", results=(TestChecks.LONG,)),
            e.CoachStarted(at=NOON, task="a", n=1, k=1, commit="c"),
            e.CoachAnswered(
                at=NOON, task="a", n=1, k=1, commit="c", review=_review(long), usage=e.Usage()
            ),
            e.TurnReturned(at=NOON, task="a", cause="review", feedback=long),
        )
        run.play("a", n=2, turn=2)
        run.record(
            e.PlayerFinished(at=NOON, task="a", n=2, summary="again", usage=e.Usage()),
            e.SnapshotStarted(at=NOON, task="a", n=2, kind="snapshot"),
            e.SnapshotRefused(at=NOON, task="a", n=2, reason="a secret"),
            e.TurnReturned(at=NOON, task="a", cause="refused", feedback="a secret"),
            e.HelpNeeded(at=NOON, task="a", question=long),
        )
        lines = task_page(run.now, "a")
        words = [line.word for line in lines]
        assert words == [
            *("task", "status", "checks", "asks", "turn 1", "asked", "checks", "Coach"),
            *("returned", "turn 2", "refused", "returned", "next"),
        ]
        for line in lines:
            if line.word in {"asks", "asked", "turn 1", "returned"} and line.text != "a secret":
                assert line.details[-1] == "word 49", line.word
        [coach] = [line for line in lines if line.word == "Coach"]
        assert "must_fix: a.py: broken" in coach.details
        assert "nice_to_have: fine" in coach.details

    def test_merged_blocked_given_up_and_tried(self):
        world = World(plan_of(A), {"a": writes("a", "x")}, settings=Settings(checks=("t",)))
        world.go()
        [_, status, *_] = task_page(world.state, "a")
        assert status.details == (f"merged as {world.state.tasks['a'].merge_commit[:10]}",)
        lost = World(
            plan_of(
                Task(id="a", title="A", max_turns=1), Task(id="b", title="B", depends_on=("a",))
            ),
            {"a": writes("a", "x")},
            settings=Settings(checks=("t",)),
            rule=lambda _command, files: "a" not in files,
        )
        lost.go()
        assert [line.word for line in task_page(lost.state, "a")][3] == "because"
        assert task_page(lost.state, "b")[1].details == ("needs a",)
        task = lost.state.tasks["a"]
        tip = replace(task.last, turn=0)
        tried = replace(lost.state, tasks={**lost.state.tasks, "a": replace(task, attempts=(tip,))})
        assert ("tried", "the tip") in {
            (line.word, line.text.partition(" · ")[0]) for line in task_page(tried, "a")
        }


def _review(text: str) -> Review:
    must = Issue(severity="must_fix", category="c", description="broken", file="a.py")
    nice = Issue(severity="nice_to_have", category="c", description="fine")
    return Review(
        decision="feedback",
        summary=text,
        test_results=TestResults(passed=None),
        evidence=(),
        issues=(must, nice),
        feedback=text,
    )
