"""Random plans and Players for crash tests, and the outcome that no crash may change."""

from hypothesis import strategies as st

from windlass.core.events import model as e
from windlass.core.plan import Task
from windlass.core.settings import Settings
from windlass.ports import Report
from windlass.testing.memory import Files, Play
from worlds import World, plan_of


@st.composite
def worlds(draw: st.DrawFn):
    """Up to six tasks: some fail their checks at first, some share a file, some fail to connect."""
    count = draw(st.integers(1, 6))
    tasks: list[Task] = []
    plays: dict[str, Play] = {}
    for i in range(count):
        deps = draw(st.sets(st.sampled_from([t.id for t in tasks]), max_size=2)) if tasks else set()
        task_id = f"t{i}"
        tasks.append(Task(id=task_id, title=task_id, depends_on=tuple(sorted(deps))))
        plays[task_id] = play_of(
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
            rule=no_red_and_no_markers,
            settings=Settings(checks=("test",), agents=agents),
        )

    return make


def play_of(task_id: str, *, red_turns: int, shared: bool, failures: tuple[e.Failure, ...]) -> Play:
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


def no_red_and_no_markers(_command: str, files: Files) -> bool:
    return "RED" not in files.values() and not any("<<<" in text for text in files.values())


def outcome(world: World) -> object:
    """What must be the same however often the process died."""
    state = world.state
    return (
        state.ended,
        {task.id: (task.phase, task.turn) for task in state.tasks.values()},
        dict(world.repository.files(state.tip)),
    )


def unbroken(make) -> tuple[World, int]:
    world = make()
    return world, world.go().reached
