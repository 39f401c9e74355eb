"""The gate approves only on evidence; absent never passes."""  # B2 G6

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.events.model import Absence, CheckResult, Outcome
from windlass.scheduler.gate import Judgement, judge


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
        ([PASSED], 1, False, Judgement.APPROVE),
        ([FAILED], 1, False, Judgement.RETURN),
        ([NOTHING], 1, False, Judgement.RETURN),
        ([NOTHING], 1, True, Judgement.APPROVE),
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
    assert judge(["t"], said, runs=runs, skip_absent=skip).judgement is expected


def test_no_checks_at_all_is_for_the_caller_to_say():
    assert judge([], [], runs=0, skip_absent=False).judgement is Judgement.APPROVE


def test_feedback_quotes_what_the_check_printed():
    verdict = judge(["t"], [FAILED], runs=1, skip_absent=False)
    assert verdict.reason == "Check `t` failed with exit code 1.\n    boom\n    bang"
    assert "found no test" in judge(["t"], [NOTHING], runs=1, skip_absent=False).reason
    assert "within 3 s" in judge(["t"], [LATE], runs=2, skip_absent=False).reason
    assert "could not start" in judge(["t"], [MISSING], runs=3, skip_absent=False).reason


def test_what_is_missing_is_run_before_anything_is_judged():
    verdict = judge(["t", "u"], [FAILED], runs=1, skip_absent=False)
    assert verdict.judgement is Judgement.RUN
    assert verdict.rerun == ("u",)


outcomes = st.sampled_from([PASSED, FAILED, NOTHING, LATE, MISSING])


@given(st.lists(outcomes, max_size=5), st.integers(0, 5), st.booleans())
def test_nothing_but_passes_is_ever_approved(said, runs, skip):
    named = [
        CheckResult(command=str(i), outcome=r.outcome, absence=r.absence)
        for i, r in enumerate(said)
    ]
    verdict = judge([r.command for r in named], named, runs=runs, skip_absent=skip)
    good = all(
        r.outcome is Outcome.PASS or (skip and r.absence is Absence.COLLECTED_NOTHING)
        for r in named
    )
    assert (verdict.judgement is Judgement.APPROVE) == good
