"""Time in which nobody hauled a run is nobody's work: no screen, file or figure counts it."""  # K6

from datetime import timedelta

import msgspec

from tellings import MINUTE, SECOND, Told, tasks
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


def stopped_for_an_hour() -> Told:
    """Four seconds of a Player, a stop, an hour of nothing, and the run is taken over."""
    told = Told(*tasks(1, max_turns=2)).opened().play("T-01")
    told.tell(e.StopRequested(at=NOON, by="SIGINT"), after=4 * SECOND).left("T-01")
    told.tell(e.RunEnded(at=NOON, status=e.RunEnd.STOPPED, reason="stopped by SIGINT"))
    return told.resume(after=60 * MINUTE)


def done_of(told: Told) -> Line:
    line = line_of(told.events[-1], told.now)
    assert line is not None
    return line


class TestStopped:
    def test_nobody_worked_while_the_run_was_stopped(self):
        told = stopped_for_an_hour().play("T-01", n=2, turn=1)
        told.at += 18 * SECOND
        told.approved("T-01", n=2).merged("T-01", 1, n=2)
        assert done_of(told).word == "DONE"
        assert done_of(told).took == 22.0
        told.tell(e.RunEnded(at=NOON, status=e.RunEnd.COMPLETED))
        assert run_seconds(told.now) == task_seconds(told.now, told.now.tasks["T-01"]) == 22.0
        assert progress(told.now, 1).metrics.elapsed_seconds == 22.0
        [summary] = [x for x in closing(told.now, plan="p", workspaces="w") if x.word == "Summary"]
        assert summary.took == 22.0
        notice = notice_of(told.events[-1], told.now)
        assert notice is not None
        assert "· 22s ·" in notice.text
        assert seconds(told.now, told.now.tasks["T-01"]) == 22.0, "and what is learnt from it"

    def test_the_report_and_the_figures_say_the_same(self):
        told = stopped_for_an_hour().play("T-01", n=2, turn=1)
        told.at += 18 * SECOND
        told.approved("T-01", n=2).merged("T-01", 1, n=2)
        told.tell(e.RunEnded(at=NOON, status=e.RunEnd.COMPLETED))
        entries = [e.Entry(seq=n, event=event) for n, event in enumerate(told.events, 1)]
        report = report_of(entries, plan="p", workspaces="w")
        assert report is not None
        assert (report.elapsed, report.tasks[0].seconds, report.unattended) == (22.0, 22.0, 3600.0)
        measuring, state = Measuring("p"), None
        figures: list[float] = []
        for event, state in told.history:
            for each in measuring.see(event, state).measured:
                figures += [each.value] if each.instrument is TASK_DURATION and each.value else []
        assert figures == [22.0]

    def test_the_footer_leaves_it_out_too(self):
        told = stopped_for_an_hour()
        told.tell(e.HelpNeeded(at=NOON, task="T-01", question="Which?"))
        told.tell(e.RunEnded(at=NOON, status=e.RunEnd.NEEDS_HUMAN), after=3 * SECOND)
        told.tell(e.TaskTaken(at=NOON, task="T-01", n=2, turn=1, start="c", onto=None, by="Ada"))
        told.resume(after=60 * MINUTE)
        told.at += 2 * SECOND
        assert "─ 0m09s ─" in told.shown()
        assert "0m02s" in told.shown().splitlines()[1]
        assert "T-01 taken 0m02s" in heartbeat(told.now, told.views, told.at)


class TestReturned:
    def test_what_is_returned_tells_the_time_of_its_own_turn(self):
        told = Told(*tasks(1, max_turns=1)).opened().play("T-01")
        told.at += 20 * SECOND
        told.finish("T-01").back("T-01")
        assert done_of(told).took == 20.0
        told.tell(e.TaskAbandoned(at=NOON, task="T-01", reason="not approved"))
        assert done_of(told).took == 20.0
        told.tell(e.RunEnded(at=NOON, status=e.RunEnd.FAILED, reason="T-01 abandoned"))
        # The person comes back after eight minutes, and it takes a while to go on.
        told.tell(e.TaskReopened(at=NOON, task="T-01", by="you"), after=8 * MINUTE)
        told.resume(after=MINUTE).play("T-01", n=2, turn=2)
        told.at += 4 * SECOND
        told.finish("T-01", n=2).back("T-01")
        assert done_of(told).word == "RETURNED"
        assert done_of(told).took == 4.0
        assert task_seconds(told.now, told.now.tasks["T-01"]) == 24.0

    def test_a_turn_that_is_repeated_is_one_turn(self):
        told = stopped_for_an_hour().play("T-01", n=2, turn=1)
        told.at += 6 * SECOND
        told.finish("T-01", n=2).back("T-01")
        assert turn_seconds(told.now, told.now.tasks["T-01"]) == 10.0


def test_a_run_whose_process_died_rested_from_the_last_thing_it_recorded():
    told = Told(*tasks(1)).opened().play("T-01")
    told.tell(
        e.SpendReserved(at=NOON, id="1", task="T-01", role="player", model="m", usd=1.0),
        after=5 * SECOND,
    )
    told.resume(after=timedelta(days=2))
    assert run_seconds(told.now) == 5.0
    assert seconds(told.now, told.now.tasks["T-01"]) == 5.0, "though it ended with the resume"


def test_what_was_given_up_took_what_it_took_however_long_ago():
    told = Told(*tasks(2, max_turns=1)).opened().play("T-01").play("T-02")
    told.at += 6 * SECOND
    told.finish("T-01").back("T-01")
    told.tell(e.TaskAbandoned(at=NOON, task="T-01", reason="not approved"))
    said = done_of(told).took
    told.at += 9 * MINUTE
    told.finish("T-02")
    [line, *_] = closing(told.now, plan="p", workspaces="w")
    assert (line.word, line.took) == ("ABANDONED", said)


def test_a_landing_days_later_takes_as_long_as_it_takes():
    told = Told(*tasks(1)).opened().approve("T-01").merged("T-01", 1)
    told.tell(e.RunEnded(at=NOON, status=e.RunEnd.COMPLETED), after=7 * SECOND)
    told.tell(e.LandRequested(at=NOON, by="windlass land"), after=timedelta(days=3))
    told.tell(e.RunEnded(at=NOON, status=e.RunEnd.COMPLETED), after=SECOND)
    assert run_seconds(told.now) == 8.0


def test_a_clock_that_was_set_back_makes_no_time_negative():
    told = Told(*tasks(1)).opened().play("T-01")
    told.resume(after=-60 * MINUTE)
    assert worked(told.now, told.now.started_at, told.at) == 0.0
    assert task_seconds(told.now, Told(*tasks(1)).now.tasks["T-01"]) == 0.0


def test_a_state_file_for_another_tool_leaves_it_out():
    told = stopped_for_an_hour().play("T-01", n=2, turn=1)
    told.at += 18 * SECOND
    told.approved("T-01", n=2).merged("T-01", 1, n=2)
    told.tell(e.RunEnded(at=NOON, status=e.RunEnd.COMPLETED))
    [text] = project(told.now, 9).values()
    assert msgspec.json.decode(text)["task_results"]["T-01"]["duration_seconds"] == 22.0
