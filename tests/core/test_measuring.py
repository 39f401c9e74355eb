"""Facts as spans and counts: the same facts give the same, and nothing is told twice."""  # K9

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from replay.make_golden import HERE
from windlass.core.events import codec
from windlass.core.events import model as e
from windlass.core.plan import Task
from windlass.core.settings import Settings
from windlass.core.state import apply, runs
from windlass.ports import Report, Span
from windlass.testing.agents import approval
from windlass.views import telemetry_names as n
from windlass.views.bills import bills, totals, whole
from windlass.views.measuring import Emitted, Measuring
from windlass.views.tracing import Context, Tracing, context_of
from worlds import NOON, World, plan_of, writes

A, B = Task(id="a", title="First"), Task(id="b", title="Second", depends_on=("a",))
OUTER = Context(trace="4bf92f3577b34da6a3ce929d0e0e4736", span="00f067aa0ba902b7")


def told(events: Iterable[e.Event], following: Measuring | None = None) -> list[Emitted]:
    """What one who follows from the beginning is told of each fact."""
    following, state = following or Measuring("p", provider="anthropic"), None
    found: list[Emitted] = []
    for event in events:
        state = apply(state, event)
        found.append(following.see(event, state))
    return found


def spans_of(events: Iterable[e.Event], following: Measuring | None = None) -> list[Span]:
    return [span for each in told(events, following) for span in each.spans]


def counted(events: Iterable[e.Event], name: str) -> float:
    measured = [each for one in told(events) for each in one.measured]
    return sum(each.value for each in measured if each.instrument.name == name)


def by_type(events: Iterable[e.Event]) -> dict[str, float]:
    """The cost that was counted, spent and estimated apart."""
    sums: dict[str, float] = {}
    for each in (m for t in told(events) for m in t.measured if m.instrument is n.COST_TOTAL):
        kind = str(each.attributes["type"])
        sums[kind] = sums.get(kind, 0.0) + each.value
    return sums


def assert_nested(spans: list[Span], outer: str | None = None) -> None:
    """Every span lies in its parent, of the kind it belongs to, and is told once."""
    by_id = {span.id: span for span in spans}
    assert len(by_id) == len(spans)
    inside = {n.TASK: n.MILESTONE, n.TURN: n.TASK, n.PLAYER: n.TURN, n.COACH: n.TURN}
    for span in spans:
        assert span.start <= span.end
        if span.name == n.MILESTONE:
            assert span.parent == outer
            continue
        assert span.parent is not None
        parent = by_id[span.parent]
        assert parent.name == inside[span.name]
        assert parent.start <= span.start
        assert span.end <= parent.end


def world(**more: object) -> World:
    made = World(
        plan_of(A, B),
        {"a": writes("a", "1"), "b": writes("b", "1")},
        settings=Settings(checks=("test",)),
        **more,  # pyright: ignore[reportArgumentType]
    )
    made.clock.time = NOON
    return made


def test_milestone_task_turn_and_agents():
    ran = world()
    ran.go()
    spans = spans_of(ran.events)
    assert_nested(spans)
    assert Counter(span.name for span in spans) == {
        n.MILESTONE: 1,
        n.TASK: 2,
        n.TURN: 2,
        n.PLAYER: 2,
        n.COACH: 2,
    }
    assert len({span.trace for span in spans}) == 1
    milestone = spans[-1]
    assert milestone.attributes == {
        "milestone.id": "p",
        "milestone.total_tasks": 2,
        "milestone.resume": False,
        "milestone.status": "completed",
        "milestone.tasks_completed": 2,
        "milestone.tasks_stale": 0,
        "milestone.total_cost_usd": 0.03,
        "milestone.total_tokens": 0,
        "windlass.run.id": "r1",
        "windlass.cost.estimated_usd": 0.0,
    }
    task = next(span for span in spans if span.name == n.TASK)
    assert task.attributes == {
        "task.id": "a",
        "task.title": "First",
        "task.status": "completed",
        "claude.tokens": 0,
        "claude.cost_usd": 0.015,
        "windlass.cost.estimated_usd": 0.0,
    }
    player, coach, turn, *_ = spans
    assert player.attributes["gen_ai.agent.name"] == "Player"
    assert player.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert player.attributes["gen_ai.provider.name"] == "anthropic"
    assert player.attributes["gen_ai.request.model"] == "claude-sonnet-4-5"
    assert coach.name == "invoke_agent Coach"
    assert turn.attributes["turn.number"] == 1
    assert turn.attributes["turn.outcome"] == "approved"
    assert all(span.error is None for span in spans)


def test_the_same_facts_give_the_same_spans_and_the_run_names_the_trace():
    ran = world()
    ran.go()
    assert told(ran.events) == told(ran.events)
    first, *rest = ran.events
    assert isinstance(first, e.RunStarted)
    other = spans_of([replace(first, run="r2"), *rest])
    one = spans_of(ran.events)
    assert {span.trace for span in other} != {span.trace for span in one}
    assert not {span.id for span in other} & {span.id for span in one}


def crash_points() -> int:
    return len(world().go().names)


@pytest.mark.parametrize("point", range(crash_points()))
def test_a_crash_anywhere_leaves_no_span_open_and_counts_nothing_twice(point: int):  # B4
    """Each process tells of its own facts; together that is what one would have told."""
    ran = world()
    ran.go(crash_at=point)
    after = len(ran.events)
    ran.clock.time += timedelta(hours=8)
    ran.go()
    events = ran.events
    second, state = Measuring("p", provider="anthropic"), None
    for event in events[:after]:
        state = apply(state, event)
        second.see(event, state)
    own: list[Emitted] = []
    for event in events[after:]:
        state = apply(state, event)
        own.append(second.see(event, state))
    together = [*told(events[:after]), *own]
    assert together == told(events)
    spans = [span for each in together for span in each.spans]
    assert_nested(spans)
    resumed = [s.attributes["milestone.resume"] for s in spans if s.name == n.MILESTONE]
    if after and not isinstance(events[after - 1], e.RunEnded):
        assert resumed == [False, True]
        dead = [s for s in spans if s.attributes.get("error.type") == "crashed"]
        assert n.MILESTONE in {s.name for s in dead}
        assert all(s.end < NOON + timedelta(hours=4) for s in dead), "when it last spoke"
    assert counted(events, "orchestrator_tasks_total") == 2
    spent = counted(events, "orchestrator_cost_usd_total")
    assert spent == pytest.approx(whole(bills("p", events)).cost_usd, abs=1e-6)
    durations = [
        m.value for t in together for m in t.measured if m.instrument is n.TASK_DURATION and m.times
    ]
    assert len(durations) == 2
    assert max(durations) < 4 * 3600, "nobody worked while nobody hauled"


@pytest.mark.parametrize("journal", sorted(HERE.glob("*.jsonl")), ids=lambda path: path.stem)
def test_whatever_happens_spans_are_whole_and_the_counts_those_of_the_bills(journal):
    events = [codec.decode(line) for line in journal.read_bytes().splitlines()]
    spans = spans_of(events)
    assert_nested(spans)
    begun = sum(isinstance(event, e.RunStarted | e.RunResumed) for event in events)
    left = 0 if is_at_rest(events) else 1
    assert len([s for s in spans if s.name == n.MILESTONE]) == begun - left
    bill = whole(bills("p", events))
    if all(state.ended for state in runs(events)):
        assert counted(events, "orchestrator_cost_usd_total") == pytest.approx(
            bill.cost_usd, abs=1e-6
        )
        tokens = bill.input_tokens + bill.output_tokens + bill.cached_tokens
        assert counted(events, "orchestrator_tokens_total") == tokens


def is_at_rest(events: list[e.Event]) -> bool:
    turning = [ev for ev in events if isinstance(ev, e.RunStarted | e.RunResumed | e.RunEnded)]
    return isinstance(turning[-1], e.RunEnded)


def test_a_turn_that_is_returned_and_one_that_goes_on_after_a_failure():
    tries = iter([Report(failure=e.Failure.STALLED, message="no\x1b[31m word"), None, None])

    def play(turn_n: int, turn: int, files: dict[str, str]) -> Report | None:
        files["a"] = f"{turn}"
        return next(tries)

    ran = World(
        plan_of(A),
        {"a": play},
        rule=lambda _c, files: files.get("a", "2") == "2",
        settings=Settings(checks=("test",)),
    )
    ran.go()
    spans = spans_of(ran.events)
    assert_nested(spans)
    turns = [s.attributes for s in spans if s.name == n.TURN]
    assert [(t["turn.number"], t["turn.outcome"]) for t in turns] == [
        (1, "returned: checks"),
        (2, "approved"),
    ]
    players = [s for s in spans if s.name == n.PLAYER]
    assert [s.attributes.get("error.type") for s in players] == ["stalled", None, None]
    assert players[0].error == "no [31m word", "it cannot move a cursor"
    assert players[0].parent == players[1].parent, "the same turn goes on"


def test_what_is_abandoned_or_needs_a_person():
    plays = {"a": lambda *_: None, "b": writes("b", "1")}
    ran = World(plan_of(A, B), plays, settings=Settings(max_turns=1))
    ran.go()
    spans = spans_of(ran.events)
    assert_nested(spans)
    task = next(s for s in spans if s.name == n.TASK)
    assert (task.attributes["task.status"], task.attributes["error.type"]) == ("abandoned", "code")
    assert spans[-1].attributes["milestone.status"] == "failed"
    assert spans[-1].attributes["error.type"] == "failed"
    assert counted(ran.events, "orchestrator_tasks_total") == 1
    stuck = World(plan_of(A), {"a": lambda *_: Report(failure=e.Failure.STALLED, message="no")})
    stuck.go()
    spans = spans_of(stuck.events)
    assert spans[-2].attributes["task.status"] == "needs_human"
    assert counted(stuck.events, "orchestrator_tasks_total") == 1
    assert [s.error for s in spans[-3:]] == [None, None, None]


def test_a_run_that_is_stopped_and_a_task_that_is_reset():
    ran = world()
    ran.go()
    events = ran.events
    player = next(i for i, ev in enumerate(events) if isinstance(ev, e.PlayerStarted))
    begun = events[: player + 1]
    at = NOON + timedelta(hours=1)
    stopped = spans_of([*begun, e.RunEnded(at=at, status=e.RunEnd.STOPPED)])
    assert_nested(stopped)
    assert [(s.name, s.attributes.get("error.type")) for s in stopped] == [
        (n.PLAYER, "interrupted"),
        (n.TURN, None),
        (n.TASK, None),
        (n.MILESTONE, None),
    ]
    failed = e.PlayerFailed(
        at=at, task="a", n=1, failure=e.Failure.CRASHED, message="", usage=e.Usage()
    )
    reset = [*begun, failed, e.TaskReset(at=at, task="a", by="Ada")]
    assert_nested(
        [*spans_of(reset), *spans_of([*reset, e.RunEnded(at=at, status=e.RunEnd.PAUSED)])[-1:]]
    )
    assert [s.name for s in spans_of(reset)] == [n.PLAYER, n.TURN, n.TASK]
    # After the end nobody works, whatever a person says to the run.
    after = [*reset, e.RunEnded(at=at, status=e.RunEnd.STOPPED)]
    later = e.TaskResetUndone(at=at, task="a", by="Ada")
    assert spans_of([*after, later]) == spans_of(after)
    # A clock that was set back makes no span end before it began.
    back = e.RunEnded(at=NOON - timedelta(days=1), status=e.RunEnd.STOPPED)
    assert_nested(spans_of([*begun, back]))


def test_what_the_meter_says_is_told_of_the_agent_and_what_a_killed_request_is_estimated_at():
    ran = world()
    ran.metered = True
    ran.go()
    events = ran.events
    player = next(i for i, ev in enumerate(events) if isinstance(ev, e.PlayerStarted))
    usage = e.Usage(
        cost_usd=0.5, input_tokens=3, output_tokens=5, cache_read_tokens=7, cache_write_tokens=11
    )
    shared = {"at": events[player].at, "task": "a"}
    spent: list[e.Event] = [
        e.SpendReserved(**shared, id="1", role="player", model="m-9", usd=2.0),
        e.SpendSettled(**shared, id="1", usage=usage),
        e.SpendReserved(**shared, id="2", role="player", model="m-9", usd=2.0),
    ]
    with_money = [*events[: player + 1], *spent, *events[player + 1 :]]
    spans = spans_of(with_money)
    agent = next(s for s in spans if s.name == n.PLAYER)
    assert agent.attributes["gen_ai.request.model"] == "claude-sonnet-4-5", "it said so last"
    assert agent.attributes["gen_ai.usage.input_tokens"] == 21
    assert agent.attributes["gen_ai.usage.output_tokens"] == 5
    assert agent.attributes["gen_ai.usage.cache_read.input_tokens"] == 7
    assert agent.attributes["claude.tokens"] == 26
    assert spans[-1].attributes["milestone.total_cost_usd"] == 1.03
    assert counted(with_money, "orchestrator_cost_usd_total") == pytest.approx(1.03)
    assert by_type(with_money) == pytest.approx({"spent": 0.53, "estimated": 0.5})
    assert spans[-1].attributes["windlass.cost.estimated_usd"] == 0.5
    assert agent.attributes["windlass.cost.estimated_usd"] == 0.0, "it was written off later"
    bill = totals(bills("p", with_money), "plan")["p"]
    assert by_type(with_money)["estimated"] == bill.estimated_usd, "as in `windlass costs`"
    assert counted(with_money, "orchestrator_tokens_total") == 26
    assert counted(with_money, "gen_ai.client.token.usage") == 26
    of_meter = [m for t in told(with_money) for m in t.measured if m.instrument is n.TOKEN_USAGE]
    assert {m.attributes["gen_ai.operation.name"] for m in of_meter} == {"chat"}


def test_what_is_reserved_is_shown_while_a_request_is_in_flight_and_no_longer():  # B6
    ran = world()
    ran.metered = True
    ran.go()
    player = next(i for i, ev in enumerate(ran.events) if isinstance(ev, e.PlayerStarted))
    shared = {"at": ran.events[player].at, "task": "a"}
    asked = {"role": "player", "model": "m"}
    seen = e.Usage(cost_usd=0.5, known=False)
    spending: list[e.Event] = [
        e.SpendReserved(**shared, **asked, id="1", usd=2.0),
        e.SpendStreamed(**shared, id="1", usage=seen),
        e.SpendSettled(**shared, id="1", usage=e.Usage(cost_usd=0.1)),
        e.SpendReserved(**shared, **asked, id="2", usd=2.0),
        e.SpendReserved(**shared, **asked, id="3", usd=1.0),
    ]
    events = [*ran.events[: player + 1], *spending, *ran.events[player + 1 :]]
    measured = [m for t in told(events) for m in t.measured]
    assert {m.instrument.kind for m in measured if "reserved" in m.instrument.name} == {"gauge"}
    expected = [m.value for m in measured if m.instrument is n.RESERVED]
    most = [m.value for m in measured if m.instrument is n.RESERVED_MOST]
    assert expected == pytest.approx([0.0, 0.2, 0.5, 0.0, 0.1, 0.2, 0.0])
    assert most == pytest.approx([0.0, 2.0, 2.0, 0.0, 2.0, 3.0, 0.0])
    labels = [m.attributes for m in measured if m.instrument is n.RESERVED]
    assert all(each == {"milestone": "p"} for each in labels)


def test_a_run_that_is_part_of_something_larger_and_what_agents_are_passed():
    ran = world()
    ran.go()
    following, state = Measuring("p", OUTER), None
    assert following.working("a", "player") is None
    seen: set[str] = set()
    for event in ran.events:
        state = apply(state, event)
        following.see(event, state)
        if isinstance(event, e.PlayerStarted):
            place = following.working(event.task, "player")
            assert place is not None
            assert context_of(place.traceparent) == place
            seen.add(place.span)
    spans = spans_of(ran.events, Measuring("p", OUTER))
    assert_nested(spans, OUTER.span)
    assert {span.trace for span in spans} == {OUTER.trace}
    assert seen == {span.id for span in spans if span.name == n.PLAYER}


def test_whoever_does_not_sample_is_followed_in_that():
    unsampled = context_of(f"00-{OUTER.trace}-{OUTER.span}-00")
    assert unsampled is not None
    ran = world()
    ran.go()
    tracing, state = Tracing(unsampled), None
    for event in ran.events:
        state = apply(state, event)
        tracing.see(event, state)
        if (place := tracing.working("a", "player")) is not None:
            assert place.traceparent.endswith("-00")
            return
    pytest.fail("no Player worked")


@pytest.mark.parametrize(
    ("header", "known"),
    [
        (OUTER.traceparent, True),
        (f" {OUTER.traceparent.upper()} ", True),
        (f"cc-{OUTER.trace}-{OUTER.span}-01-what-comes-later", True),
        (f"00-{OUTER.trace}-{OUTER.span}-01-more", False),
        (f"ff-{OUTER.trace}-{OUTER.span}-01", False),
        (f"00-{'0' * 32}-{OUTER.span}-01", False),
        (f"00-{OUTER.trace}-{'0' * 16}-01", False),
        ("00-4bf9-00f0-01", False),
        ("", False),
    ],
)
def test_a_header_is_read_as_the_standard_asks_for(header: str, known: bool):  # noqa: FBT001
    assert (context_of(header) is not None) is known


def test_what_agents_say_is_told_only_where_that_was_asked_for():
    ran = world(coach=lambda *_: None)
    ran.go()
    silent = spans_of(ran.events)
    assert not any(n.MESSAGES in span.attributes for span in silent)
    open_ = spans_of(ran.events, Measuring("p", contents=True))
    said = [str(s.attributes[n.MESSAGES]) for s in open_ if n.MESSAGES in s.attributes]
    assert "did a" in said[0]
    assert approval(ran.agent.briefs[-1]).summary in said[1]


def test_an_agent_that_used_no_tokens_is_not_counted():
    ran = world()
    ran.go()
    assert counted(ran.events, "gen_ai.client.token.usage") == 0


def test_a_task_that_is_merged_in_another_stretch_than_it_was_begun():
    ran = world()
    ran.go()
    events = ran.events
    move = next(i for i, ev in enumerate(events) if isinstance(ev, e.TipMoveStarted))
    cut = events[: move + 1]
    at = events[move].at + timedelta(hours=9)
    resumed = e.RunResumed(at=at, settings=ran.settings, sandbox="none")
    merged = events[move + 1]
    assert isinstance(merged, e.TaskMerged)
    again = [*cut, resumed, replace(events[move], at=at), replace(merged, at=at)]
    end = e.RunEnded(at=at, status=e.RunEnd.STOPPED)
    spans = spans_of([*again, end])
    assert_nested(spans)
    tasks = [s.attributes for s in spans if s.name == n.TASK]
    assert [t["task.status"] for t in tasks][-1] == "completed"
    assert counted([*again, end], "orchestrator_task_duration_seconds") < 3600


def test_a_turn_is_never_lost_nor_a_task_ended_twice():
    ran = world()
    ran.go()
    events = ran.events
    player = next(i for i, ev in enumerate(events) if isinstance(ev, e.PlayerStarted))
    tracing, state = Tracing(), None
    for event in events[: player + 1]:
        state = apply(state, event)
        tracing.see(event, state)
    assert state is not None
    # The table allows neither of these; whatever it comes to allow, no span stays behind.
    ended = tracing.see(replace(events[player], turn=2, n=2), state)
    assert [(s.name, s.attributes.get("turn.outcome")) for s in ended] == [
        (n.PLAYER, None),
        (n.TURN, "left"),
    ]
    reset = e.TaskReset(at=NOON, task="b", by="Ada")
    assert tracing.see(reset, state) == []
