"""A number of tests that a tree prints makes the gate stricter, and never more lenient."""  # B2

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from windlass.core.events.model import Absence, CheckResult, Outcome, Suite
from windlass.core.events.review import CriterionEvidence, Review, Sighting, TestResults
from windlass.core.scheduler.gate import Judgement, Rules, judge_checks, judge_review, unnamed
from windlass.core.scheduler.tallies import shortfall, shortfalls


def said(*suites: tuple[str, int], skipped: int = 0) -> CheckResult:
    """What a check says that printed these summaries."""
    told = tuple(Suite(name=name, tests=n, skipped=0 if n else skipped) for name, n in suites)
    tests = sum(n for _, n in suites) if suites else None
    if tests == 0:
        return CheckResult(
            command="t",
            outcome=Outcome.ABSENT,
            absence=Absence.COLLECTED_NOTHING,
            exit_code=0,
            tests=0,
            suites=told,
        )
    return CheckResult(command="t", outcome=Outcome.PASS, exit_code=0, tests=tests, suites=told)


def judged(now: CheckResult, before: CheckResult | None, **more) -> Judgement:
    rules = Rules(before={"t": before} if before is not None else {}, **more)
    return judge_checks(["t"], [now], runs=1, rules=rules).judgement


TEN = said(("pytest", 10))
OLD = CheckResult(command="t", outcome=Outcome.PASS, exit_code=0, tests=10)
"""As an earlier version recorded it: without the summaries."""
LATE = replace(TEN, outcome=Outcome.ABSENT, absence=Absence.TIMED_OUT)
RED = replace(TEN, outcome=Outcome.FAIL, exit_code=1)
SILENT = CheckResult(command="t", outcome=Outcome.PASS, exit_code=0)


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        (TEN, None, Judgement.PASS),
        (TEN, TEN, Judgement.PASS),
        (TEN, OLD, Judgement.PASS),
        (said(("pytest", 11)), TEN, Judgement.PASS),
        (said(("pytest", 9)), TEN, Judgement.RETURN),
        (said(("pytest", 9)), OLD, Judgement.RETURN),
        (said(("pytest", 9)), RED, Judgement.RETURN),
        (said(("pytest", 9)), LATE, Judgement.PASS),
        (SILENT, TEN, Judgement.RETURN),
        (SILENT, SILENT, Judgement.PASS),
        (TEN, SILENT, Judgement.PASS),
        (said(("pytest", 0)), None, Judgement.RETURN),
        (said(("pytest", 0)), said(("pytest", 0)), Judgement.RETURN),
        (said(("pytest", 0), ("pytest", 900)), TEN, Judgement.RETURN),
        (said(("pytest", 900), ("jest", 0)), TEN, Judgement.RETURN),
        (said(("pytest", 900), ("jest", 0)), None, Judgement.RETURN),
        (
            said(("pytest", 10), ("jest", 0)),
            said(("pytest", 10), ("jest", 0)),
            Judgement.PASS,
        ),
        (said(("pytest", 1), ("pytest", 900)), TEN, Judgement.PASS),  # for the Coach to find out
    ],
)
def test_the_table(now: CheckResult, before: CheckResult | None, expected: Judgement):
    assert judged(now, before) is expected


def test_feedback_names_both_numbers():
    rules = Rules(before={"t": TEN})
    reason = judge_checks(["t"], [said(("pytest", 3))], runs=1, rules=rules).reason
    assert "`t` proves less than before: it ran 3 tests, and 10 before this work" in reason
    assert "**Removes tests:**" in reason
    reason = judge_checks(["t"], [said(("pytest", 1))], runs=1, rules=rules).reason
    assert "it ran 1 test, and 10 before" in reason
    reason = judge_checks(["t"], [SILENT], runs=1, rules=rules).reason
    assert "it does not say any more how many tests ran, and 10 before this work" in reason
    idle = said(("pytest", 12), ("unittest", 0), skipped=4)
    reason = judge_checks(["t"], [idle], runs=1, rules=rules).reason
    assert "it ran 12 tests, but unittest among them ran none (4 skipped)" in reason
    reason = judge_checks(["t"], [said(("unittest", 0), skipped=4)], runs=1, rules=Rules()).reason
    assert "found no test to run: 4 skipped" in reason


def test_to_skip_what_is_absent_is_no_leave_to_remove_it():
    nothing = said(("pytest", 0))
    assert judged(nothing, None, skippable=("t",)) is Judgement.PASS
    assert judged(nothing, TEN, skippable=("t",)) is Judgement.RETURN


def test_where_tests_are_to_go_the_coach_is_asked():
    for now in (said(("pytest", 0)), said(("pytest", 3)), SILENT):
        assert judged(now, TEN, removing=True) is Judgement.PASS
        [short] = shortfalls([now], {"t": TEN}, ())
        assert short.command == "t"
    [short] = shortfalls([said(("pytest", 0))], {}, ())
    assert short.reason == "it found no test to run"
    assert shortfalls([said(("pytest", 0))], {}, ("t",)) == ()
    red = replace(RED, tests=1)
    assert judged(red, TEN, removing=True) is Judgement.RETURN, "a red check stays red"


def test_of_a_whole_tree_no_numbers_are_compared():
    rules = Rules(skippable=("t",))
    assert judge_checks(["t"], [SILENT], runs=1, rules=rules).judgement is Judgement.PASS


def test_a_summary_that_was_not_there_before_may_be_forged():
    forged = shortfall(said(("pytest", 1), ("pytest", 900)), TEN)
    assert forged is not None
    assert not forged.certain
    assert "901 tests, of which only 1 can be matched with the 10 before" in forged.reason
    assert shortfall(said(("pytest", 10), ("jest", 5)), TEN) is None, "another runner's are new"
    assert shortfall(said(("pytest", 12), ("pytest", 15)), TEN) is None


def test_a_part_without_tests_that_was_not_there_before_is_for_the_coach():
    """A new package may have none; a summary beside it may be forged."""
    part = Suite(name="surefire", tests=0, part=True)
    now = replace(TEN, suites=(*TEN.suites, part))
    found = shortfall(now, TEN)
    assert found is not None
    assert not found.certain
    assert "surefire says that a part of it ran none" in found.reason
    assert shortfall(now, now) is None
    assert judged(now, TEN) is Judgement.PASS
    assert shortfall(now, None) is None, "there is nothing to compare with"


suites = st.lists(
    st.tuples(st.sampled_from(["pytest", "jest", "go a", "go b"]), st.integers(0, 20)), max_size=6
)


@given(suites, suites)
def test_no_number_lets_through_what_would_be_returned_without_any(now, before):
    """Comparing can only hold up what passed, and it holds up every loss in the sum."""
    result, reference = said(*now), said(*before)
    without = judge_checks(["t"], [result], runs=1, rules=Rules()).judgement
    verdict = judged(result, reference)
    if without is not Judgement.PASS:
        assert verdict is not Judgement.PASS
    if (result.tests or 0) < (reference.tests or 0):
        assert verdict is Judgement.RETURN


@given(suites, suites, suites)
def test_what_is_printed_besides_hides_no_loss(real, forged, before):
    """Whatever a tree prints beside a real loss, the check is returned or the Coach is asked."""
    reference = said(*before)
    lost = shortfall(said(*real), reference)
    # A runner that lost tests says so: more lines with a name of their own do not make up for it.
    by_name = {name: [n for other, n in real if other == name] for name, _ in before}
    loses = any(
        sum(sorted(by_name[name])[: len(then)]) < sum(then)
        for name in by_name
        if (then := [n for other, n in before if other == name])
    )
    gains = sum(
        max(0, sum(sorted(by_name[name])[: len(then)]) - sum(then))
        for name in by_name
        if (then := [n for other, n in before if other == name])
    )
    # One that has fallen silent cannot be told from one that another line speaks for.
    speaks = all(len(by_name[name]) >= sum(n == name for n, _ in before) for name in by_name)
    if lost is not None and loses and speaks and not gains:
        assert shortfall(said(*real, *forged), reference) is not None


APPROVED = Review(
    decision="approve",
    summary="fine",
    test_results=TestResults(passed=True),
    evidence=(CriterionEvidence(criterion=1, met=True, evidence="I read ./src/a.py and it is."),),
    seen=(
        Sighting(name="`make test`", evidence="two tests moved"),
        Sighting(name="docs/b.md", evidence=" "),
        Sighting(name="vendor", evidence="as released; see also lib/c.py."),
    ),
)


@pytest.mark.parametrize(
    ("point", "named"),
    [
        ("make test", True),
        ("make tes", False),
        ("src/a.py", True),
        ("a.py", False),
        ("src/a", False),
        ("docs/b.md", False),
        ("vendor/", True),
        ("vendor/x", False),
        ("lib/c.py", True),
        ("c.py", False),
        ("every file", False),
    ],
)
def test_evidence_names_a_thing_by_its_whole_name(point: str, *, named: bool):
    assert (unnamed(APPROVED, (point,)) == ()) is named
    verdict = judge_review(APPROVED, criteria=1, checked=True, points=(point,))
    assert (verdict.judgement is Judgement.PASS) is named
    assert named or f"no evidence names {point}" in verdict.reason


def test_what_is_sent_back_needs_no_evidence():
    returned = replace(APPROVED, decision="feedback", seen=(), evidence=())
    assert unnamed(returned, ("src/a.py",)) == ()
