"""Stages with barriers: a wave begins when the one before it is settled."""  # B3 S11

import pytest
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.plan import Plan, Stage, Task
from windlass.core.settings import Settings
from windlass.core.state import Phase, apply
from windlass.core.state.selection import chosen, is_done
from windlass.core.state.transitions import IN_MERGE
from windlass.formats import load
from windlass.testing.memory import Play
from windlass.views.outcome import exit_code, is_finished
from worlds import World, plan_of, writes

A = Task(id="a", title="a", stage="1")
B = Task(id="b", title="b", stage="1")
C = Task(id="c", title="c", stage="2", depends_on=("a",))
D = Task(id="d", title="d", stage="2", depends_on=("b",))
E = Task(id="e", title="e", stage="3")


def staged(*tasks: Task, dialect: str = "feature", **checks: tuple[str, ...]) -> Plan:
    names = dict.fromkeys(task.stage or "" for task in tasks)
    stages = tuple(Stage(name=name, checks=checks.get(f"after_{name}", ())) for name in names)
    return replace(plan_of(*tasks, dialect=dialect), stages=stages)


def plays(**special: Play) -> dict[str, Play]:
    return {**{id_: writes(id_, "1") for id_ in "abcde"}, **special}


def starts(world: World) -> list[str]:
    return [ev.task for ev in world.events if isinstance(ev, e.PlayerStarted)]


def position(world: World, kind: type, task: str) -> int:
    return next(i for i, ev in enumerate(world.events) if isinstance(ev, kind) and ev.task == task)


def test_a_wave_waits_for_all_of_the_wave_before_it():
    world = World(staged(A, B, C, E), plays())
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert position(world, e.PlayerStarted, "c") > position(world, e.TaskMerged, "b")
    assert position(world, e.PlayerStarted, "e") > position(world, e.TaskMerged, "c")


def test_without_stages_in_the_plan_there_is_no_barrier():
    free = replace(staged(A, B, C, E), stages=())
    world = World(free, plays(), settings=Settings(checks=("test",), agents=4))
    world.go()
    assert starts(world)[:3] == ["a", "b", "e"]


def test_a_person_may_ask_for_barriers_where_the_plan_does_not():
    free = replace(staged(A, B, C, E), stages=())
    world = World(free, plays(), settings=Settings(checks=("test",), agents=4, barrier=True))
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert position(world, e.PlayerStarted, "e") > position(world, e.TaskMerged, "c")


@pytest.mark.parametrize("slots", [1, 2])
def test_no_more_checks_run_at_once_than_there_are_slots(slots: int):
    """Those of a merge are checks like any other, and do not come on top."""
    tasks = [Task(id=id_, title=id_) for id_ in "abcde"]
    settings = Settings(checks=("test",), agents=5, test_slots=slots, batch=1)
    world = World(plan_of(*tasks), plays(), settings=settings)
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    running, most = set[str](), 0
    for event in world.events:
        if isinstance(event, e.ChecksStarted):
            running.add(event.commit)
        elif isinstance(event, e.ChecksFinished):
            running.discard(event.commit)
        most = max(most, len(running))
    assert most == slots


def test_a_merge_is_checked_before_tasks_that_wait_for_the_same_slot():
    tasks = [Task(id=id_, title=id_) for id_ in "abcdefghijklmnop"]
    settings = Settings(checks=("test",), agents=4, test_slots=1)
    each = {task.id: writes(task.id, "1") for task in tasks}
    world = World(plan_of(*tasks), each, settings=settings)
    world.go()
    state, both = None, 0
    for event in world.events:
        phases = {task.phase for task in state.live} if state is not None else set[Phase]()
        ready = phases & IN_MERGE == {Phase.BUILT}
        if isinstance(event, e.ChecksStarted) and ready:
            assert state is not None
            assert event.commit == state.tasks[event.task].candidate_commit
            both += Phase.SAVED in phases
        state = apply(state, event)
    assert both > 0, "a task waited for the slot that the merge was given"


def test_a_failed_group_blocks_its_dependents_only():
    world = World(staged(A, B, C, D, E), plays(b=lambda *_: None), settings=Settings(max_turns=1))
    world.go()
    assert world.state.ended is e.RunEnd.FAILED
    assert world.state.done == ("a", "c", "e")
    assert "d" not in starts(world)


@pytest.mark.parametrize(
    ("path", "text", "stops"),
    [
        ("m.md", "## Task 1: a\n", True),
        ("t.md", "---\nid: T\nstatus: x\n---\n# T\n", False),
        ("tasks.md", "# Tasks: X\n\n## Phase 1: S\n\n- [ ] T001 Make a\n", False),
    ],
)
def test_each_dialect_says_whether_a_failure_stops_everything(path, text, stops):
    assert load(path, text).stops_on_failure is stops


def test_a_stage_that_was_adopted_without_commits_is_no_lost_one():  # X11
    world = World(staged(A, E), plays())
    adopted = e.TaskAdopted(at=world.clock.now(), task="a", source="tasks.md", commit=None)
    world.journal.append([world.first(None, None), adopted], expected=0)
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED, world.state.reason
    assert starts(world) == ["e"]


def test_layers_stop_when_a_task_is_abandoned():  # X5
    world = World(
        staged(A, B, E, dialect="layers"),
        plays(b=lambda *_: None),
        settings=Settings(max_turns=1, agents=1),
    )
    world.go()
    assert world.state.ended is e.RunEnd.FAILED
    assert "e" not in starts(world)


def test_what_waits_for_a_person_holds_the_barrier():
    hard = replace(B, complexity=9)
    world = World(staged(A, hard, C, E), plays())
    world.go()
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert world.state.tasks["b"].phase is Phase.HELP_TO_START
    assert starts(world) == ["a"]


def test_what_a_stage_must_show_holds_for_all_that_comes_after_it():  # G14
    plan = staged(A, C, after_1=("smoke",))
    world = World(plan, plays(), rule=lambda c, files: c != "smoke" or "c" not in files)
    world.go(settings=Settings(checks=("test",), max_turns=1))
    assert world.state.done == ("a",)
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert "smoke" in (world.state.tasks["c"].question or "")


def test_what_the_last_stage_must_show_is_looked_at_in_the_end():
    plan = staged(A, C, after_2=("smoke",))
    world = World(plan, plays(), rule=lambda c, _files: c != "smoke")
    world.go()
    assert world.state.done == ("a", "c")
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert "smoke" in world.state.reason


class TestSelection:
    """A person wants some of the plan only."""

    TASKS = (
        Task(id="a", title="a", stage="1"),
        Task(id="b", title="b", stage="1"),
        Task(id="c", title="c", stage="2", depends_on=("a",)),
        Task(id="d", title="d", stage="3", depends_on=("c",)),
    )

    def ran(self, *only: str, waiting: bool = False) -> World:
        plan = plan_of(*self.TASKS, dialect="feature")
        if waiting:
            plan = replace(plan, stages=tuple(Stage(name=name) for name in "123"))
        world = World(plan, {id_: writes(id_, "1") for id_ in "abcd"})
        first = world.first(None, None)
        assert isinstance(first, e.RunStarted)
        start, asked = world.first, replace(first, only=only)
        world.first = lambda _state, _settings: asked
        world.go()
        world.first = start
        return world

    def test_only_what_was_asked_for_begins_with_what_it_needs(self):
        world = self.ran("c")
        assert world.state.done == ("a", "c")
        assert {id_ for id_, _ in world.agent.calls} == {"a", "c"}
        assert world.state.ended is e.RunEnd.STOPPED
        told = "c merged, as was asked; of the plan, 2 not merged yet"
        assert world.state.reason == told
        assert exit_code(world.state) == 0, "all that was asked for is there"
        assert not is_finished(world.state)

    def test_where_stages_wait_for_each_other_those_before_are_needed(self):
        world = self.ran("c", waiting=True)
        assert set(world.state.done) == {"a", "b", "c"}
        assert exit_code(world.state) == 0

    def test_a_resume_without_a_word_does_the_rest(self):
        world = self.ran("a")
        world.go()
        assert world.state.ended is e.RunEnd.COMPLETED
        assert set(world.state.done) == set("abcd")
        assert len(world.agent.calls) == 4, "nothing is paid for twice"

    def test_a_task_that_the_plan_has_no_more_is_not_waited_for(self):
        world = self.ran("c", "d")
        state = replace(world.state, only=("gone",))
        assert chosen(state) == frozenset()
        assert is_done(state)

    def test_what_does_not_come_about_ends_as_ever(self):
        plan = plan_of(*self.TASKS[:2], dialect="feature")
        world = World(plan, {"a": lambda *_: None, "b": writes("b", "1")})
        first = world.first(None, Settings(checks=("test",), max_turns=1))
        assert isinstance(first, e.RunStarted)
        asked = replace(first, only=("a",))
        world.first = lambda _state, _settings: asked
        world.go()
        assert world.state.ended is e.RunEnd.FAILED
        assert exit_code(world.state) == 1
        stopped = replace(world.state, ended=None)
        assert exit_code(stopped) == 4


def test_stages_and_dependencies_that_contradict_each_other_are_put_to_a_person():
    """Nothing was abandoned, and nothing can begin: that is said, with the cure."""
    plan = replace(
        plan_of(Task(id="c", title="C", stage="1"), Task(id="d", title="D", stage="2")),
        stages=(Stage(name="1"), Stage(name="2")),
    )
    world = World(plan, {"c": writes("c", "1"), "d": writes("d", "1")})
    first = world.first(None, None)
    crossed = replace(plan.tasks[0], depends_on=("d",))
    world.journal.append(
        [replace(first, plan=replace(plan, tasks=(crossed, plan.tasks[1])))], expected=0
    )
    world.go()
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert world.state.reason == (
        "c, d wait for each other, by the plan's stages and dependencies;"
        " edit the plan: `windlass plan` shows what each task waits for"
    )
