"""The calendar may be set while Windlass runs: what is measured is the time that has passed."""

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import plans
from desk import Desk
from windlass.adapters.clock import SystemClock

CALENDAR = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static int (*real)(clockid_t, struct timespec *);

int clock_gettime(clockid_t clock, struct timespec *now) {
    static long calls;
    const char *step = getenv("CALENDAR_STEP");
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int said = real(clock, now);
    if (clock == CLOCK_REALTIME && step != NULL) now->tv_sec += ++calls * atol(step);
    return said;
}
"""
"""A calendar that is set anew each time that somebody looks at it."""

RUN = """\
import json, sys
from datetime import UTC, datetime
from pathlib import Path
from quick import quick_run
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.core.state.stretches import run_seconds, task_seconds
from windlass.testing.agents import ScriptedAgent

one, two = datetime.now(UTC), datetime.now(UTC)
repo = Path(sys.argv[1])
state = quick_run(repo, ScriptedAgent({"1.1": {"a": "1"}, "1.2": {"b": "1"}, "1.3": {"c": "1"}}))
with SqliteJournal.read_only(repo / ".windlass/plans/plan/journal.db") as journal:
    times = [entry.event.at.timestamp() for entry in journal.read()]
print(json.dumps({
    "set": (two - one).total_seconds(),
    "ended": state.ended,
    "times": times,
    "run": run_seconds(state),
    "tasks": [task_seconds(state, task) for task in state.tasks.values()],
}))
"""


@pytest.fixture
def calendar(tmp_path: Path) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("a compiler is needed to set the calendar of one process")
    made = tmp_path / "calendar.so"
    command = [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", str(made), "-ldl"]
    subprocess.run(command, input=CALENDAR, text=True, check=True)
    return made


@pytest.mark.parametrize("step", [-3600, 3600])
def test_a_run_while_the_calendar_is_set_is_as_long_as_it_takes(
    tmp_path: Path, calendar: Path, step: int
):
    desk = Desk(tmp_path)
    desk.build({"plan.md": plans.plan_text(plans.SEQUENCE)})
    here = Path(__file__).parent.parent
    environment = {
        **desk.environment,
        "PYTHONPATH": os.pathsep.join([str(here), str(here.parent / "src")]),
        "LD_PRELOAD": str(calendar),
        "CALENDAR_STEP": str(step),
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(desk.repo)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert abs(told["set"]) > 1800, "the calendar was set between two looks at it"
    assert told["ended"] == "completed"
    assert told["times"] == sorted(told["times"])
    assert 0 < told["run"] < 1800
    assert all(0 < seconds <= told["run"] for seconds in told["tasks"])


def test_a_moment_of_the_calendar_is_counted_as_this_process_counts():
    clock = SystemClock()
    calendar = datetime.now(UTC)  # noqa: TID251  the calendar itself is meant
    assert abs(clock.counted(calendar) - clock.now()) < timedelta(minutes=5)
    latest = datetime.max.replace(tzinfo=UTC)
    assert clock.counted(latest) <= latest


def test_time_only_goes_on():
    clock = SystemClock()
    moments = [clock.now() for _ in range(1000)]
    assert moments == sorted(moments)
