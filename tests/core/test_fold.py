"""The fold refuses what cannot have happened, and reads every run of a journal."""

import pytest

from windlass.core.events import model as e
from windlass.core.plan import Task
from windlass.core.state import Phase, apply, fold, runs
from windlass.core.state.transitions import (
    EDITED,
    IN_TIP,
    RUN_TRANSITIONS,
    STATUS,
    TASK_TRANSITIONS,
    UNDER_WAY,
    RunPhase,
)
from windlass.errors import GitFailed, IllegalEvent, JournalDamaged, PlanError, WindlassError
from worlds import NOON, World, plan_of, writes


def finished_world() -> World:
    world = World(plan_of(Task(id="a", title="a")), {"a": writes("a", "1")})
    world.go()
    return world


def test_no_events_no_state():
    assert fold([]) is None
    assert runs([]) == []


def test_every_prefix_of_a_run_folds():
    events = finished_world().events
    for end in range(1, len(events) + 1):
        assert fold(events[:end]) is not None


def test_folding_is_applying_one_by_one():
    world = finished_world()
    state = None
    for event in world.events:
        state = apply(state, event)
    assert state == world.state


def test_a_journal_may_hold_several_runs():
    events = finished_world().events
    both = runs([*events, *events[:4]])
    assert [state.ended for state in both] == [e.RunEnd.COMPLETED, None]
    assert fold([*events, *events[:4]]) == both[1]


def test_nothing_comes_before_the_start():
    stop = e.StopRequested(at=NOON, by="me")
    with pytest.raises(IllegalEvent, match="before any run"):
        apply(None, stop)
    with pytest.raises(IllegalEvent, match="before any run"):
        runs([stop])


def test_an_event_that_the_table_does_not_list_is_a_defect():
    state = finished_world().state
    with pytest.raises(IllegalEvent, match="'a' cannot take TimerFired while merged"):
        apply(state, e.TimerFired(at=NOON, task="a"))
    with pytest.raises(IllegalEvent, match="there is no task 'x'"):
        apply(state, e.TimerFired(at=NOON, task="x"))
    with pytest.raises(IllegalEvent, match="the run cannot take BaselineFinished while open"):
        apply(state, e.BaselineFinished(at=NOON, commit="c", results=()))


def test_the_tables_are_whole():
    assert set(TASK_TRANSITIONS) == set(Phase) == set(STATUS)
    assert set(RUN_TRANSITIONS) == set(RunPhase)
    reached = {to for moves in TASK_TRANSITIONS.values() for to in moves.values()}
    assert reached | set(EDITED.values()) == set(Phase)
    assert set(EDITED) == set(EDITED.values()) == IN_TIP, "an edit can be taken back"


def test_a_resumed_run_has_nothing_under_way():
    """Every phase with an effect goes back to one without, and only those do not stay."""
    for phase in UNDER_WAY:
        back = TASK_TRANSITIONS[phase][e.RunResumed]
        assert back not in UNDER_WAY


def test_a_moved_base_is_known():
    world = finished_world()
    resumed = e.RunResumed(at=NOON, settings=world.settings, sandbox="none", base_moved_to="abc")
    assert apply(world.state, resumed).base_moved_to == "abc"


def test_errors_say_what_and_the_cure():
    assert str(WindlassError("it broke", hint="mend it")) == "it broke; mend it"
    assert str(WindlassError("it broke")) == "it broke"
    assert str(PlanError("bad", path="p.md", line=3)) == "p.md:3: bad"
    assert str(PlanError("bad", path="p.md")) == "p.md: bad"
    assert str(PlanError("bad")) == "bad"
    assert JournalDamaged("cut", position=7).position == 7
    failed = GitFailed(("status",), 128, "first\nfatal: no\n")
    assert "`git status` failed with 128: fatal: no" in str(failed)
    assert "no message" in str(GitFailed(("x",), 1, ""))
    assert "killed by signal 9" in str(GitFailed(("x",), -9, ""))
