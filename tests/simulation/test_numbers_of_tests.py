"""Whole runs in memory in which tests go away, are skipped, or are only said to have run."""  # B2

import pytest

from windlass.core.events import model as e
from windlass.core.events.review import CriterionEvidence, Review, Sighting, TestResults
from windlass.core.plan import Task
from windlass.core.settings import Settings
from windlass.ports import Report
from windlass.runner.changes import MOST_PARTS
from windlass.testing.memory import Files, Play
from windlass.views.quotation import LONGEST
from worlds import World, plan_of, with_policy, writes

BASE = {"tests/test_a.py": "3", "tests/test_b.py": "2", "README": "hello"}
SETTINGS = Settings(checks=("test",), max_turns=2)


def rule(command: str, files: Files) -> e.CheckResult:
    """Every test file holds how many tests are in it; `forged` what is printed besides."""
    wanted = f"tests/test_{command}.py"
    found = [
        int(text)
        for path, text in sorted(files.items())
        if (path.startswith("tests/") and command in {"test", path, path.removeprefix("tests/")})
        or path == wanted
    ]
    suites = [e.Suite(name="pytest", tests=sum(found))]
    suites += [e.Suite(name="pytest", tests=int(files["forged"]))] if "forged" in files else []
    tests = sum(suite.tests for suite in suites)
    return e.CheckResult(
        command=command,
        outcome=e.Outcome.PASS if tests else e.Outcome.ABSENT,
        absence=None if tests else e.Absence.COLLECTED_NOTHING,
        exit_code=0,
        tests=tests,
        suites=tuple(suites),
    )


def edits(**more: str | None) -> Play:
    """A Player that writes and removes; `__` stands for a slash and `_dot_` for a dot."""

    def play(_n: int, _turn: int, files: dict[str, str]) -> Report | None:
        files["work"] = str(len(files))
        for name, text in more.items():
            path = name.replace("__", "/").replace("_dot_", ".")
            if text is None:
                files.pop(path, None)
            else:
                files[path] = text
        return None

    return play


def world(*tasks: tuple[Task, Play], coach=None, settings: Settings = SETTINGS) -> World:
    plays = {task.id: play for task, play in tasks}
    return World(
        plan_of(*(task for task, _ in tasks)),
        plays,
        rule=rule,
        settings=settings,
        base=BASE,
        coach=coach,
    )


def feedback(made: World) -> list[str]:
    return [ev.feedback for ev in made.events if isinstance(ev, e.TurnReturned)]


A = Task(id="a", title="A")
REMOVES = Task(id="a", title="A", removes_tests=True)


@pytest.mark.parametrize(
    ("play", "said"),
    [
        (edits(tests__test_b_dot_py=None), "it ran 3 tests, and 5 before this work"),
        (edits(tests__test_b_dot_py="1"), "it ran 4 tests, and 5 before this work"),
        (
            edits(tests__test_a_dot_py=None, tests__test_b_dot_py=None),
            "it ran 0 tests, and 5 before this work",
        ),
        (
            edits(tests__test_a_dot_py="0", tests__test_b_dot_py="0", forged="900"),
            "it ran 900 tests, but pytest among them ran none",
        ),
    ],
)
def test_fewer_tests_than_before_are_returned(play: Play, said: str):
    made = world((A, play))
    made.go()
    assert said in feedback(made)[0]
    assert made.agent.reviews == [], "nobody is paid to review it"
    assert made.state.merged == ()


def test_to_skip_absent_checks_is_no_leave_to_remove_tests():
    skips = Task(id="a", title="A", skip_absent=True)
    play = edits(tests__test_a_dot_py=None, tests__test_b_dot_py=None)
    made = world((skips, play), settings=with_policy(SETTINGS, absent="skip"))
    made.go()
    assert made.state.merged == ()


def saying(**more) -> Review:
    given = {
        "decision": "approve",
        "summary": "fine",
        "test_results": TestResults(passed=True),
        "evidence": (CriterionEvidence(criterion=1, met=True, evidence="seen"),),
        **more,
    }
    return Review(**given)


@pytest.mark.parametrize(
    ("task", "play"),
    [
        (REMOVES, edits(tests__test_b_dot_py=None)),
        (REMOVES, edits(tests__test_a_dot_py=None, tests__test_b_dot_py=None)),
        (Task(id="a", title="A", files=("tests/test_b.py",)), edits(tests__test_b_dot_py=None)),
        (A, edits(tests__test_a_dot_py="1", tests__test_b_dot_py="0", forged="900")),
    ],
    ids=["said", "all of them", "the file is named", "perhaps forged"],
)
def test_where_the_task_says_so_or_it_is_not_sure_the_coach_is_asked_by_name(task, play):
    silent = world((task, play), coach=lambda *_: saying())
    silent.go()
    assert silent.state.merged == ()
    failed = [ev for ev in silent.events if isinstance(ev, e.CoachFailed)]
    assert {ev.failure for ev in failed} == {e.Failure.INCONCLUSIVE}
    assert "what it was asked about: test" in failed[0].message
    assert not [ev for ev in silent.events if isinstance(ev, e.TaskApproved)]
    seen = (Sighting(name="test", evidence="two tests went with what they tested"),)
    named = world((task, play), coach=lambda *_: saying(seen=seen))
    named.go()
    assert named.state.merged == ("a",)
    assert named.state.ended is e.RunEnd.COMPLETED


def test_a_named_test_file_that_only_shrank_is_returned():
    about = Task(id="a", title="A", files=("tests/test_b.py",))
    made = world((about, edits(tests__test_b_dot_py="1")))
    made.go()
    assert made.state.merged == ()


def test_what_comes_after_is_measured_by_the_tip():
    """Tests that went away with the first task are not missed in the second, but its own are."""
    second = Task(id="b", title="B", depends_on=("a",))
    first = edits(tests__test_b_dot_py=None, tests__test_c_dot_py="4")
    made = world((REMOVES, first), (second, edits(tests__test_c_dot_py="3")))
    made.go()
    assert "it ran 6 tests, and 7 before this work" in feedback(made)[0]
    assert made.state.merged == ("a",)
    kept = world(
        (REMOVES, edits(tests__test_b_dot_py=None)), (second, edits(tests__test_c_dot_py="1"))
    )
    kept.go()
    assert kept.state.merged == ("a", "b")


def test_a_merge_must_not_lose_tests_either():
    """Each keeps the number alone; together they have taken away what the other still had."""
    one = edits(tests__test_b_dot_py=None, tests__test_c_dot_py="2")
    two = edits(tests__test_a_dot_py=None, tests__test_c_dot_py="2", tests__test_d_dot_py="1")
    made = world((A, one), (Task(id="b", title="B"), two))
    made.go()
    [first, *_] = [ev for ev in made.events if isinstance(ev, e.TurnReturned)]
    assert first.cause == "merged_checks"
    assert "it ran 3 tests, and 5 before this work" in first.feedback
    assert len(made.state.merged) == 1


def test_a_check_of_a_task_that_finds_nothing_on_the_tip_any_more_is_told():
    own = Task(id="a", title="A", checks=("own",))
    later = Task(id="b", title="B", depends_on=("a",))
    swaps = edits(tests__test_own_dot_py=None, tests__test_new_dot_py="7")
    made = world((own, edits(tests__test_own_dot_py="1")), (later, swaps))
    made.go()
    assert set(made.state.merged) == {"a", "b"}
    assert made.state.ended is e.RunEnd.NEEDS_HUMAN
    assert "the tip does not pass" in made.state.reason
    assert "`own` found no test to run" in made.state.reason
    meant = world(
        (own, edits(tests__test_own_dot_py="1")),
        (Task(id="b", title="B", depends_on=("a",), removes_tests=True), swaps),
    )
    meant.go()
    assert meant.state.ended is e.RunEnd.COMPLETED


def test_old_journals_without_summaries_are_measured_by_their_numbers():
    made = world((A, edits(tests__test_b_dot_py=None)))
    old = made.checks.rule
    made.checks.rule = lambda command, files: e.CheckResult(
        command=command, outcome=e.Outcome.PASS, tests=old(command, files).tests
    )
    made.go()
    assert "it ran 3 tests, and 5 before this work" in feedback(made)[0]


LONG = "".join(f"line {n:06}\n" for n in range(8000))


@pytest.mark.parametrize(("size", "coaches"), [(6000, 1), (8_000, 2), (200_000, 1 + MOST_PARTS)])
def test_an_approval_that_does_not_name_what_it_was_not_shown_merges_nothing(size, coaches):
    text = "".join(f"line {n:08}\n" for n in range(size))
    assert len(text) > LONGEST
    play = writes("big.py", text)
    silent = World(plan_of(A), {"a": play}, coach=lambda *_: saying())
    silent.go()
    assert silent.state.merged == ()
    failed = [ev for ev in silent.events if isinstance(ev, e.CoachFailed)]
    assert "big.py" in failed[0].message
    assert failed[0].usage.cost_usd == pytest.approx(0.005 * coaches)
    assert silent.state.tasks["a"].question is not None
    seen = (Sighting(name="big.py", evidence="counted every line"),)
    named = World(plan_of(A), {"a": play}, coach=lambda *_: saying(seen=seen))
    named.go()
    assert named.state.merged == ("a",)
    assert len(named.agent.reviews) == coaches
    [answered] = [ev for ev in named.events if isinstance(ev, e.CoachAnswered)]
    assert answered.unshown == ("big.py",)
    assert answered.usage.cost_usd == pytest.approx(0.005 * coaches)


def test_a_coach_that_sends_it_back_ends_the_review_of_a_large_change():
    play = writes("big.py", LONG * 4)
    made = World(
        plan_of(A),
        {"a": play},
        settings=Settings(checks=("test",), max_turns=1),
        coach=lambda *_: saying(decision="feedback", feedback="no"),
    )
    made.go()
    assert len(made.agent.reviews) == 1
    assert "no" in feedback(made)[0]


def test_a_part_of_a_large_change_can_refuse_all_of_it():
    heard: list[int] = []

    def coach(*_) -> Review | Report:
        heard.append(1)
        if len(heard) == 1:
            return saying()
        if len(heard) == 2:
            return Report(summary="prose")
        return saying(decision="feedback", feedback="a backdoor") if len(heard) > 3 else saying()

    play = writes("big.py", LONG * 4)
    settings = Settings(checks=("test",), max_turns=1)
    made = World(plan_of(A), {"a": play}, settings=settings, coach=coach)
    made.go()
    assert made.state.merged == ()
    failed = [ev for ev in made.events if isinstance(ev, e.CoachFailed)]
    assert failed[0].message == "it gave no answer that fits the schema"
    assert "a backdoor" in feedback(made)[0]


def test_a_pinned_verdict_is_asked_for_the_same_names():
    """A process that died after the pin: what it had not recorded is judged as if it had."""
    play = writes("big.py", LONG)
    for point in range(1, 60):
        made = World(plan_of(A), {"a": play})
        made.go(crash_at=point)
        made.go()
        answered = [ev for ev in made.events if isinstance(ev, e.CoachAnswered)]
        assert made.state.merged == ("a",)
        assert {ev.unshown for ev in answered} == {("big.py",)}
