"""Times as people read them: the zone is always shown, and is the one that the time comes in."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from recorded_run import NOON, RecordedRun, tasks
from windlass.core.events import model as e
from windlass.core.events.model import Failure
from windlass.views.activity import wait_line
from windlass.views.story import line_of
from windlass.views.times import date_and_time, moment, time_of_day

BERLIN = timezone(timedelta(hours=2))
KOLKATA = timezone(timedelta(hours=5, minutes=30))
BOSTON = timezone(timedelta(hours=-5))
AT = datetime(2026, 1, 31, 22, 20, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "short", "long"),
    [
        (UTC, "22:20Z", "2026-01-31 22:20:05Z"),
        (BERLIN, "00:20+02", "2026-02-01 00:20:05+02"),
        (KOLKATA, "03:50+05:30", "2026-02-01 03:50:05+05:30"),
        (BOSTON, "17:20-05", "2026-01-31 17:20:05-05"),
    ],
)
def test_a_time_shows_its_zone_and_reads_back(zone: timezone, short: str, long: str):
    local = AT.astimezone(zone)
    assert time_of_day(local) == short
    assert date_and_time(local, seconds=True) == long
    assert datetime.fromisoformat(long) == AT


def test_the_date_is_shown_when_it_is_another_day_where_the_reader_is():
    later = AT + timedelta(hours=1)
    assert moment(later, AT) == "23:20Z"
    assert moment(later + timedelta(days=1), AT) == "2026-02-01 23:20Z"
    evening = AT - timedelta(hours=1)
    assert moment(AT, evening.astimezone(BERLIN)) == "2026-02-01 00:20+02", "past midnight there"
    assert moment(AT, AT.astimezone(BERLIN)) == "00:20+02"


def test_a_wait_is_shown_in_the_zone_of_the_reader():
    until = NOON + timedelta(minutes=20)
    in_zone = wait_line(Failure.USAGE_LIMIT, until, NOON.astimezone(BERLIN))
    assert "until 14:20:00+02, in 20m00s" in in_zone
    run = RecordedRun(*tasks(1)).play("T-01")
    event = e.WaitStarted(at=NOON, task="T-01", until=until, failure=Failure.TRANSIENT)
    for zone, shown in ((UTC, "12:20:00Z"), (BERLIN, "14:20:00+02")):
        line = line_of(event, run.now, zone)
        assert line is not None
        assert f"until {shown}" in line.text
