"""Each class of failure has its own bound; only code uses up turns."""  # G13

from datetime import timedelta

import pytest

from windlass.core.events.model import Failure
from windlass.core.scheduler.retry import RULES, Then, after
from worlds import NOON


def then(failure: Failure, in_a_row: int, **more) -> Then:
    return after(
        failure, in_a_row=in_a_row, at=NOON, retry_at=more.get("retry_at"), jitter=0.5
    ).then


def test_every_failure_has_a_rule():
    assert set(RULES) == set(Failure)


@pytest.mark.parametrize("failure", [Failure.AUTH, Failure.BUDGET])
def test_what_no_agent_can_mend_pauses_everything(failure):
    assert then(failure, 1) is Then.PAUSE


@pytest.mark.parametrize("failure", [f for f in Failure if RULES[f].bound])
def test_beyond_its_bound_a_person_is_asked(failure):
    bound = RULES[failure].bound
    assert bound is not None
    assert then(failure, bound) in {Then.WAIT, Then.AGAIN}
    assert then(failure, bound + 1) is Then.ASK


def test_an_interruption_is_never_held_against_a_task():
    assert then(Failure.INTERRUPTED, 1000) is Then.AGAIN


def test_a_usage_limit_waits_until_the_moment_the_provider_named():
    until = NOON + timedelta(hours=5)
    decided = after(Failure.USAGE_LIMIT, in_a_row=1, at=NOON, retry_at=until, jitter=0.0)
    assert decided.then is Then.WAIT
    assert decided.until == until
    assert then(Failure.USAGE_LIMIT, 500) is Then.WAIT


def test_a_moment_nobody_can_mean_is_not_waited_for():
    def decided(retry_at):
        return after(Failure.USAGE_LIMIT, in_a_row=1, at=NOON, retry_at=retry_at, jitter=0.0)

    month = timedelta(days=31)
    assert decided(NOON + month).until == NOON + month
    assert decided(NOON + month + timedelta(seconds=1)) == decided(None)


def test_a_moment_that_is_past_already_is_now():
    past = NOON - timedelta(hours=1)
    decided = after(Failure.TRANSIENT, in_a_row=1, at=NOON, retry_at=past, jitter=0.0)
    assert decided.until == NOON


def test_a_provider_that_names_too_early_a_moment_again_and_again_is_given_time():
    """Else a clock that goes wrong would have agents started without end."""

    def wait(in_a_row: int, named: float = 1) -> float:
        retry_at = NOON + timedelta(seconds=named)
        decided = after(
            Failure.USAGE_LIMIT, in_a_row=in_a_row, at=NOON, retry_at=retry_at, jitter=1.0
        )
        assert decided.until is not None
        return (decided.until - NOON).total_seconds()

    assert [wait(i) for i in (1, 2, 3, 4, 100)] == [1, 60, 120, 240, 3600]
    assert wait(100, named=5000) == 5000


def test_waits_grow_and_are_bounded_and_out_of_step():
    def wait(in_a_row: int, jitter: float) -> float:
        decided = after(Failure.TRANSIENT, in_a_row=in_a_row, at=NOON, retry_at=None, jitter=jitter)
        assert decided.until is not None
        return (decided.until - NOON).total_seconds()

    assert [wait(i, 1.0) for i in range(1, 9)] == [2, 4, 8, 16, 32, 64, 128, 256]
    assert wait(3, 0.0) == 4
    assert wait(3, 0.0) < wait(3, 0.9) < wait(3, 1.0)
