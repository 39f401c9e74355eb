"""The merge queue: what waits is merged and checked as one, and a red batch is halved."""  # X4 B2

from collections.abc import Callable

import pytest

from windlass.core.engine import record
from windlass.core.events import model as e
from windlass.core.plan import Task
from windlass.core.settings import Settings
from windlass.core.state import Phase, RunState, apply
from windlass.testing.memory import Files, Play
from worlds import World, plan_of, with_policy, writes

IDS = tuple("abcdefgh")
EIGHT = tuple(Task(id=id_, title=id_) for id_ in IDS)
SETTINGS = Settings(checks=("test",), agents=8, test_slots=8)
BROKEN = "BROKEN"


def wide(
    rule: Callable[[str, Files], bool | None] = lambda _c, _f: True,
    settings: Settings = SETTINGS,
    **plays: Play,
) -> World:
    """Eight tasks that wait for nobody; their merges wait for each other."""
    parts = {id_: writes(id_, "1") for id_ in IDS} | plays
    return World(plan_of(*EIGHT, dialect="feature"), parts, rule=rule, settings=settings)


def moves(world: World) -> list[tuple[str, ...]]:
    return [event.tasks for event in world.events if isinstance(event, e.TipMoveStarted)]


def merged_trees(world: World) -> list[str]:
    """The trees of merges that were checked."""
    built = {event.tree for event in world.events if isinstance(event, e.MergeBuilt)}
    checked = (event for event in world.events if isinstance(event, e.ChecksStarted))
    return [event.tree for event in checked if event.tree in built]


def test_what_waits_at_once_is_checked_once():
    world = wide()
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.repository.files(world.state.tip).keys() == {"README", *IDS}
    together = [tasks for tasks in moves(world) if len(tasks) > 1]
    assert together, "nothing went as a batch"
    assert len(merged_trees(world)) < len(IDS) - 1
    assert world.state.merged == tuple(id_ for tasks in moves(world) for id_ in tasks)


def test_one_by_one_where_the_setting_says_so():
    world = wide(settings=Settings(checks=("test",), agents=8, test_slots=8, batch=1))
    world.go()
    assert [len(tasks) for tasks in moves(world)] == [1] * len(IDS)


@pytest.mark.parametrize("bad", [*IDS[1:], ("b", "f"), ("c", "d", "h")], ids=str)
def test_the_one_at_fault_is_found_and_all_others_are_in(bad: tuple[str, ...] | str):
    """Each is green alone; with what came in before them the bad ones are red."""

    def rule(_command: str, files: Files) -> bool:
        return len(files) <= 2 or BROKEN not in files.values()

    def play(id_: str) -> Play:
        def mend(_n: int, _turn: int, files: dict[str, str]) -> None:
            files[id_] = "mended" if len(files) > 1 else BROKEN

        return mend

    world = wide(rule, **{id_: play(id_) for id_ in bad})
    world.go()
    state = world.state
    assert state.ended is e.RunEnd.COMPLETED
    returned = [event for event in world.events if isinstance(event, e.TurnReturned)]
    assert {event.task for event in returned} <= set(bad)
    assert all(event.cause == "merged_checks" for event in returned)
    assert all(task.turn == 1 for task in state.tasks.values()), "a red merge uses no turn"
    for event in tips(world):
        assert rule("test", world.repository.files(event.commit))


def tips(world: World) -> list[e.TipMoveStarted]:
    return [event for event in world.events if isinstance(event, e.TipMoveStarted)]


def test_a_conflict_within_the_batch_waits_for_the_batch():
    """Two of eight change one file: the others are in first, and nobody's line is lost."""

    def settle(id_: str) -> Play:
        def play(_n: int, _turn: int, files: dict[str, str]) -> None:
            theirs = [x for x in "bf" if x in files.get("shared", "") and x != id_]
            files["shared"] = "".join(sorted({id_, *theirs}))

        return play

    world = wide(b=settle("b"), f=settle("f"))
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.repository.files(world.state.tip)["shared"] == "bf"
    asides = [event.task for event in world.events if isinstance(event, e.MergeSetAside)]
    assert asides, "the conflict was with another of the batch first"


def flaky_rule(answers: list[bool]) -> Callable[[str, Files], bool]:
    """A check that says these of merged trees, one after the other, and then passes."""

    def rule(_command: str, files: Files) -> bool:
        return answers.pop(0) if len(files) > 2 and answers else True

    return rule


TWO = Settings(checks=("test",), agents=2)


def two(rule: Callable[[str, Files], bool], settings: Settings = TWO) -> World:
    tasks = (Task(id="a", title="a"), Task(id="b", title="b"))
    return World(
        plan_of(*tasks, dialect="feature"),
        {"a": writes("a", "1"), "b": writes("b", "1")},
        rule=rule,
        settings=settings,
    )


def test_a_flaky_check_is_named_and_uses_nobodys_turn():
    world = two(flaky_rule([False, True, True]))
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert not [event for event in world.events if isinstance(event, e.TurnReturned)]
    [said] = [r for said in world.state.evidence.values() for r in said.values() if r.wavers]
    assert said.answers == (e.Outcome.FAIL, e.Outcome.PASS, e.Outcome.PASS)


def test_a_check_that_fails_twice_is_believed():
    world = two(flaky_rule([False, False]))
    world.go()
    causes = [event.cause for event in world.events if isinstance(event, e.TurnReturned)]
    assert causes[0] == "merged_checks"


def test_a_person_who_wants_to_be_asked_about_flaky_checks_is():
    world = two(flaky_rule([False, True, True]), with_policy(TWO, flaky="ask"))
    world.go()
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    waiting = [task for task in world.state.tasks.values() if task.phase is Phase.HELP_TO_MERGE]
    assert [task.question for task in waiting]
    assert "flaky" in (waiting[0].question or "")
    world.go(settings=with_policy(TWO, flaky="ask"))
    assert world.state.ended is e.RunEnd.COMPLETED, "resuming asks the check anew"


def test_killed_at_every_point_of_a_red_batch_the_same_comes_of_it():
    def rule(_command: str, files: Files) -> bool:
        return len(files) <= 2 or BROKEN not in files.values()

    def mend(_n: int, _turn: int, files: dict[str, str]) -> None:
        files["b"] = "mended" if len(files) > 1 else BROKEN

    tasks = tuple(Task(id=id_, title=id_) for id_ in "abc")

    def fresh() -> World:
        parts = {id_: writes(id_, "1") for id_ in "ac"} | {"b": mend}
        plan = plan_of(*tasks, dialect="feature")
        return World(plan, parts, rule=rule, settings=SETTINGS)

    whole = fresh()
    points = whole.go().reached
    for point in range(1, points + 1):
        world = fresh()
        world.go(crash_at=point)
        if not world.events or world.state.ended is None:
            world.go()
        assert world.state.ended is e.RunEnd.COMPLETED, point
        files = world.repository.files(world.state.tip)
        assert files == whole.repository.files(whole.state.tip)
        assert sorted(world.state.merged) == ["a", "b", "c"]
        assert world.repository.tip == world.state.tip


def test_a_batch_is_decided_by_the_evidence_alone():
    """Whatever was decided before, the same state always says the same."""
    world = wide()
    world.go()
    state: RunState | None = None
    for event in world.events:
        state = apply(state, event)
        assert record(state, (), state.at) == record(state, (), state.at)


def collects_nothing(command: str, _files: Files) -> bool | None:
    return None if command == "own" else True


def test_a_check_that_may_collect_nothing_holds_nobody_up_in_a_batch():
    """`Absent checks: skip` is said for a task, and holds for what that task asks alone."""
    free = Task(id="a", title="a", checks=("own",), skip_absent=True)
    plan = plan_of(free, Task(id="b", title="b"), Task(id="c", title="c"), dialect="feature")
    plays = {id_: writes(id_, "1") for id_ in "abc"}
    world = World(plan, plays, rule=collects_nothing, settings=SETTINGS)
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert not [event for event in world.events if isinstance(event, e.TurnReturned)]


def test_a_policy_may_let_any_check_collect_nothing():
    plan = plan_of(Task(id="a", title="a", checks=("own",)))
    skipping = with_policy(SETTINGS, absent="skip")
    world = World(plan, {"a": writes("a", "1")}, rule=collects_nothing, settings=skipping)
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
