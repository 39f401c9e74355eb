"""The base branch takes what was merged: forward only, and only what passed."""  # G7

import pytest
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.plan import Stage, Task
from windlass.core.settings import GitSettings, Settings
from windlass.core.state import apply
from windlass.core.state.work import change_of
from windlass.errors import IllegalEvent
from windlass.testing.memory import Files, MemoryInbox
from windlass.testing.memory_repository import CrashPoints
from windlass.views.closing import branch_line
from windlass.views.steps import next_steps
from windlass.views.story import line_of
from worlds import NOON, World, plan_of, writes

A = Task(id="a", title="a")
B = Task(id="b", title="b")
PLAYS = {"a": writes("a", "1"), "b": writes("b", "1")}
LAND = Settings(checks=("test",), land=True)


def world_of(settings: Settings = LAND, rule=None, **more) -> World:
    return World(
        plan_of(A, B), PLAYS, settings=settings, rule=rule or (lambda _c, _f: True), **more
    )


def land(world: World) -> None:
    """As `windlass land` does: a process that asks for nothing else."""
    asked = e.LandRequested(at=world.clock.now(), by="windlass land")
    world.first = lambda _state, _settings: asked
    world.go()


def words(world: World) -> list[str]:
    lines = (line_of(event, world.state) for event in world.events)
    return [line.word for line in lines if line is not None]


def user_commits(world: World, **files: str) -> str:
    """A commit of the user's own onto main."""
    main = world.repository.branches["main"]
    mine = world.repository._commit({**world.repository.files(main), **files}, (main,), "mine")
    world.repository.branches["main"] = mine
    return mine


def test_the_branch_moves_to_the_tip_when_the_run_has_completed():
    world = world_of()
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.repository.branches["main"] == world.state.tip
    assert "LANDED" in words(world)


def test_a_run_that_was_given_up_stays_so_when_it_lands():  # S3
    world = world_of(Settings(checks=("test",)))
    world.go()
    state = apply(world.state, e.RunEnded(at=NOON, status=e.RunEnd.ABORTED))
    landing = apply(state, e.LandRequested(at=NOON, by="windlass land")).landing
    assert landing is not None
    assert landing.then is e.RunEnd.ABORTED


def test_without_a_word_it_stays_where_it_is_and_may_land_later():
    world = world_of(Settings(checks=("test",)))
    world.go()
    assert world.repository.branches["main"] == world.state.base
    land(world)
    assert world.repository.branches["main"] == world.state.tip
    assert world.state.ended is e.RunEnd.COMPLETED
    before = len(world.events)
    land(world)
    assert world.repository.branches["main"] == world.state.tip
    assert [type(event).__name__ for event in world.events[before:]] == [
        "LandRequested",
        "BaseLookStarted",
        "BaseSeen",
        "Landed",
        "RunEnded",
    ]


def test_a_branch_that_moved_meanwhile_is_merged_with_and_verified_first():
    world = world_of(Settings(checks=("test",)))
    world.go()
    mine = user_commits(world, mine="1")
    land(world)
    main = world.repository.branches["main"]
    assert world.repository.files(main) == {"README": "hello", "a": "1", "b": "1", "mine": "1"}
    assert world.repository.commits[main].parents == (mine, world.state.tip)
    verified = [ev for ev in world.events if isinstance(ev, e.VerificationStarted)]
    assert verified[-1].commit == main
    assert "LAND" in words(world)


def test_what_does_not_pass_together_with_the_base_does_not_land():
    world = world_of(
        Settings(checks=("test",)), rule=lambda _c, files: not {"mine", "a"} <= files.keys()
    )
    world.go()
    mine = user_commits(world, mine="1")
    land(world)
    assert world.repository.branches["main"] == mine
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert "main was not moved: Check `test` failed" in world.state.reason
    runs = [command for label, command in world.checks.runs if label == "tip"]
    assert len(runs) == 2, "it was asked twice before it was believed"


def test_what_conflicts_with_the_base_is_put_to_a_person():
    world = world_of(Settings(checks=("test",)))
    world.go()
    mine = user_commits(world, a="mine")
    land(world)
    assert world.repository.branches["main"] == mine
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert "CONFLICT" in words(world)
    steps = next_steps(world.state, plan="plan.md", ground=None)
    assert [step.command for step in steps] == [
        "git merge windlass/p/integration",
        "windlass land plan.md",
    ]


def test_a_branch_that_was_put_back_gets_nothing_again_unasked():  # G7
    world = world_of()
    memory = world.repository
    memory.branches["main"] = other = memory._commit({"other": "1"}, (), "anew")
    world.go()
    assert memory.branches["main"] == other
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert "it was put back behind" in world.state.reason
    steps = next_steps(world.state, plan="plan.md", ground=None)
    assert [step.command for step in steps] == ["windlass land plan.md --yes"]


def test_a_dirty_checkout_keeps_the_branch_where_it_is():
    world = world_of()
    world.repository.dirty.add("main")
    world.go()
    assert world.repository.branches["main"] == world.state.base
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert "NOT MOVED" in words(world)
    world.repository.dirty.clear()
    land(world)
    assert world.state.ended is e.RunEnd.COMPLETED


def test_a_branch_that_is_gone_or_never_was_is_said():
    world = world_of(Settings(checks=("test",)))
    world.go()
    del world.repository.branches["main"]
    land(world)
    assert "the branch is gone" in world.state.reason
    steps = next_steps(world.state, plan="plan.md", ground=None)
    assert [step.command for step in steps] == [
        "git branch main windlass/p/integration",
        "git merge windlass/p/integration",
    ]

    world = world_of()
    first = world.first(None, None)
    detached = e.RunStarted(
        **{name: getattr(first, name) for name in first.__struct_fields__} | {"base_branch": None}
    )
    world.first = lambda _state, _settings: detached
    world.go()
    assert "no branch stood at" in world.state.reason
    *_, last = next_steps(world.state, plan="plan.md", ground=None)
    assert last.command == "git merge windlass/p/integration"


def test_what_is_merged_of_an_unfinished_run_lands_and_the_run_stays_as_it_was():
    def rule(_command: str, files: Files) -> bool:
        return files.get("b") != "1"

    settings = Settings(checks=("test",), max_turns=1)
    world = world_of(settings, rule=rule)
    world.go()
    assert world.state.ended is e.RunEnd.FAILED
    reason = world.state.reason
    land(world)
    assert (world.state.ended, world.state.reason) == (e.RunEnd.FAILED, reason)
    landed = world.repository.branches["main"]
    assert world.repository.files(landed) == {"README": "hello", "a": "1"}
    land(world)
    assert (world.state.ended, world.state.reason) == (e.RunEnd.FAILED, reason)
    assert world.repository.branches["main"] == landed, "it was there already"


_RESTS = {
    "stop": e.RunEnd.STOPPED,
    "pause": e.RunEnd.PAUSED,
    "pause_now": e.RunEnd.PAUSED,
    "abort": e.RunEnd.ABORTED,
}


@pytest.mark.parametrize("how", _RESTS)
def test_what_is_merged_of_a_run_that_was_brought_to_rest_lands(how: str):
    whole = world_of(Settings(checks=("test",), agents=1))
    whole.go()
    first = next(i for i, ev in enumerate(whole.events) if isinstance(ev, e.TaskMerged))
    world = world_of()
    world.repository = whole.repository
    rest = (
        e.StopRequested(at=NOON, by="somebody", how=how),
        e.RunEnded(at=NOON, status=_RESTS[how]),
    )
    world.journal.append([*whole.events[: first + 1], *rest], expected=0)
    land(world)
    assert world.repository.branches["main"] == world.state.tip != whole.state.tip
    assert world.state.ended is _RESTS[how]


def test_a_landing_in_the_middle_of_a_look_at_the_tip_looks_again():
    """The process that looked was stopped or is gone; nobody would tell what it saw."""
    for last in (e.RunEnded(at=NOON, status=e.RunEnd.STOPPED), None):
        world = world_of(Settings(checks=("test",), barrier=True))
        world.go()
        looking = e.VerificationStarted(at=NOON, commit=world.state.tip, tree="t", checks=())
        world.journal.append([looking, *([last] if last else [])], expected=len(world.events))
        land(world)
        assert world.repository.branches["main"] == world.state.tip


def test_asked_again_what_did_not_pass_is_looked_at_again():
    """Whatever kept it from passing may be mended: another landing says so."""
    mended: list[bool] = []
    world = world_of(
        Settings(checks=("test",)),
        rule=lambda _c, files: "mine" not in files or bool(mended),
    )
    world.go()
    mine = user_commits(world, mine="1")
    land(world)
    assert world.repository.branches["main"] == mine
    mended.append(True)
    land(world)
    assert world.state.tip in world.repository.ancestry(world.repository.branches["main"])


def test_a_landing_that_was_cut_short_ends_as_the_run_had():
    settings = Settings(checks=("test",), max_turns=1)
    world = world_of(settings, rule=lambda _c, files: files.get("b") != "1")
    world.go()
    asked = e.LandRequested(at=NOON, by="windlass land")
    world.journal.append([asked], expected=len(world.events))  # and then it died
    land(world)
    assert world.state.ended is e.RunEnd.FAILED
    assert world.repository.branches["main"] == world.state.tip


def test_a_stop_in_the_middle_of_a_landing_is_heeded():
    world = world_of(Settings(checks=("test",)))
    world.go()
    world.inbox = MemoryInbox("stop")
    land(world)
    assert world.state.ended in {e.RunEnd.STOPPED, e.RunEnd.COMPLETED}


def test_killed_at_every_point_the_branch_lands_once():
    def scene() -> World:
        world = world_of()
        user_commits(world, mine="1")
        return world

    whole = scene()
    points = whole.go().reached
    for point in range(1, points + 1):
        world = scene()
        world.go(crash_at=point)
        if not world.events or world.state.ended is None:
            world.go()
        assert world.state.ended is e.RunEnd.COMPLETED, point
        main = world.repository.branches["main"]
        assert world.repository.files(main) == whole.repository.files(
            whole.repository.branches["main"]
        )
        assert world.state.tip in world.repository.ancestry(main)


def test_a_fact_of_a_landing_that_nobody_asked_for_is_a_defect():
    world = world_of(Settings(checks=("test",)))
    world.go()
    with pytest.raises(IllegalEvent, match="without a requested landing"):
        apply(world.state, e.Landed(at=NOON, branch="main", commit="c"))


def test_a_branch_that_somebody_moved_by_hand_completes_no_run_whose_tip_is_red():  # B2
    red = {"smoke": False}
    settings = Settings(checks=("test",))
    plan = replace(plan_of(replace(A, stage="1")), stages=(Stage(name="1", checks=("smoke",)),))
    world = World(plan, PLAYS, settings=settings, rule=lambda command, _f: red.get(command, True))
    world.go()
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    world.repository.branches["main"] = world.state.tip
    first = world.first
    land(world)
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert "smoke" in world.state.reason
    red.clear()
    world.first = first
    world.go(settings=LAND)
    assert world.state.ended is e.RunEnd.COMPLETED


def squash(world: World, *, anyway: bool = False, crash_at: int | None = None) -> CrashPoints:
    """As `windlass land --squash` does."""
    asked = e.LandRequested(at=world.clock.now(), by="windlass land", anyway=anyway, squash=True)
    world.first = lambda _state, _settings: asked
    return world.go(crash_at=crash_at)


def squashed_line(world: World) -> list[str]:
    """The commits of main above the base, the oldest first; each has one parent."""
    memory, line = world.repository, list[str]()
    at = memory.branches["main"]
    while at != world.state.base:
        line.insert(0, at)
        [at] = memory.commits[at].parents
    return line


def test_a_squashed_landing_is_one_commit_a_task_with_the_tree_of_the_tip():
    world = world_of(Settings(checks=("test",)))
    world.go()
    runs = len(world.checks.runs)
    squash(world)
    assert len(squashed_line(world)) == len((A, B))
    main = world.repository.branches["main"]
    assert world.repository.files(main) == world.repository.files(world.state.tip)
    assert world.state.ended is e.RunEnd.COMPLETED
    assert len(world.checks.runs) == runs, "that tree has passed"
    assert "LAND" in words(world)
    steps = [step.command for step in next_steps(world.state, plan="plan.md", ground=None)]
    assert steps == ["windlass clean plan.md"]
    [line] = branch_line(world.state, None).details
    assert line.endswith("which has all of it, as one commit for each task")


def test_a_second_landing_knows_that_the_branch_has_all_of_it_squashed():
    world = world_of(Settings(checks=("test",)))
    world.go()
    squash(world)
    main = world.repository.branches["main"]
    for again in (land, squash):
        again(world)
        assert world.repository.branches["main"] == main
        assert world.state.landing is not None
        assert world.state.landing.landed == main


def test_a_squashed_landing_onto_a_moved_branch_is_verified_and_linear():
    world = world_of(Settings(checks=("test",)))
    world.go()
    mine = user_commits(world, mine="1")
    squash(world)
    assert squashed_line(world)[0] == mine
    main = world.repository.branches["main"]
    assert world.repository.files(main) == {"README": "hello", "a": "1", "b": "1", "mine": "1"}
    verified = [ev for ev in world.events if isinstance(ev, e.VerificationStarted)]
    assert verified[-1].commit == main


def test_a_squashed_landing_that_conflicts_is_put_to_a_person():
    world = world_of(Settings(checks=("test",)))
    world.go()
    mine = user_commits(world, a="mine")
    squash(world)
    assert world.repository.branches["main"] == mine
    assert "CONFLICT" in words(world)


def test_work_after_a_squashed_landing_lands_squashed_unasked():
    """Its merges would bring everything a second time."""
    world = world_of(Settings(checks=("test",)))
    world.go()
    memory, state = world.repository, world.state
    first = memory._chain(state.tip)[0]
    memory.branches["main"] = memory._commit(
        memory.files(first), (state.base,), f"squash of {first}"
    )
    part = memory.branches["main"]
    land(world)
    assert len(squashed_line(world)) == len((A, B))
    assert squashed_line(world)[0] == part
    assert memory.files(memory.branches["main"]) == memory.files(state.tip)


def test_a_branch_that_was_put_back_and_has_other_commits_takes_no_squashed_work():
    world = world_of(Settings(checks=("test",)))
    world.go()
    memory = world.repository
    memory.branches["main"] = root = memory._commit({"other": "1"}, (), "anew")
    squash(world)
    assert "it was put back behind" in world.state.landing.refused
    squash(world, anyway=True)
    assert world.state.landing.landed is None
    assert "land without --squash" in world.state.landing.refused
    assert memory.branches["main"] == root


def test_a_signed_landing_ends_in_a_merge_though_the_branch_could_move_forward():
    world = world_of(replace(LAND, git=GitSettings(sign="land")))
    world.go()
    main = world.repository.branches["main"]
    assert world.repository.commits[main].parents == (world.state.base, world.state.tip)
    assert world.repository.files(main) == world.repository.files(world.state.tip)


def test_killed_at_every_point_the_branch_is_squashed_once():  # B4
    def made() -> World:
        world = world_of(Settings(checks=("test",)))
        world.go()
        user_commits(world, mine="1")
        return world

    whole = made()
    points = squash(whole).reached
    for point in range(1, points + 1):
        world = made()
        squash(world, crash_at=point)
        squash(world)
        assert squashed_line(world) == squashed_line(whole), point
        assert world.state.ended is e.RunEnd.COMPLETED, point


def test_what_a_task_changed_is_what_its_merge_brought():
    """Before the merge all its work counts, and nothing of a task that has none."""
    world = world_of(Settings(checks=("test",)))
    world.go()
    task = world.state.tasks["b"]
    assert change_of(task) == (task.candidate_onto, task.merge_commit)
    unmerged = replace(task, merge_commit=None)
    assert change_of(unmerged) == (task.attempts[0].start, task.head)
    assert change_of(replace(unmerged, begun_after=len(task.attempts))) is None
    assert change_of(replace(unmerged, attempts=())) is None
    assert change_of(replace(task, candidate_commit=None)) is None
    idle = replace(task.last, commit=task.last.start)
    assert change_of(replace(unmerged, attempts=(idle,))) is None
