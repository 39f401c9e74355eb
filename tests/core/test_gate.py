"""The gate approves only on evidence; absent never passes."""  # B2 G6

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.events.model import Absence, CheckResult, Outcome
from windlass.events.review import CriterionEvidence, Issue, Review, TestResults
from windlass.scheduler.gate import Judgement, judge_checks, judge_review


def result(command: str, outcome: Outcome, absence: Absence | None = None) -> CheckResult:
    return CheckResult(
        command=command,
        outcome=outcome,
        absence=absence,
        exit_code=1,
        seconds=3,
        output="boom\nbang",
    )


PASSED = result("t", Outcome.PASS)
FAILED = result("t", Outcome.FAIL)
NOTHING = result("t", Outcome.ABSENT, Absence.COLLECTED_NOTHING)
LATE = result("t", Outcome.ABSENT, Absence.TIMED_OUT)
MISSING = result("t", Outcome.ABSENT, Absence.UNABLE_TO_START)


@pytest.mark.parametrize(
    ("said", "runs", "skip", "expected"),
    [
        ([], 0, False, Judgement.RUN),
        ([PASSED], 1, False, Judgement.PASS),
        ([FAILED], 1, False, Judgement.RETURN),
        ([NOTHING], 1, False, Judgement.RETURN),
        ([NOTHING], 1, True, Judgement.PASS),
        ([LATE], 1, False, Judgement.RUN),
        ([LATE], 2, False, Judgement.RETURN),
        ([LATE], 2, True, Judgement.RETURN),
        ([MISSING], 1, False, Judgement.RUN),
        ([MISSING], 2, False, Judgement.RUN),
        ([MISSING], 3, False, Judgement.ASK),
        ([MISSING], 3, True, Judgement.ASK),
    ],
)
def test_the_table(said, runs, skip, expected):
    assert judge_checks(["t"], said, runs=runs, skip_absent=skip).judgement is expected


def test_no_checks_at_all_is_for_the_caller_to_say():
    assert judge_checks([], [], runs=0, skip_absent=False).judgement is Judgement.PASS


def test_feedback_quotes_what_the_check_printed():
    verdict = judge_checks(["t"], [FAILED], runs=1, skip_absent=False)
    assert verdict.reason == "Check `t` failed with exit code 1.\n    boom\n    bang"
    assert "found no test" in judge_checks(["t"], [NOTHING], runs=1, skip_absent=False).reason
    assert "within 3 s" in judge_checks(["t"], [LATE], runs=2, skip_absent=False).reason
    assert "could not start" in judge_checks(["t"], [MISSING], runs=3, skip_absent=False).reason


def test_what_is_missing_is_run_before_anything_is_judged():
    verdict = judge_checks(["t", "u"], [FAILED], runs=1, skip_absent=False)
    assert verdict.judgement is Judgement.RUN
    assert verdict.rerun == ("u",)


outcomes = st.sampled_from([PASSED, FAILED, NOTHING, LATE, MISSING])


@given(st.lists(outcomes, max_size=5), st.integers(0, 5), st.booleans())
def test_nothing_but_passes_is_ever_approved(said, runs, skip):
    named = [
        CheckResult(command=str(i), outcome=r.outcome, absence=r.absence)
        for i, r in enumerate(said)
    ]
    verdict = judge_checks([r.command for r in named], named, runs=runs, skip_absent=skip)
    good = all(
        r.outcome is Outcome.PASS or (skip and r.absence is Absence.COLLECTED_NOTHING)
        for r in named
    )
    assert (verdict.judgement is Judgement.PASS) == good


MET = tuple(CriterionEvidence(criterion=n, met=True, evidence="seen") for n in (1, 2))


BLANK = CriterionEvidence(criterion=2, met=True, evidence="  ")


def review(**more) -> Review:
    given = {
        "decision": "approve",
        "summary": "fine",
        "test_results": TestResults(passed=True),
        "evidence": MET,
        **more,
    }
    return Review(**given)


def judged(said: Review, *, criteria: int = 2, checked: bool = True):
    return judge_review(said, criteria=criteria, checked=checked)


def test_an_approval_with_all_its_evidence_passes():
    assert judged(review()).judgement is Judgement.PASS
    assert judged(review(test_results=TestResults(passed=None))).judgement is Judgement.PASS


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"decision": "feedback", "feedback": "no"}, "did not approve: no"),
        ({"decision": "feedback"}, "did not approve: fine"),
        ({"evidence": MET[:1]}, "no evidence that criterion 2 is met"),
        ({"evidence": ()}, "no evidence that criterion 1 is met"),
        (
            {"evidence": (MET[0], CriterionEvidence(criterion=2, met=True, evidence="  "))},
            "criterion 2",
        ),
        (
            {"evidence": (*MET, CriterionEvidence(criterion=2, met=False, evidence="it hangs"))},
            "criterion 2 is met: it hangs",
        ),
        ({"test_results": TestResults(passed=False, failures=("t1",))}, "own test run failed: t1"),
        ({"test_results": TestResults(passed=False)}, "it does not say which"),
        ({"test_results": TestResults(passed=True, failures=("t2",))}, "own test run failed: t2"),
        (
            {
                "issues": (
                    Issue(
                        severity="must_fix",
                        category="c",
                        description="broken",
                        file="a.py",
                        suggestion="mend",
                    ),
                )
            },
            "- must fix (a.py): broken Suggestion: mend",
        ),
        (
            {"issues": (Issue(severity="must_fix", category="c", description="broken"),)},
            "- must fix: broken",
        ),
    ],
)
def test_never_approved(more, word):  # B2
    verdict = judged(review(**more))
    assert verdict.judgement is Judgement.RETURN
    assert word in verdict.reason


def test_lesser_issues_do_not_hold_it_up():
    issue = Issue(severity="should_fix", category="c", description="d")
    assert judged(review(issues=(issue,))).judgement is Judgement.PASS


def test_without_checks_the_coachs_own_tests_must_be_green():
    silent = review(test_results=TestResults(passed=None))
    assert judged(silent, checked=False).judgement is Judgement.RETURN
    assert judged(review(), checked=False).judgement is Judgement.PASS


def test_a_question_goes_to_a_person_before_anything_else():
    verdict = judged(review(question="Redis or memory?", decision="feedback"))
    assert verdict.judgement is Judgement.ASK
    assert verdict.reason == "Redis or memory?"
