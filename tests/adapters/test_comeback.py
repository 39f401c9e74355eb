"""When a provider that refuses asks to be asked again: whatever its headers say."""  # G13 B6

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.adapters.meter.rate_limits import read_moment
from windlass.adapters.meter.wire.anthropic.headers import read_refusal

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=2)
STAMP = str(int(LATER.timestamp()))
UNIFIED = "anthropic-ratelimit-unified"


def until(headers: dict[str, str], status: int = 429) -> datetime | None:
    return read_refusal(status, headers, NOW).until


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("7", NOW + timedelta(seconds=7)),
        (" 2.5 ", NOW + timedelta(seconds=2.5)),
        ("0", NOW),
        ("Wed, 04 Mar 2026 14:00:00 GMT", LATER),
        ("Wed, 04 Mar 2026 14:00:00 -0000", LATER),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str, moment: datetime):
    assert until({"retry-after": value}, 529) == moment


@pytest.mark.parametrize("value", [STAMP, "2026-03-04T14:00:00Z", "2026-03-04T15:00:00+01:00"])
def test_a_reset_is_seconds_since_1970_or_a_date(value: str):
    assert until({f"{UNIFIED}-status": "rejected", f"{UNIFIED}-reset": value}) == LATER


@pytest.mark.parametrize(
    "value", ["", "-1", "nan", "inf", "-inf", "1e308", "1e13", "soon", "Wed, 99 Mar", "9" * 400]
)
def test_nonsense_is_not_there(value: str):
    headers = {
        "retry-after": value,
        f"{UNIFIED}-status": "rejected",
        f"{UNIFIED}-reset": "0001-01-01T00:00:00+23:59",
    }
    assert until(headers) is None


@given(st.text() | st.floats().map(str) | st.integers().map(str) | st.datetimes().map(str))
def test_no_header_can_make_it_fail(value: str):
    read_moment(value)
    until({"retry-after": value, f"{UNIFIED}-status": "rejected", f"{UNIFIED}-reset": value})


@pytest.mark.parametrize("status", ["allowed", "allowed_warning", ""])
def test_the_end_of_a_limit_that_is_not_reached_is_no_news(status: str):
    headers = {f"{UNIFIED}-status": status, f"{UNIFIED}-reset": STAMP, "retry-after": "3"}
    told = read_refusal(429, headers, NOW)
    assert (told.until, told.is_limit) == (NOW + timedelta(seconds=3), False)


def test_the_latest_of_several_limits_counts_but_not_when_more_can_be_bought():
    headers = {
        f"{UNIFIED}-status": "rejected",
        f"{UNIFIED}-5h-status": "rejected",
        f"{UNIFIED}-5h-reset": str(int(NOW.timestamp()) + 60),
        f"{UNIFIED}-7d-status": "rejected",
        f"{UNIFIED}-7d-reset": STAMP,
        f"{UNIFIED}-overage-status": "rejected",
        f"{UNIFIED}-overage-reset": str(int(LATER.timestamp()) + 86_400),
        "anthropic-ratelimit-tokens-reset": "2026-03-09T00:00:00Z",
        "retry-after": "60",
    }
    told = read_refusal(429, headers, NOW)
    assert (told.until, told.is_limit) == (LATER, True)


def test_only_too_many_requests_can_mean_a_limit():
    assert not read_refusal(529, {f"{UNIFIED}-status": "rejected"}, NOW).is_limit
