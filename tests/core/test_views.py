"""What people and machines are shown, as functions of a state: words, story, end, numbers."""

import ast
import inspect
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import get_args

import msgspec
import pytest
from inline_snapshot import snapshot
from msgspec.structs import replace

from recorded_run import MINUTE, RecordedRun, tasks
from windlass.core.events import model as e
from windlass.core.events.review import Issue, Review, TestResults
from windlass.core.plan import Task
from windlass.core.settings import E2ESettings, Settings
from windlass.core.state import Phase, RunState, apply, fold
from windlass.ports import Report
from windlass.testing.memory import Files, MemoryInbox, Play
from windlass.views import story as story_module
from windlass.views.closing import closing, what_it_needs
from windlass.views.cost import run_cost, task_cost
from windlass.views.lines import Line, network_advice, warnings
from windlass.views.outcome import (
    EXIT_CODES,
    blocked,
    is_finished,
    run_status,
    task_statuses,
)
from windlass.views.progress import Progress, integration_branch, past, progress, turns_used
from windlass.views.steps import Ground
from windlass.views.story import WORDS, line_of
from windlass.views.words import duration, money, one_line, plural, tokens
from worlds import NOON, World, plan_of, with_policy, writes

A, B, C = Task(id="a", title="First"), Task(id="b", title="Second"), Task(id="c", title="Third")
B_AFTER_A = Task(id="b", title="Second", depends_on=("a",))


def shown(lines: list[Line]) -> str:
    """Each line as `WORD text`, its details below it, and commits as `#`."""
    text = "".join(
        f"{line.word} {line.text}\n" + "".join(f"  {detail}\n" for detail in line.details)
        for line in lines
    )
    return re.sub(r"\b[0-9a-f]{10}\b", "#", text)


def story(world: World) -> str:
    state: RunState | None = None
    lines: list[Line | None] = []
    for event in world.events:
        state = apply(state, event)
        lines.append(line_of(event, state))
    return shown([line for line in lines if line is not None])


def test_no_name_in_a_line_is_obeyed_by_a_terminal():
    name = "x\x1b]0;owned\x07\x1b[2J\n\x9b31m\u202e"
    tasks = (Task(id="a", title=name), Task(id="b", title="Second"))
    plays = {task.id: writes(name, task.id) for task in tasks}
    plan = replace(plan_of(*tasks), title=name)
    world = World(plan, plays, settings=Settings(checks=("test",), agents=2))
    world.go()
    told = story(world) + end(world)
    assert "CONFLICT" in told
    assert "owned" in told
    assert all(line.isprintable() for line in told.splitlines())


def end(world: World) -> str:
    still = Ground(commit=world.state.base)
    return shown(closing(world.state, plan="p.md", workspaces=".windlass/ws", ground=still))


def ran(
    *tasks: Task,
    plays: dict[str, Play] | None = None,
    rule: Callable[[str, Files], bool | None] | None = None,
    settings: Settings | None = None,
    inbox: MemoryInbox | None = None,
) -> World:
    """A world that has run to its end; each task writes a file of its own."""
    world = World(
        plan_of(*tasks),
        {task.id: writes(task.id, "done") for task in tasks} | (plays or {}),
        settings=settings or Settings(checks=("test",), agents=1),
        inbox=inbox,
        rule=rule or (lambda _command, _files: True),
    )
    world.go()
    return world


def failing(failure: e.Failure, message: str = "", **more: object) -> Play:
    def play(_n: int, _turn: int, _files: dict[str, str]) -> Report:
        return Report(failure=failure, message=message, **more)

    return play


def idle(_n: int, _turn: int, _files: dict[str, str]) -> Report | None:
    return None


class TestWords:
    @pytest.mark.parametrize(
        ("seconds", "said"),
        [
            (0, "0.0s"),
            (0.44, "0.4s"),
            (9.94, "9.9s"),
            (9.96, "10s"),
            (10, "10s"),
            (59.4, "59s"),
            (59.6, "1m00s"),
            (60, "1m00s"),
            (372, "6m12s"),
            (3599.4, "59m59s"),
            (3600, "1h00m00s"),
            (7651, "2h07m31s"),
            (360000, "100h00m00s"),
        ],
    )
    def test_durations(self, seconds: float, said: str):
        assert duration(seconds) == said

    @pytest.mark.parametrize(
        ("count", "said"),
        [
            (0, "0"),
            (999, "999"),
            (1000, "1.0k"),
            (4210, "4.2k"),
            (999_900, "999.9k"),
            (999_999, "1.0M"),
            (1_000_000, "1.0M"),
            (4_100_000, "4.1M"),
        ],
    )
    def test_tokens(self, count: int, said: str):
        assert tokens(count) == said

    def test_money(self):
        assert money(0) == "$0.00"
        assert money(0.0042) == "$0.0042"
        assert money(0.01) == "$0.01"
        assert money(14.316) == "$14.32"
        assert money(0.61, known=False) == "$0.61+"

    def test_plurals(self):
        assert [plural(n, "task") for n in (0, 1, 2)] == ["0 tasks", "1 task", "2 tasks"]

    def test_one_line_is_harmless(self):
        assert one_line("  a\n\tb \x1b[31m\x00c\u202e\u2028d\x9b ", 80) == "a b [31m c d"

    def test_one_line_is_no_wider_than_asked(self):
        assert one_line("abcdef", 6) == "abcdef"
        assert one_line("abcdefg", 6) == "abcde…"
        assert one_line("abcd  efgh", 6) == "abcd…"


class TestStory:
    def test_of_a_run_in_which_all_goes_well(self):
        own = msgspec.structs.replace(B, checks=("own",), depends_on=("a",))
        assert story(ran(A, own)) == snapshot("""\
START P · 2 tasks · run r1 · from # · sandbox none
BASE running 1 check on the base
BASE 1 pass
PLAYER a First · turn 1/5
CHECKS a First · 1 check on #
CHECKS a First · 1 pass
COACH a First · reviews #
COACH a First · approve · evidence for 1 of 1
DONE a First · 1 turn · 0 tokens · $0.01
  did a
PLAYER b Second · turn 1/5
CHECKS b Second · 2 checks on #
CHECKS b Second · 2 pass
COACH b Second · reviews #
COACH b Second · approve · evidence for 1 of 1
DONE b Second · 1 turn · 0 tokens · $0.01
  did b
""")

    def test_of_work_that_is_returned_until_it_is_abandoned(self):
        world = ran(
            A,
            B_AFTER_A,
            rule=lambda _, files: "a" not in files,
            settings=Settings(checks=("test",), max_turns=2),
        )
        assert story(world) == snapshot("""\
START P · 2 tasks · run r1 · from # · sandbox none
BASE running 1 check on the base
BASE 1 pass
PLAYER a First · turn 1/2
CHECKS a First · 1 check on #
CHECKS a First · 1 fail
  `test` fail · exit code 1
RETURNED a First · turn 1/2 · checks
  `test` fail · exit code 1
PLAYER a First · turn 2/2
RETURNED a First · turn 2/2 · unchanged
  Check `test` failed with exit code 1.
  Nothing was changed. Saying that the work is done is not evidence: change the files that the task asks for.
ABANDONED a First
  not approved after 2 turns: Check `test` failed with exit code 1.
  Nothing was changed. Saying that the work is done is not evidence: change the files that the task asks for.
  blocks b
""")  # noqa: E501

    def test_of_work_that_changes_nothing_and_of_a_file_that_is_refused(self):
        plays: dict[str, Play] = {"a": idle, "b": writes("FORBIDDEN", "")}
        world = ran(A, B, plays=plays, settings=Settings(checks=("test",), max_turns=1, agents=1))
        assert story(world) == snapshot("""\
START P · 2 tasks · run r1 · from # · sandbox none
BASE running 1 check on the base
BASE 1 pass
PLAYER a First · turn 1/1
PLAYER b Second · turn 1/1
RETURNED a First · turn 1/1 · unchanged
  Nothing was changed. Saying that the work is done is not evidence: change the files that the task asks for.
ABANDONED a First
  not approved after 1 turn: Nothing was changed. Saying that the work is done is not evidence: change the files that the task asks for.
RETURNED b Second · turn 1/1 · refused
  FORBIDDEN must not be committed
ABANDONED b Second
  not approved after 1 turn: FORBIDDEN must not be committed
""")  # noqa: E501

    def test_of_a_conflict(self):
        def settle(n: int, _turn: int, files: dict[str, str]) -> Report | None:
            files["x"] = f"b{n}"
            return None

        plays: dict[str, Play] = {"a": writes("x", "a"), "b": settle}
        world = ran(A, B, plays=plays, settings=Settings(checks=("test",), agents=2))
        assert story(world) == snapshot("""\
START P · 2 tasks · run r1 · from # · sandbox none
BASE running 1 check on the base
BASE 1 pass
PLAYER a First · turn 1/5
PLAYER b Second · turn 1/5
CHECKS a First · 1 check on #
CHECKS b Second · 1 check on #
CHECKS a First · 1 pass
COACH a First · reviews #
CHECKS b Second · 1 pass
COACH b Second · reviews #
COACH a First · approve · evidence for 1 of 1
COACH b Second · approve · evidence for 1 of 1
DONE a First · 1 turn · 0 tokens · $0.01
  did a
CONFLICT b Second · x
RETURNED b Second · turn 1/5 · conflict
  Your work cannot be merged with what others merged meanwhile. Their work was merged into your workspace, conflict markers and all. Settle every conflict so that nothing of either side is lost, and leave no marker behind.
  x
PLAYER b Second · turn 1/5 · settling a conflict
CHECKS b Second · 1 check on #
CHECKS b Second · 1 pass
COACH b Second · reviews #
COACH b Second · approve · evidence for 1 of 1
DONE b Second · 1 turn · 0 tokens · $0.03
  did b
""")  # noqa: E501

    def test_of_agents_that_fail(self):
        def recovering(n: int, _turn: int, files: dict[str, str]) -> Report | None:
            if n == 1:
                return Report(failure=e.Failure.TRANSIENT, message="529\noverloaded")
            if n == 2:
                return Report(failure=e.Failure.STALLED)
            files["a"] = "done"
            return None

        assert story(ran(A, plays={"a": recovering})) == snapshot("""\
START P · 1 task · run r1 · from # · sandbox none
BASE running 1 check on the base
BASE 1 pass
PLAYER a First · turn 1/5
FAILED a First · transient · turn 1 goes on
  529
  overloaded
WAIT a First · for the provider to recover · until 00:00:01Z, in 1.5s
PLAYER a First · turn 1/5
FAILED a First · stalled · turn 1 goes on
PLAYER a First · turn 1/5
CHECKS a First · 1 check on #
CHECKS a First · 1 pass
COACH a First · reviews #
COACH a First · approve · evidence for 1 of 1
DONE a First · 1 turn · 0 tokens · $0.01
  did a
""")

    @pytest.mark.parametrize("role", ["Player", "Coach"])
    def test_of_a_provider_that_cannot_be_reached(self, role):
        why = "cannot reach api.example: name not found"
        left = [Report(failure=e.Failure.TRANSIENT, message=why, unreached=True)]

        def play(_n: int, _turn: int, files: dict[str, str]) -> Report | None:
            files["a"] = "done"
            return left.pop() if role == "Player" and left else None

        def coach(*_: object) -> Report | None:
            return left.pop() if role == "Coach" and left else None

        world = World(plan_of(A), {"a": play}, coach=coach)
        world.go()
        lines = story(world).splitlines()
        [wait] = [line for line in lines if line.startswith("WAIT")]
        assert re.fullmatch(rf"WAIT a First · {why} · until \S+Z, in \S+", wait)
        assert f"  {why}" in lines, "as the reason of the failure"
        states = [fold(world.events[:n]) for n in range(1, len(world.events) + 1)]
        told = [progress(state, 1).tasks["a"] for state in states if state is not None]
        waits = {task.waits_because for task in told if task.waits_for is not None}
        assert waits == {why}
        assert "waits_because" not in msgspec.to_builtins(told[-1])

    def test_of_an_agent_that_never_works(self):
        world = ran(A, plays={"a": failing(e.Failure.CRASHED, "exit code 137")})
        assert story(world).splitlines()[-3:] == snapshot(
            [
                "  exit code 137",
                "NEEDS YOU a First",
                "  the agent failed 4 times in a row (crashed): exit code 137",
            ]
        )

    def test_of_a_base_that_moved_meanwhile(self):
        moved = Ground(commit="0123456789abcdef")
        told = shown(closing(ran(A).state, plan="p.md", workspaces="ws", ground=moved))
        assert "main has moved to" in told
        assert "itself has not moved" not in told

    def test_of_a_limit(self):
        world = ran(A, plays={"a": failing(e.Failure.AUTH, "401")})
        assert story(world).splitlines()[-2:] == snapshot(
            ["FAILED a First · auth · turn 1 goes on", "  401"]
        )

    def test_of_a_red_base(self):
        world = ran(A, rule=lambda _, files: len(files) > 5)
        assert story(world) == snapshot("""\
START P · 1 task · run r1 · from # · sandbox none
BASE running 1 check on the base
BASE 1 fail
  `test` fail · exit code 1
""")

    def test_of_checks_that_collect_nothing(self):
        world = ran(A, rule=lambda command, _: None if command == "test" else True)
        assert "CHECKS a First · 1 absent\n  `test` collected nothing\n" in story(world)

    def test_of_a_limit_that_is_over_when_the_run_goes_on(self):
        run = RecordedRun(*tasks(1)).opened().play("T-01").limited("T-01", NOON + MINUTE)
        line = line_of(run.events[-1], run.now)
        assert line == Line("LIMIT", "claude quota until 12:01Z; T-01 waits, no turn spent")
        run.resume(after=MINUTE)
        limit = e.Failure.USAGE_LIMIT
        run.record(e.WaitStarted(at=NOON, task="T-01", until=NOON + MINUTE, failure=limit))
        assert line_of(run.events[-1], run.now) is None

    def test_of_what_a_coach_would_not_let_pass(self):
        issue = Issue(severity="must_fix", category="x", description="wrong")
        run = (
            RecordedRun(*tasks(1))
            .opened()
            .play("T-01")
            .finish("T-01")
            .checked("T-01")
            .coach("T-01")
        )
        run.answer("T-01", issue, issue, replace(issue, severity="should_fix"))
        run.record(e.TurnReturned(at=NOON, task="T-01", cause="review", feedback="Mend it."))
        line = line_of(run.events[-1], run.now)
        assert line is not None
        assert line.text == "T-01 Part 1 of the whole · turn 1/5 · 2 must_fix"

    def test_of_a_stop(self):
        world = ran(A, inbox=MemoryInbox("stop"))
        assert "STOP asked by " in story(world)

    def test_of_a_run_without_checks(self):
        assert story(ran(A, settings=Settings())) == snapshot("""\
START P · 1 task · run r1 · from # · sandbox none
  unchecked: there are no checks, so only agents have judged the work
PLAYER a First · turn 1/5
COACH a First · reviews #
COACH a First · approve · evidence for 1 of 1
DONE a First · 1 turn · 0 tokens · $0.01
  did a
""")

    def test_of_a_crash_and_a_resume(self):
        world = World(plan_of(A, B_AFTER_A), {"a": writes("a", "1"), "b": writes("b", "2")})
        world.go(crash_at=20)
        world.go()
        assert [line for line in story(world).splitlines() if line.startswith("RESUME")] == (
            snapshot(["RESUME Resuming from Task a... 0 of 2 tasks merged · run r1"])
        )

    def test_of_the_last_look_at_the_tip(self):
        own = msgspec.structs.replace(A, checks=("own",))
        lines = story(ran(own, B_AFTER_A)).splitlines()
        assert [line for line in lines if line.startswith("VERIFY")] == [
            "VERIFY running 1 check on the tip",
            "VERIFY 1 pass",
        ]

    def test_of_a_scenario_tried_on_the_tip(self):  # K11
        plan = replace(plan_of(A), e2e="Try it.")
        settings = Settings(checks=("test",), e2e=E2ESettings(run=True))
        world = World(plan, {"a": writes("a", "1")}, settings=settings)
        world.go()
        told = story(world)
        assert told[told.index("E2E ") :] == snapshot("""\
E2E e2e E2E scenario · everything is merged: tried on #
COACH e2e E2E scenario · tries #
COACH e2e E2E scenario · approve · evidence for 1 of 1
DONE e2e E2E scenario · 0 turns · 0 tokens · $0.0050
""")

    def test_of_a_resume_with_nothing_left_to_do(self):
        world = ran(A)
        resumed = e.RunResumed(at=NOON, settings=world.settings, sandbox="none", found=("a",))
        line = line_of(resumed, apply(world.state, resumed))
        told = ("Verified:", "- a: ✓ 1 commit found")
        assert line == Line("RESUME", "Nothing is left to do. 1 of 1 task merged · run r1", told)

    def test_of_a_baseline_that_could_not_start(self):
        world = ran(A)
        result = e.CheckResult(
            command="make\n  test",
            outcome=e.Outcome.ABSENT,
            absence=e.Absence.UNABLE_TO_START,
        )
        event = e.BaselineFinished(at=NOON, commit="c", results=(result,))
        assert line_of(event, world.state) == Line(
            "BASE", "1 absent", ("`make test` unable to start",)
        )

    def test_a_screen_folds_long_texts_and_names_the_command_that_shows_all(self):  # B16
        world = ran(A)

        def quoted(text: str, *, whole: bool = False) -> tuple[str, ...]:
            event = e.HelpNeeded(at=NOON, task="a", question=text)
            line = line_of(event, world.state, whole=whole)
            assert line is not None
            return line.details

        assert quoted("1\n\n2\n3\n4\n5\n") == ("1", "2", "3", "4", "5")
        assert quoted("\n".join("1234567")) == tuple("1234567")
        assert quoted("\n".join("12345678")) == (*"123456", "… 2 more lines: windlass log p:a")
        assert quoted("x" * 400) == ("x" * 299 + "…", "… all of it: windlass log p:a")
        assert quoted("x" * 400, whole=True) == ("x" * 400,)
        assert quoted("1\n\n  2\n3\n4\n5\n6\n7\n8\n", whole=True) == (
            *("1", "", "  2"),
            *"345678",
        )

    def test_a_note_of_a_merge_is_told(self):
        world = ran(A)
        event = e.TaskMerged(at=NOON, task="a", candidate=1, commit="c", note="branch is yours")
        line = line_of(event, world.state)
        assert line is not None
        assert line.details == ("did a", "branch is yours")

    def test_every_word_of_it_is_known(self):
        # `windlass log --word` names the words that there are.
        said = {word for word, _ in story_module._RESTS.values()}
        said |= set(re.findall(r'Line\(\s*"([A-Z0-9 ]+)"', inspect.getsource(story_module)))
        assert said == set(WORDS)

    def test_every_fact_has_an_arm_of_its_own(self):
        def members(union: object) -> list[str]:
            inner = get_args(union)
            return [n for each in inner for n in members(each)] if inner else [union.__name__]

        arms: list[str] = []
        for node in ast.walk(ast.parse(inspect.getsource(story_module))):
            if isinstance(node, ast.Match):
                arms += [
                    case.cls.attr for case in ast.walk(node) if isinstance(case, ast.MatchClass)
                ]
                last = node.cases[-1]
                assert ast.unparse(last) == "case _:\n    assert_never(event)"
                assert not any(case.guard for case in node.cases)
        assert sorted(arms) == sorted(set(members(e.Event)) - {"TipMoveStarted"})

    def test_no_event_but_these_is_silent(self):
        world = ran(A)
        silent = {
            type(event).__name__ for event in world.events if line_of(event, world.state) is None
        }
        assert silent == snapshot(
            {
                "MergeBuilt",
                "MergeStarted",
                "PlayerFinished",
                "RunEnded",
                "SnapshotStarted",
                "SnapshotTaken",
                "TaskApproved",
                "TipMoveStarted",
            }
        )


class TestEnd:
    def test_of_a_run_that_is_completed(self):
        assert end(ran(A, B)) == snapshot("""\
Summary 2 tasks: 2 completed
  2 turns, 0 returned · checks 3 pass
  $0.03 spent of $20.00 · tokens 0 in, 0 out
Branch windlass/p/integration: 2 merges on main@#
  main itself has not moved
Next windlass land p.md           move main to these 2 merges
  git log --graph main..windlass/p/integration  look at them
  windlass report p.md --open  read the report
""")

    def test_of_a_run_that_failed(self):
        settings = Settings(checks=("test",), max_turns=1)
        assert end(
            ran(A, B_AFTER_A, rule=lambda _, files: "a" not in files, settings=settings)
        ) == (
            snapshot("""\
ABANDONED a First · 1/1 turns · $0.01
  `test` fail · exit code 1
  kept: .windlass/ws/a · windlass log p:a
  retry it: windlass retry p:a
BLOCKED b Second · needs a
Summary 2 tasks: 1 abandoned, 1 blocked
  a abandoned
  1 turn, 1 returned · checks 1 fail
  $0.01 spent of $20.00 · tokens 0 in, 0 out
Branch nothing was merged onto main@#
  main itself has not moved
Next windlass resume p.md --retry  retry a and continue
  windlass log p.md             see what happened
  windlass run p.md --restart   start again
  windlass report p.md --open   read the report
""")
        )

    def test_of_a_run_that_needs_a_person(self):
        world = ran(A, B, plays={"b": failing(e.Failure.STALLED, "silent")})
        assert end(world) == snapshot("""\
NEEDS YOU b Second
  the agent failed 4 times in a row (stalled): silent
  kept: .windlass/ws/b · windlass log p:b
Summary 2 tasks: 1 completed, 1 needs_human
  b cannot go on without you
  2 turns, 0 returned · checks 1 pass
  $0.01 spent of $20.00 · tokens 0 in, 0 out
Branch windlass/p/integration: 1 merge on main@#
  main itself has not moved
Next windlass resume p.md  continue the run
""")

    def test_of_a_run_that_waits_for_a_word(self):
        world = ran(msgspec.structs.replace(A, complexity=9))
        told = end(world)
        assert "kept:" not in told, "there is no workspace yet"
        assert told.endswith("""\
Next windlass approve p:a  let it start
  windlass resume p.md  continue the run
""")

    def test_of_a_red_base(self):
        told = end(ran(A, rule=lambda _, files: len(files) > 5))
        why = "the base itself does not pass: `test` fails with exit code 1"
        red = "RED the base itself does not pass\n  `test` fail · exit code 1\n"
        assert told.startswith(f"{red}Summary 1 task: 1 pending\n  {why}\n")
        assert told.endswith("""\
Branch nothing was merged onto main@#
  main itself has not moved
Next windlass resume p.md --red-base go  continue anyway
  windlass run p.md --restart         after fixing the base
""")

    def test_of_a_red_base_that_is_not_to_be_touched(self):
        settings = with_policy(Settings(checks=("test",)), red_base="stop")
        world = ran(A, rule=lambda _, files: len(files) > 5, settings=settings)
        assert "Next windlass log p.md            see what happened\n" in end(world)
        assert "  windlass run p.md --restart  start again\n" in end(world)

    def test_of_a_base_that_moved_meanwhile(self):
        moved = Ground(commit="0123456789abcdef")
        told = shown(closing(ran(A).state, plan="p.md", workspaces="ws", ground=moved))
        assert "main has moved to" in told
        assert "itself has not moved" not in told

    def test_of_a_limit(self):
        world = ran(A, plays={"a": failing(e.Failure.AUTH, "401")})
        assert end(world).startswith("Summary 1 task: 1 failed\n  auth: 401\n")
        assert end(world).endswith("Next windlass resume p.md  continue the run\n")

    def test_of_a_stop(self):
        world = ran(A, inbox=MemoryInbox("stop"))
        first, reason, *_, last = end(world).splitlines()
        assert (first, reason) == ("Summary 1 task: 1 pending", "  stopped by windlass stop")
        assert last == "Next windlass resume p.md  continue the run"

    def test_of_a_run_without_checks_on_no_branch_resumed_and_partly_unknown(self):
        world = ran(A, settings=Settings())
        state = msgspec.structs.replace(
            world.state,
            base_branch=None,
            resumes=2,
            tasks={
                "a": msgspec.structs.replace(
                    world.state.tasks["a"], spent=e.Usage(cost_usd=0.005, known=False)
                )
            },
            notes=("the branch could not follow",),
        )
        assert shown(closing(state, plan="p.md", workspaces="ws")) == snapshot("""\
Summary 1 task: 1 completed
  1 turn, 0 returned · checks none
  $0.0050+ spent of $20.00 · tokens 0 in, 0 out
  + part of it is unknown: an agent was killed before it reported its usage
  unchecked: there are no checks, so only agents have judged the work
  resumed 2 times
Branch windlass/p/integration: 1 merge on commit@#
  the branch could not follow
  the run started from a commit without a branch
Next git log --graph #..windlass/p/integration  look at them
  git merge windlass/p/integration  take this merge
  windlass report p.md --open       read the report
""")

    def test_of_a_task_that_a_coach_would_not_let_pass(self):
        issue = Issue(severity="must_fix", category="x", description="wrong", file="src/a.py:7")

        def coach(_task: str, _turn: int, _files: object) -> Review:
            return Review(
                decision="feedback",
                summary="no",
                test_results=TestResults(passed=True),
                evidence=(),
                issues=(issue, msgspec.structs.replace(issue, severity="should_fix")),
            )

        settings = Settings(checks=("test",), max_turns=1)
        world = World(plan_of(A), {"a": writes("a", "x")}, settings=settings, coach=coach)
        world.go()
        usage = e.Usage(cost_usd=1.0, input_tokens=1_000, cache_read_tokens=9_000)
        task = msgspec.structs.replace(world.state.tasks["a"], spent=usage)
        state = msgspec.structs.replace(world.state, tasks={"a": task})
        lines = closing(state, plan="p.md", workspaces="ws")
        assert lines[0].details[0] == "must_fix src/a.py:7 · wrong"
        assert lines[0].took is not None
        assert "tokens 10.0k in (90% cached), 0 out" in lines[1].details[2]

    def test_a_task_that_waits_for_nobody_needs_nothing(self):
        state = ran(A).state
        assert what_it_needs(state.tasks["a"], state) == ()

    def test_a_task_that_asks_names_its_question_and_the_command_that_answers(self):
        state = ran(A).state
        asking = msgspec.structs.replace(
            state.tasks["a"], phase=Phase.ASKED, question="Which colour?"
        )
        asked, *ways = what_it_needs(asking, state)
        assert asked == "Which colour?"
        assert any(way.startswith(f"windlass answer {state.plan.id}:a") for way in ways)

    def test_of_a_run_that_was_left_for_another(self):
        world = ran(A)
        state = msgspec.structs.replace(world.state, ended=e.RunEnd.ABANDONED)
        lines = closing(state, plan="p.md", workspaces="ws")
        assert lines[-1] == Line("Next", "windlass run p.md  start a new run")

    def test_of_a_run_that_has_not_ended(self):
        world = ran(A)
        state = msgspec.structs.replace(world.state, ended=None, reason="")
        lines = closing(state, plan="p.md", workspaces="ws")
        assert lines[-1] == Line("Next", "windlass resume p.md  continue the run")

    def test_of_a_run_that_a_person_stopped(self):
        run = RecordedRun(*tasks(2)).opened().play("T-01").play("T-02")
        run.record(e.StopRequested(at=NOON, by="SIGINT")).left("T-01", why="stopped")
        line = line_of(run.events[-3], run.now)
        assert line == Line(
            "STOPPED", "T-01 Part 1 of the whole · its work so far is kept · turn 1 goes on"
        )
        run.left("T-02", why="stopped")
        run.record(e.RunEnded(at=NOON, status=e.RunEnd.STOPPED, reason="stopped by SIGINT"))
        [summary, *_, last] = closing(run.now, plan="p.md", workspaces="w")
        assert (summary.word, summary.text) == ("Summary", "2 tasks: 2 interrupted")
        assert summary.details[0] == "stopped by SIGINT"
        assert "SIGINT" not in str(last), "which is no command"
        assert progress(run.now, 1).tasks["T-01"].status == "failed", "programs know that word"

    def test_of_a_task_that_was_given_up_for_what_it_was_told(self):
        run = (
            RecordedRun(*tasks(1, max_turns=1)).opened().play("T-01").finish("T-01").checked("T-01")
        )
        run.record(e.TurnReturned(at=NOON, task="T-01", cause="review", feedback="\nNot so.\nNo."))
        run.record(e.TaskAbandoned(at=NOON, task="T-01", reason="not approved after 1 turn"))
        [line, *_] = closing(run.now, plan="p.md", workspaces="w")
        assert line.details[:3] == ("Not so.", "No.", "kept: w/T-01 · windlass log p:T-01")

    def test_of_a_task_that_a_person_works_on(self):
        run = RecordedRun(*tasks(1)).opened()
        run.record(e.TaskTaken(at=NOON, task="T-01", n=1, turn=1, start="c", onto=None, by="Ada"))
        run.record(e.RunEnded(at=NOON, status=e.RunEnd.NEEDS_HUMAN))
        [*_, line] = closing(run.now, plan="p.md", workspaces="w")
        assert line.text == "windlass give p:T-01  hand it back"

    def test_of_a_repository_with_a_remote(self):
        world = ran(A)
        there = Ground(commit=world.state.base, has_remote=True)
        [*_, line] = closing(world.state, plan="p.md", workspaces="w", ground=there)
        assert line.details[0].split("  ")[0] == "windlass pr p.md"
        landed = Ground(commit=world.state.tip, holds_tip=True, has_remote=True)
        [*_, line] = closing(world.state, plan="p.md", workspaces="w", ground=landed)
        assert "windlass pr" not in str(line)

    def test_of_time_and_merges_that_nobody_is_to_blame_for(self):
        run = RecordedRun(*tasks(2)).opened()
        run.play("T-01").limited("T-01", NOON + 20 * MINUTE)
        run.at += 5 * MINUTE
        run.play("T-02").limited("T-02", NOON + 20 * MINUTE)
        run.record(e.RunEnded(at=NOON, status=e.RunEnd.STOPPED), after=5 * MINUTE)
        run.resume(after=60 * MINUTE)
        for id_ in ("T-01", "T-02"):
            run.record(e.PlayerStarted(at=NOON, task=id_, n=2, turn=1, start="c", onto="tip"))
        lines = closing(run.now, plan="p.md", workspaces="w")
        [summary] = [line for line in lines if line.word == "Summary"]
        assert "10m00s waiting for claude quota · 2 merges repeated" in summary.details


class TestOutcome:
    def test_every_end_has_a_code_and_a_word(self):
        state = ran(A).state
        words = {
            end: run_status(msgspec.structs.replace(state, ended=end)) for end in (None, *e.RunEnd)
        }
        assert {end: (EXIT_CODES[end], words[end]) for end in e.RunEnd} == {
            e.RunEnd.COMPLETED: (0, "completed"),
            e.RunEnd.FAILED: (1, "failed"),
            e.RunEnd.NEEDS_HUMAN: (3, "needs_human"),
            e.RunEnd.STOPPED: (4, "stopped"),
            e.RunEnd.PAUSED: (4, "paused"),
            e.RunEnd.LIMIT: (6, "paused"),
            e.RunEnd.ABORTED: (1, "failed"),
            e.RunEnd.ABANDONED: (1, "abandoned"),
        }
        assert words[None] == "in_progress"

    def test_only_what_is_completed_or_was_given_up_cannot_be_resumed(self):
        state = ran(A).state
        finished = [
            end for end in e.RunEnd if is_finished(msgspec.structs.replace(state, ended=end))
        ]
        assert finished == [e.RunEnd.COMPLETED, e.RunEnd.ABORTED, e.RunEnd.ABANDONED]
        assert not is_finished(msgspec.structs.replace(state, ended=None))

    def test_what_waits_for_an_abandoned_task_is_blocked(self):
        third = msgspec.structs.replace(C, depends_on=("b",))
        settings = Settings(checks=("test",), max_turns=1)
        world = ran(A, B_AFTER_A, third, rule=lambda _, f: "a" not in f, settings=settings)
        assert blocked(world.state) == {"b": "a", "c": "a"}
        assert task_statuses(world.state) == {"a": "abandoned", "b": "blocked", "c": "blocked"}

    def test_nothing_is_blocked_where_nothing_is_abandoned(self):
        world = ran(A, B_AFTER_A)
        assert blocked(world.state) == {}
        assert task_statuses(world.state) == {"a": "completed", "b": "completed"}


class TestCost:
    USED = e.Usage(
        cost_usd=0.25,
        input_tokens=100,
        output_tokens=20,
        cache_read_tokens=1000,
        cache_write_tokens=10,
    )

    def test_it_is_summed_over_attempts_and_tasks(self):
        def paid(n: int, _turn: int, files: dict[str, str]) -> Report:
            files["a"] = "done"
            if n == 1:
                return Report(failure=e.Failure.STALLED, usage=self.USED)
            return Report(summary="done", usage=self.USED)

        world = ran(A, B, plays={"a": paid})
        cost = task_cost(world.state, world.state.tasks["a"])
        assert (cost.cost_usd, cost.input_tokens, cost.output_tokens) == (0.505, 220, 40)
        assert (cost.cached_tokens, cost.tokens, cost.known) == (2000, 2260, True)
        assert run_cost(world.state).cost_usd == 0.52

    def test_what_a_killed_agent_spent_is_unknown(self):
        world = ran(
            A,
            plays={"a": failing(e.Failure.AUTH, usage=e.Usage(known=False))},
        )
        assert not run_cost(world.state).known


class TestProgress:
    def test_the_contract(self):
        """Others read this: names and meanings stay."""
        world = ran(A, B_AFTER_A)
        seq = len(world.events)
        told = msgspec.to_builtins(progress(world.state, seq))
        assert list(told) == snapshot(
            [
                "schema",
                "seq",
                "run",
                "plan",
                "status",
                "reason",
                "base",
                "base_branch",
                "integration",
                "tip",
                "sandbox",
                "tasks",
                "metrics",
            ]
        )
        assert list(told["tasks"]["a"]) == snapshot(
            [
                "status",
                "turns",
                "commits",
                "merged",
                "cost_usd",
                "feedback",
                "waits_for",
                "waits_until",
                "spent_usd",
                "estimated_usd",
                "reserved_usd",
                "reserved_most_usd",
            ]
        )
        assert list(told["metrics"]) == snapshot(
            [
                "tasks",
                "completed",
                "turns",
                "returned",
                "merges",
                "checks",
                "cost_usd",
                "cost_known",
                "input_tokens",
                "output_tokens",
                "cached_tokens",
                "resumes",
                "elapsed_seconds",
                "spent_usd",
                "estimated_usd",
                "reserved_usd",
                "reserved_most_usd",
            ]
        )
        assert (told["schema"], told["seq"], told["run"], told["plan"]) == (1, seq, "r1", "p")
        assert (told["status"], told["base_branch"]) == ("completed", "main")
        assert told["integration"] == "windlass/p/integration"
        assert told["tip"] == world.repository.tip == told["tasks"]["b"]["merged"]

    def test_it_is_read_back_as_it_was_written(self):
        told = progress(ran(A).state, 7)
        assert msgspec.json.decode(msgspec.json.encode(told), type=Progress) == told

    def test_a_task_that_was_not_started(self):
        world = ran(A, rule=lambda _, files: len(files) > 5)
        told = progress(world.state, 1).tasks["a"]
        assert msgspec.to_builtins(told) == {
            "status": "pending",
            "turns": 0,
            "commits": (),
            "merged": None,
            "cost_usd": 0.0,
            "feedback": None,
            "waits_for": None,
            "waits_until": None,
            "spent_usd": 0.0,
            "estimated_usd": 0.0,
            "reserved_usd": 0.0,
            "reserved_most_usd": 0.0,
        }
        assert turns_used(world.state.tasks["a"]) == 0

    def test_a_task_that_was_returned(self):
        def twice(_n: int, turn: int, files: dict[str, str]) -> Report | None:
            files["a"] = "good" if turn == 2 else "bad"
            return None

        world = ran(A, plays={"a": twice}, rule=lambda _, files: files.get("a") != "bad")
        told = progress(world.state, 1)
        assert (told.tasks["a"].turns, len(told.tasks["a"].commits)) == (2, 2)
        assert "Check `test` failed" in (told.tasks["a"].feedback or "")
        assert (told.metrics.turns, told.metrics.returned, told.metrics.merges) == (2, 1, 1)
        assert told.metrics.checks == {"pass": 1, "fail": 1, "absent": 0}

    def test_a_question_is_shown_as_feedback(self):
        world = ran(A, plays={"a": failing(e.Failure.STALLED, "silent")})
        told = progress(world.state, 1).tasks["a"]
        assert told.status == "needs_human"
        assert (told.feedback or "").startswith("the agent failed 4 times in a row (stalled)")

    @pytest.mark.parametrize("role", ["Player", "Coach"])
    def test_a_wait_says_for_what_and_until_when(self, role: str):  # B6
        end = datetime(2026, 1, 3, tzinfo=UTC)
        failed = Report(failure=e.Failure.USAGE_LIMIT, retry_at=end)
        troubles = {"Player": [failed], "Coach": [failed]}

        def play(_n: int, _turn: int, files: dict[str, str]) -> Report | None:
            files["a"] = "done"
            return troubles["Player"].pop() if role == "Player" and troubles[role] else None

        def coach(*_: object) -> Report | None:
            return troubles["Coach"].pop() if role == "Coach" and troubles[role] else None

        world = World(plan_of(A), {"a": play}, coach=coach)
        world.go()
        states = [fold(world.events[:n]) for n in range(1, len(world.events) + 1)]
        told = [progress(state, 1).tasks["a"] for state in states if state is not None]
        waits = [(task.waits_for, task.waits_until) for task in told if task.waits_for]
        assert waits == [(e.Failure.USAGE_LIMIT, end)] * len(waits)
        assert waits
        assert told[-1].waits_until is None
        lines = story(world).splitlines()
        assert "LIMIT claude quota until 2026-01-03 00:00Z; a waits, no turn spent" in lines
        assert not [line for line in lines if line.startswith(("FAILED", "WAIT"))]
        assert "1 turn " in story(world), "and no turn was used"
        waited = [x for x in closing(world.state, plan="p", workspaces="w") if x.word == "Summary"]
        assert "48h00m00s waiting for claude quota" in waited[0].details

    def test_time_is_that_of_the_events(self):
        world = ran(A)
        took = (world.state.ended_at - world.state.started_at).total_seconds()
        later = msgspec.structs.replace(
            world.state, at=world.state.started_at + timedelta(seconds=90)
        )
        assert progress(later, 1).metrics.elapsed_seconds == took, "what is told after the end"
        later = msgspec.structs.replace(later, ended=None)
        assert progress(later, 1).metrics.elapsed_seconds == 90
        assert integration_branch(later) == "windlass/p/integration"


def gone() -> RunState:
    world = World(plan_of(A), {"a": writes("a.py", "1")})
    world.go()
    return world.state


def test_what_a_box_asked_of_the_network_is_told_with_the_line_to_add():  # B20
    state = gone()
    refused = e.HostsAsked(at=NOON, role="player", task="a", refused=("one.example", "two:81"))
    reached = e.HostsAsked(at=NOON, role="setup", reached=("p.example",))

    assert network_advice(state) == ()
    after = apply(apply(state, refused), reached)

    assert line_of(refused, after) == Line(
        "NETWORK",
        "a player was refused one.example, two:81",
        ('to allow: [sandbox] hosts = ["one.example", "two:81"]',),
    )
    line = "setup reached p.example; this run's agents may too"
    assert line_of(reached, after) == Line("NETWORK", line)
    assert network_advice(after) == (
        'network: 2 hosts refused; to allow: [sandbox] hosts = ["one.example", "two:81"]',
        'network: setup reached p.example; to keep: [sandbox] hosts = ["p.example"]',
    )
    many = e.HostsAsked(at=NOON, role="setup", reached=tuple(f"h{i}" for i in range(10)))
    line = line_of(many, after)
    assert line is not None
    assert line.text.endswith("h7 and 2 more; this run's agents may too")


def test_a_run_whose_coach_runs_no_commands_says_so():  # B5
    state = replace(gone(), coach_commands=False)
    assert warnings(state)[-1].startswith("the Coach runs no commands")


def test_amounts_are_the_same_wherever_a_run_is_listed():  # B15
    state = World(plan_of(Task(id="a", title="A")), {"a": writes("a", "1")})
    state.go()
    listed, told = past(state.state), progress(state.state, 1).metrics
    assert listed.cost == told.cost == run_cost(state.state)


def test_a_recovery_is_told_with_what_is_not_known():  # X10
    world = World(plan_of(Task(id="a", title="A")), {"a": writes("a", "1")})
    world.go()
    line = line_of(e.RunRecovered(at=NOON, candidates=0, notes=("money",)), world.state)
    assert line is not None
    assert (line.word, line.details) == ("RECOVERED", ("money",))
