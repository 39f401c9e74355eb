"""Who goes first: the longest way to the end, by what past runs took, and few meetings on files."""

from datetime import timedelta

from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.events.values import Usage
from windlass.core.plan import Stage, Task, critical_lengths, longest
from windlass.core.scheduler.estimates import Forecast, Range, forecast, learnt, seconds
from windlass.core.settings import Settings
from windlass.core.state import RunState, apply
from worlds import World, plan_of, writes

A = Task(id="a", title="a", complexity=2)
B = Task(id="b", title="b", complexity=5)


def ran() -> RunState:
    world = World(plan_of(A, B), {"a": writes("a", "1"), "b": writes("b", "1")})
    world.go()
    return world.state


def lasting(state: RunState, **minutes: float) -> RunState:
    """The run, had its Players worked that long and its Coaches not at all."""
    tasks = dict(state.tasks)
    for id_, amount in minutes.items():
        first = tasks[id_].attempts[0]
        end = first.started_at + timedelta(minutes=amount)
        attempt = replace(first, finished_at=end, coachings=())
        tasks[id_] = replace(tasks[id_], attempts=(attempt,))
    return replace(state, tasks=tasks)


def test_a_task_takes_what_it_took_and_a_new_one_what_its_like_took():  # B3
    past = lasting(ran(), a=1, b=9)
    c, d = Task(id="c", title="c", complexity=5), Task(id="d", title="d", complexity=1)
    told = learnt([past], plan_of(A, B, c, d))
    assert told == {"a": 60, "b": 540, "c": 540, "d": 300}
    assert learnt([], plan_of(A)) == {}
    unfinished = apply(None, World(plan_of(A), {}).first(None, None))
    assert learnt([unfinished], plan_of(A)) == {}


def test_reviews_are_work_too():
    state = ran()
    task = state.tasks["a"]
    review = replace(
        task.last.coachings[0],
        started_at=task.last.started_at,
        finished_at=task.last.started_at + timedelta(seconds=7),
    )
    attempt = replace(task.last, finished_at=None, coachings=(review,))
    assert seconds(state, replace(task, attempts=(attempt,))) == 7


def test_what_has_no_estimate_counts_as_much_as_the_others():
    plan = plan_of(A, B, Task(id="c", title="c", depends_on=("a",)))
    assert critical_lengths(plan, {"a": 10.0, "b": 30.0}) == {"a": 30.0, "b": 30.0, "c": 20.0}


def started(world: World, **estimates: float) -> list[str]:
    """Run, and tell in which order Players began."""
    told = tuple(e.Estimate(task=id_, seconds=amount) for id_, amount in estimates.items())
    first = replace(world.first(None, None), estimates=told)
    world.first = lambda _state, _settings: first  # type: ignore[method-assign]
    world.go()
    return [ev.task for ev in world.events if isinstance(ev, e.PlayerStarted)]


def test_the_longest_goes_first_where_estimates_say_so():
    plays = {"a": writes("a", "1"), "b": writes("b", "1")}
    one = Settings(checks=("test",), agents=1)
    assert started(World(plan_of(A, B), plays, settings=one), a=5.0, b=50.0) == ["b", "a"]
    assert started(World(plan_of(A, B), plays, settings=one)) == ["a", "b"]


def test_two_about_the_same_file_do_not_begin_together_where_another_may():
    tasks = (
        Task(id="a", title="a", files=("x",)),
        Task(id="b", title="b", files=("x",)),
        Task(id="c", title="c", files=("y",)),
    )
    plays = {id_: writes(id_, "1") for id_ in "abc"}
    world = World(plan_of(*tasks), plays, settings=Settings(checks=("test",), agents=2))
    assert started(world)[:2] == ["a", "c"]
    urgent = World(plan_of(*tasks), plays, settings=Settings(checks=("test",), agents=2))
    assert started(urgent, a=90.0, b=60.0, c=20.0)[:2] == ["a", "b"], "a preference, no fence"


def past(count: int, usage: Usage = Usage(cost_usd=0.5, input_tokens=9)) -> RunState:  # noqa: B008
    """A run whose tasks took 1, 2, 3 … minutes, and cost as much each."""
    names = [f"t{n}" for n in range(1, count + 1)]
    tasks = [
        Task(id=name, title=name, complexity=2 if n < 3 else 5) for n, name in enumerate(names)
    ]
    world = World(plan_of(*tasks), {name: writes(name, "1") for name in names})
    world.go()
    state = lasting(world.state, **{name: n for n, name in enumerate(names, 1)})
    return replace(
        state, tasks={id_: replace(each, spent=usage) for id_, each in state.tasks.items()}
    )


class TestForecast:  # issue 15, line 6
    def test_of_too_few_tasks_there_is_none(self):
        assert forecast([], plan_of(A), 3) == Forecast(tasks=0)
        assert forecast([past(2)], plan_of(A), 3) == Forecast(tasks=2)

    def test_it_is_the_middle_half_of_past_tasks(self):
        told = forecast([past(5)], plan_of(Task(id="x", title="x")), 1)
        assert told == Forecast(tasks=5, seconds=Range(120.0, 240.0), usd=Range(0.5, 0.5))

    def test_tasks_of_the_same_complexity_count_alone_if_they_are_enough(self):
        told = forecast([past(5)], plan_of(A), 1)
        assert told.seconds == Range(90.0, 150.0)

    def test_agents_work_at_the_same_time_as_far_as_the_order_allows(self):
        row = plan_of(A, Task(id="c", title="c", complexity=2, depends_on=("a",)))
        assert forecast([past(5)], row, 9).seconds == Range(180.0, 300.0)
        beside = plan_of(A, Task(id="c", title="c", complexity=2))
        assert forecast([past(5)], beside, 2).seconds == Range(90.0, 225.0)

    def test_a_cost_that_is_not_known_is_not_made_up(self):
        for usage in (Usage(), Usage(cost_usd=1, input_tokens=1, known=False)):
            told = forecast([past(3, usage)], plan_of(A), 1)
            assert (told.tasks, told.usd) == (3, None)
            assert told.seconds is not None

    def test_stages_come_one_after_the_other(self):
        a, b = replace(A, stage="1"), replace(B, stage="2")
        plan = replace(plan_of(a, b), stages=(Stage(name="1"), Stage(name="2")))
        assert longest(plan, {"a": 3.0, "b": 4.0}) == 7.0
        assert longest(plan_of(A, B), {"a": 3.0}) == 3.0
        odd = replace(plan, tasks=(replace(a, depends_on=("b",)), b))
        assert longest(odd, {"a": 3.0, "b": 4.0}) == 7.0
