"""The gate approves only on evidence; absent never passes."""  # B2 G6

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.events.model import Absence, CheckResult, Outcome
from windlass.core.events.review import CriterionEvidence, Issue, Review, TestResults
from windlass.core.scheduler.gate import MOST_ANSWERS, Judgement, Rules, judge_checks, judge_review


def result(command: str, outcome: Outcome, absence: Absence | None = None) -> CheckResult:
    return CheckResult(
        command=command,
        outcome=outcome,
        absence=absence,
        exit_code=1,
        seconds=3,
        output="boom\nbang",
    )


STRICT = Rules()
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
    rules = Rules(skippable=("t",) if skip else ())
    assert judge_checks(["t"], said, runs=runs, rules=rules).judgement is expected


def test_no_checks_at_all_is_for_the_caller_to_say():
    assert judge_checks([], [], runs=0, rules=STRICT).judgement is Judgement.PASS


def test_feedback_quotes_what_the_check_printed():
    verdict = judge_checks(["t"], [FAILED], runs=1, rules=STRICT)
    assert verdict.reason == "Check `t` failed with exit code 1.\n    boom\n    bang"
    assert "found no test" in judge_checks(["t"], [NOTHING], runs=1, rules=STRICT).reason
    assert "within 3 s" in judge_checks(["t"], [LATE], runs=2, rules=STRICT).reason
    assert "could not start" in judge_checks(["t"], [MISSING], runs=3, rules=STRICT).reason


def test_what_is_missing_is_run_before_anything_is_judged():
    verdict = judge_checks(["t", "u"], [FAILED], runs=1, rules=STRICT)
    assert verdict.judgement is Judgement.RUN
    assert verdict.rerun == ("u",)


outcomes = st.sampled_from([PASSED, FAILED, NOTHING, LATE, MISSING])


@given(st.lists(outcomes, max_size=5), st.integers(0, 5), st.booleans())
def test_nothing_but_passes_is_ever_approved(said, runs, skip):
    named = [
        CheckResult(command=str(i), outcome=r.outcome, absence=r.absence)
        for i, r in enumerate(said)
    ]
    commands = [r.command for r in named]
    rules = Rules(skippable=commands if skip else ())
    verdict = judge_checks(commands, named, runs=runs, rules=rules)
    good = all(
        r.outcome is Outcome.PASS or (skip and r.absence is Absence.COLLECTED_NOTHING)
        for r in named
    )
    assert (verdict.judgement is Judgement.PASS) == good


P, F = Outcome.PASS, Outcome.FAIL


def answered(*answers: Outcome) -> CheckResult:
    """What is known of a check that ran so often on one tree."""
    return CheckResult(command="t", outcome=answers[-1], exit_code=1, answers=answers)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([P], Judgement.PASS),
        ([F], Judgement.RUN),
        ([F, F], Judgement.RETURN),
        ([F, P], Judgement.RUN),
        ([P, F], Judgement.RUN),
        ([F, P, P], Judgement.PASS),
        ([F, P, F], Judgement.RUN),
        ([F, P, F, F], Judgement.RETURN),
        ([F, P, F, P, F], Judgement.RETURN),
        ([P, F, P, F, P], Judgement.RETURN),
    ],
)
def test_a_doubted_check_counts_for_what_it_says_twice_in_a_row(answers, expected):
    verdict = judge_checks(["t"], [answered(*answers)], runs=1, rules=Rules(doubted=True))
    assert verdict.judgement is expected
    assert len(answers) <= MOST_ANSWERS
    if expected is Judgement.RETURN and len(set(answers)) > 1:
        assert "is flaky" in verdict.reason


def test_a_person_may_want_to_be_asked_about_flaky_checks():
    rules = Rules(doubted=True, flaky="ask")
    verdict = judge_checks(["t"], [answered(F, P, P)], runs=3, rules=rules)
    assert verdict.judgement is Judgement.ASK
    assert "`t` (fail, pass, pass on the same tree)" in verdict.reason


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


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"evidence": MET[:1]}, "no evidence that criterion 2 is met"),
        ({"evidence": ()}, "no evidence that criterion 1 is met"),
        (
            {"evidence": (MET[0], CriterionEvidence(criterion=2, met=True, evidence="  "))},
            "criterion 2",
        ),
    ],
)
def test_an_approval_without_evidence_is_the_coachs_fault(more, word):  # B2 B16
    verdict = judged(review(**more))
    assert verdict.judgement is Judgement.RUN
    assert verdict.reason.startswith("it approved without evidence:\n- ")
    assert word in verdict.reason


def test_an_objection_beside_missing_evidence_goes_to_the_player():
    objection = {"decision": "feedback", "feedback": "no", "evidence": MET[:1]}
    verdict = judged(review(**objection))
    assert verdict.judgement is Judgement.RETURN
    assert "no evidence that criterion 2 is met" in verdict.reason


def test_without_checks_the_coachs_own_tests_must_be_green():
    silent = review(test_results=TestResults(passed=None))
    verdict = judged(silent, checked=False)
    assert verdict.judgement is Judgement.RUN
    assert "no check and no test run of the Coach" in verdict.reason
    assert judged(review(), checked=False).judgement is Judgement.PASS


def test_a_question_goes_to_a_person_before_anything_else():
    verdict = judged(review(question="Redis or memory?", decision="feedback"))
    assert verdict.judgement is Judgement.ASK
    assert verdict.reason == "Redis or memory?"
