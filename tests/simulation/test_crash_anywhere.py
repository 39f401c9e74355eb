"""Killed at any point and started again, a run ends as if nothing had happened."""  # B4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windlass.events import model as e
from windlass.plan import Task
from windlass.ports import Report
from windlass.settings import Settings
from windlass.state import RunState
from windlass.testing.memory import Files, Play
from worlds import World, plan_of


@st.composite
def worlds(draw: st.DrawFn):
    """Up to six tasks, some red at first, some sharing a file, some failing to connect."""
    count = draw(st.integers(1, 6))
    tasks: list[Task] = []
    plays: dict[str, Play] = {}
    for i in range(count):
        deps = draw(st.sets(st.sampled_from([t.id for t in tasks]), max_size=2)) if tasks else set()
        task_id = f"t{i}"
        tasks.append(Task(id=task_id, title=task_id, depends_on=tuple(sorted(deps))))
        plays[task_id] = _play(
            task_id,
            red_turns=draw(st.integers(0, 2)),
            # Three may conflict over a file: with more, a task could use up its rounds.
            shared=i < 3 and draw(st.booleans()),
            failures=draw(st.sampled_from([(), (e.Failure.TRANSIENT,), (e.Failure.STALLED,)])),
        )
    agents = draw(st.integers(1, 3))

    def make() -> World:
        for play in plays.values():
            play.seen.clear()  # type: ignore[attr-defined]
        return World(
            plan_of(*tasks),
            plays,
            rule=_no_red_and_no_markers,
            settings=Settings(checks=("test",), agents=agents),
        )

    return make


def _play(task_id: str, *, red_turns: int, shared: bool, failures: tuple[e.Failure, ...]) -> Play:
    seen: list[int] = []

    def play(n: int, turn: int, files: dict[str, str]) -> Report | None:
        files[f"partial-{task_id}"] = "half"
        seen.append(n)
        if len(seen) <= len(failures):
            return Report(failure=failures[len(seen) - 1], message="as scripted")
        files[f"partial-{task_id}"] = "whole"
        files[f"{task_id}.py"] = "RED" if turn <= red_turns else f"done in {turn}"
        if shared:
            lines = {
                line
                for line in files.get("shared", "").split("\n")
                if line and not line.startswith(("<", "=", ">")) and line != "None"
            }
            files["shared"] = "\n".join(sorted({*lines, task_id}))
        return None

    play.seen = seen  # type: ignore[attr-defined]
    return play


def _no_red_and_no_markers(_command: str, files: Files) -> bool:
    return "RED" not in files.values() and not any("<<<" in text for text in files.values())


def outcome(world: World) -> object:
    """What must not depend on how often the process died."""
    state = world.state
    return (
        state.ended,
        {task.id: (task.phase, task.turn) for task in state.tasks.values()},
        dict(world.repository.files(state.tip)),
    )


def assert_sound(world: World) -> None:
    state = world.state
    merged = [event.task for event in world.events if isinstance(event, e.TaskMerged)]
    assert sorted(merged) == sorted(state.tasks), "each task is merged exactly once"
    assert world.repository.tip == state.tip
    ancestry = set(world.repository.ancestry(state.tip))
    for task in state.tasks.values():
        assert task.last.commit in ancestry, "what was approved is in the tip"
    finished = [(ev.task, ev.n) for ev in world.events if isinstance(ev, e.PlayerFinished)]
    assert len(finished) == len(set(finished))
    assert len(world.agent.calls) == len(set(world.agent.calls)), "no start is paid twice"


def unbroken(make) -> tuple[World, int]:
    world = make()
    return world, world.go().reached


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(make=worlds(), data=st.data())
def test_a_crash_at_any_point_changes_nothing_but_time(make, data: st.DataObject):
    """Restart folds to the state of an unbroken run, whatever the point."""
    world, points = unbroken(make)
    assert world.state.ended is e.RunEnd.COMPLETED, world.state.reason
    assert_sound(world)
    expected = outcome(world)
    for at in data.draw(st.sets(st.integers(1, points), min_size=1, max_size=12)):
        crashed = make()
        crashed.go(crash_at=at)
        crashed.go()
        assert outcome(crashed) == expected, f"crashed at {at}"
        assert_sound(crashed)


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(make=worlds(), crashes=st.lists(st.integers(1, 60), min_size=2, max_size=6))
def test_crashing_again_and_again_changes_nothing_either(make, crashes: list[int]):
    expected = outcome(unbroken(make)[0])
    world = make()
    for at in crashes:
        world.go(crash_at=at)
        if world.events and world.state.ended is not None:
            break
    if not world.events or world.state.ended is None:
        world.go()
    assert outcome(world) == expected
    assert_sound(world)


def test_every_crash_point_of_a_diamond():
    """Every point, not a sample: a diamond of four with two agents."""
    tasks = (
        Task(id="a", title="a"),
        Task(id="b", title="b", depends_on=("a",)),
        Task(id="c", title="c", depends_on=("a",)),
        Task(id="d", title="d", depends_on=("b", "c")),
    )

    def make() -> World:
        plays = {t.id: _play(t.id, red_turns=t.id == "b", shared=True, failures=()) for t in tasks}
        return World(
            plan_of(*tasks),
            plays,
            rule=_no_red_and_no_markers,
            settings=Settings(checks=("test",), agents=2),
        )

    world, points = unbroken(make)
    expected = outcome(world)
    assert points > 60
    for at in range(1, points + 1):
        crashed = make()
        crashed.go(crash_at=at)
        paid = len(crashed.agent.calls)
        finished = sum(isinstance(ev, e.PlayerFinished) for ev in crashed.events)
        crashed.go()
        assert outcome(crashed) == expected, f"crashed at point {at}"
        assert_sound(crashed)
        # What was recorded as finished is never paid again: only starts under way are repeated.
        assert len(crashed.agent.calls) - len(world.agent.calls) <= paid - finished


def test_resuming_a_completed_run_does_nothing_more():
    world = World(
        plan_of(Task(id="a", title="a")), {"a": _play("a", red_turns=0, shared=False, failures=())}
    )
    world.go()
    before = world.state
    world.go()
    assert world.agent.calls == [("a", 1)]
    assert world.state.tip == before.tip


def ended(state: RunState) -> e.RunEnd | None:
    return state.ended
