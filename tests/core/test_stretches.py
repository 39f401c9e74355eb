"""Time between two processes of a run counts in no screen, file or figure."""  # K6

from datetime import timedelta

import msgspec

from recorded_run import MINUTE, SECOND, RecordedRun, tasks
from windlass.core.events import model as e
from windlass.core.scheduler.estimates import seconds
from windlass.core.state.stretches import run_seconds, task_seconds, turn_seconds, worked
from windlass.formats import project
from windlass.views.board import heartbeat
from windlass.views.closing import closing
from windlass.views.lines import Line
from windlass.views.measuring import Measuring
from windlass.views.notices import notice_of
from windlass.views.progress import progress
from windlass.views.report import report_of
from windlass.views.story import line_of
from windlass.views.telemetry_names import TASK_DURATION
from worlds import NOON


def stopped_for_an_hour() -> RecordedRun:
    """Four seconds of a Player, a stop, an hour of nothing, and the run is taken over."""
    run = RecordedRun(*tasks(1, max_turns=2)).opened().play("T-01")
    run.record(e.StopRequested(at=NOON, by="SIGINT"), after=4 * SECOND).left("T-01")
    run.record(e.RunEnded(at=NOON, status=e.RunEnd.STOPPED, reason="stopped by SIGINT"))
    return run.resume(after=60 * MINUTE)


def done_of(run: RecordedRun) -> Line:
    line = line_of(run.events[-1], run.now)
    assert line is not None
    return line


class TestStopped:
    def test_nobody_worked_while_the_run_was_stopped(self):
        run = stopped_for_an_hour().play("T-01", n=2, turn=1)
        run.at += 18 * SECOND
        run.approved("T-01", n=2).merged("T-01", 1, n=2)
        assert done_of(run).word == "DONE"
        assert done_of(run).took == 22.0
        run.record(e.RunEnded(at=NOON, status=e.RunEnd.COMPLETED))
        assert run_seconds(run.now) == task_seconds(run.now, run.now.tasks["T-01"]) == 22.0
        assert progress(run.now, 1).metrics.elapsed_seconds == 22.0
        [summary] = [x for x in closing(run.now, plan="p", workspaces="w") if x.word == "Summary"]
        assert summary.took == 22.0
        notice = notice_of(run.events[-1], run.now)
        assert notice is not None
        assert "· 22s ·" in notice.text
        assert seconds(run.now, run.now.tasks["T-01"]) == 22.0, "and what is learnt from it"

    def test_the_report_and_the_figures_say_the_same(self):
        run = stopped_for_an_hour().play("T-01", n=2, turn=1)
        run.at += 18 * SECOND
        run.approved("T-01", n=2).merged("T-01", 1, n=2)
        run.record(e.RunEnded(at=NOON, status=e.RunEnd.COMPLETED))
        entries = [e.Entry(seq=n, event=event) for n, event in enumerate(run.events, 1)]
        report = report_of(entries, plan="p", workspaces="w")
        assert report is not None
        assert (report.elapsed, report.tasks[0].seconds, report.unattended) == (22.0, 22.0, 3600.0)
        measuring, state = Measuring("p"), None
        figures: list[float] = []
        for event, state in run.history:
            for each in measuring.see(event, state).measured:
                figures += [each.value] if each.instrument is TASK_DURATION and each.value else []
        assert figures == [22.0]

    def test_the_footer_leaves_it_out_too(self):
        run = stopped_for_an_hour()
        run.record(e.HelpNeeded(at=NOON, task="T-01", question="Which?"))
        run.record(e.RunEnded(at=NOON, status=e.RunEnd.NEEDS_HUMAN), after=3 * SECOND)
        run.record(e.TaskTaken(at=NOON, task="T-01", n=2, turn=1, start="c", onto=None, by="Ada"))
        run.resume(after=60 * MINUTE)
        run.at += 2 * SECOND
        assert "─ 0m09s ─" in run.shown()
        assert "0m02s" in run.shown().splitlines()[1]
        assert "T-01 taken 0m02s" in heartbeat(run.now, run.views, run.at)


class TestReturned:
    def test_what_is_returned_tells_the_time_of_its_own_turn(self):
        run = RecordedRun(*tasks(1, max_turns=1)).opened().play("T-01")
        run.at += 20 * SECOND
        run.finish("T-01").back("T-01")
        assert done_of(run).took == 20.0
        run.record(e.TaskAbandoned(at=NOON, task="T-01", reason="not approved"))
        assert done_of(run).took == 20.0
        run.record(e.RunEnded(at=NOON, status=e.RunEnd.FAILED, reason="T-01 abandoned"))
        # The person comes back after eight minutes, and it takes a while to go on.
        run.record(e.TaskReopened(at=NOON, task="T-01", by="you"), after=8 * MINUTE)
        run.resume(after=MINUTE).play("T-01", n=2, turn=2)
        run.at += 4 * SECOND
        run.finish("T-01", n=2).back("T-01")
        assert done_of(run).word == "RETURNED"
        assert done_of(run).took == 4.0
        assert task_seconds(run.now, run.now.tasks["T-01"]) == 24.0

    def test_a_turn_that_is_repeated_is_one_turn(self):
        run = stopped_for_an_hour().play("T-01", n=2, turn=1)
        run.at += 6 * SECOND
        run.finish("T-01", n=2).back("T-01")
        assert turn_seconds(run.now, run.now.tasks["T-01"]) == 10.0


def test_a_run_whose_process_died_rested_from_the_last_thing_it_recorded():
    run = RecordedRun(*tasks(1)).opened().play("T-01")
    run.record(
        e.SpendReserved(at=NOON, id="1", task="T-01", role="player", model="m", usd=1.0),
        after=5 * SECOND,
    )
    run.resume(after=timedelta(days=2))
    assert run_seconds(run.now) == 5.0
    assert seconds(run.now, run.now.tasks["T-01"]) == 5.0, "though it ended with the resume"


def test_what_was_given_up_took_what_it_took_however_long_ago():
    run = RecordedRun(*tasks(2, max_turns=1)).opened().play("T-01").play("T-02")
    run.at += 6 * SECOND
    run.finish("T-01").back("T-01")
    run.record(e.TaskAbandoned(at=NOON, task="T-01", reason="not approved"))
    said = done_of(run).took
    run.at += 9 * MINUTE
    run.finish("T-02")
    [line, *_] = closing(run.now, plan="p", workspaces="w")
    assert (line.word, line.took) == ("ABANDONED", said)


def test_a_landing_days_later_takes_as_long_as_it_takes():
    run = RecordedRun(*tasks(1)).opened().approve("T-01").merged("T-01", 1)
    run.record(e.RunEnded(at=NOON, status=e.RunEnd.COMPLETED), after=7 * SECOND)
    run.record(e.LandRequested(at=NOON, by="windlass land"), after=timedelta(days=3))
    run.record(e.RunEnded(at=NOON, status=e.RunEnd.COMPLETED), after=SECOND)
    assert run_seconds(run.now) == 8.0


def test_a_clock_that_was_set_back_makes_no_time_negative():
    run = RecordedRun(*tasks(1)).opened().play("T-01")
    run.resume(after=-60 * MINUTE)
    assert worked(run.now, run.now.started_at, run.at) == 0.0
    assert task_seconds(run.now, RecordedRun(*tasks(1)).now.tasks["T-01"]) == 0.0


def test_a_state_file_for_another_tool_leaves_it_out():
    run = stopped_for_an_hour().play("T-01", n=2, turn=1)
    run.at += 18 * SECOND
    run.approved("T-01", n=2).merged("T-01", 1, n=2)
    run.record(e.RunEnded(at=NOON, status=e.RunEnd.COMPLETED))
    [text] = project(run.now, {"state/p_state.json": "{}"}).values()
    assert msgspec.json.decode(text)["task_results"]["T-01"]["duration_seconds"] == 22.0
