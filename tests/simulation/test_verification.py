"""A stage is looked at before the next begins: commits, files, syntax, checks."""  # S5 S6 S11

import pytest
from msgspec.structs import replace

from memory_recovery import recover
from windlass.core.events import model as e
from windlass.core.exchange import MAX_LISTED, Message
from windlass.core.plan import Plan, Stage, Task
from windlass.core.scheduler import barriers
from windlass.core.scheduler.people import spoken
from windlass.core.settings import Settings
from windlass.core.state import Phase
from windlass.testing.memory import Files, Play
from windlass.views.steps import next_steps
from windlass.views.story import line_of
from worlds import World, plan_of, with_policy, writes

SETTINGS = Settings(checks=("test",))
A = Task(id="a", title="a", stage="1")
B = Task(id="b", title="b", stage="1")
C = Task(id="c", title="c", stage="2")
D = Task(id="d", title="d", stage="3")


def staged(*tasks: Task) -> Plan:
    names = dict.fromkeys(task.stage or "" for task in tasks)
    stages = tuple(Stage(name=name) for name in names)
    return replace(plan_of(*tasks, dialect="feature"), stages=stages)


def world_of(*tasks: Task, settings: Settings = SETTINGS, rule=None, **plays: Play) -> World:
    parts = {task.id: writes(task.id, "1") for task in tasks} | plays
    return World(staged(*tasks), parts, settings=settings, rule=rule or (lambda _c, _f: True))


def say(world: World, command: str, to: str) -> None:
    facts = spoken(Message(command=command, task=to), world.state, world.clock.now())
    assert facts
    world.journal.append(facts, expected=len(world.events))


def looks(world: World) -> list[e.VerificationFinished]:
    found = (event for event in world.events if isinstance(event, e.VerificationFinished))
    return [event for event in found if event.stage is not None]


def test_every_stage_is_looked_at_once_and_passes():
    world = world_of(A, B, C, D)
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert [(look.stage, look.problems) for look in looks(world)] == [
        ("1", ()),
        ("2", ()),
        ("3", ()),
    ]
    passed = [event for event in world.events if isinstance(event, e.StagePassed)]
    assert [(event.stage, event.by) for event in passed] == [
        ("1", "verification"),
        ("2", "verification"),
        ("3", "verification"),
    ]


def test_a_file_that_the_plan_wants_and_nobody_made_stops_the_next_stage():
    world = world_of(replace(A, creates=("wanted.py",)), C)
    world.go()
    state = world.state
    assert state.ended is e.RunEnd.NEEDS_HUMAN
    assert state.reason == "stage 1 did not verify: a: wanted.py gone"
    assert state.tasks["c"].phase is Phase.PENDING
    told = [line_of(event, state) for event in world.events]
    assert any(line is not None and "a: wanted.py gone" in line.details for line in told)

    world.go()
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN, "resuming alone changes nothing"
    assert len(looks(world)) == 2, "it is looked at again: somebody may have mended it"

    say(world, "approve", "1")
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.state.looks["1"].passed_by == "a person"


def test_a_stage_that_is_called_like_a_task_is_meant_where_the_task_is_not():
    named = replace(A, id="1", creates=("wanted.py",))
    world = world_of(named, C)
    world.go()
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    say(world, "approve", "1")
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED


def test_a_stage_once_more_tells_its_tasks_what_is_wrong():
    def makes_it_when_told(_n: int, _turn: int, files: dict[str, str]) -> None:
        if "a" in files:
            files["wanted.py"] = "1"
        files["a"] = "1"

    wanting = replace(A, creates=("wanted.py",))
    world = world_of(wanting, B, C, a=makes_it_when_told)
    world.go()
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    merge = world.state.tasks["b"].merge_commit
    say(world, "retry", "1")
    assert world.state.tasks["a"].feedback == "a: wanted.py gone"
    world.go()
    state = world.state
    assert state.ended is e.RunEnd.COMPLETED
    assert state.tasks["b"].merge_commit == merge, "what needed no change stands as it was merged"
    assert state.tasks["b"].phase is Phase.MERGED
    assert "wanted.py" in world.repository.files(state.tip)
    [stands] = [event for event in world.events if isinstance(event, e.MergeStands)]
    assert stands.task == "b"
    told = line_of(stands, state)
    assert told is not None
    assert told.text == f"b b · nothing to change; {(merge or '')[:10]} stays"
    world.repository.mirror.copy()
    recover(world)
    assert world.state.done == state.done, "a journal that is lost takes nothing of it back"
    assert world.state.tasks["b"].merge_commit == merge


@pytest.mark.parametrize(
    ("policy", "end", "retried"),
    [
        ("go", e.RunEnd.COMPLETED, False),
        ("stop", e.RunEnd.FAILED, False),
        ("retry", e.RunEnd.NEEDS_HUMAN, True),
    ],
)
def test_a_policy_decides_where_nobody_is_asked(policy: str, end: e.RunEnd, *, retried: bool):
    settings = with_policy(SETTINGS, stage=policy)
    world = world_of(replace(A, creates=("wanted.py",)), C, settings=settings)
    world.go()
    assert world.state.ended is end
    again = [event for event in world.events if isinstance(event, e.StageRetried)]
    assert bool(again) is retried
    assert len(again) <= 1, "a policy has a stage done once more only once"


def many(**more: str) -> Play:
    """A Player that writes more files than are told of it, and removes the last one of another."""

    def play(_n: int, _turn: int, files: dict[str, str]) -> None:
        files.update({f"m{number}": "1" for number in range(MAX_LISTED)}, **more)
        files.pop("z", None)

    return play


def test_a_file_that_was_removed_by_one_that_changed_many_is_not_missed():
    after = replace(B, depends_on=("a",))
    world = world_of(A, after, C, a=writes("z", "1"), b=many())
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert len(world.state.tasks["b"].last.files) == MAX_LISTED


def test_a_file_beyond_those_that_are_told_is_parsed_too():
    world = world_of(A, C, a=many(y="SYNTAX"))
    world.go()
    assert looks(world)[0].problems == ("y: no syntax",)


def test_a_file_that_cannot_be_parsed_is_a_problem():
    world = world_of(A, C, a=writes("a.py", "SYNTAX"))
    world.go()
    assert world.state.reason == "stage 1 did not verify: a.py: no syntax"


def test_what_another_task_of_the_stage_took_away_is_not_missed():
    def takes_away(_n: int, _turn: int, files: dict[str, str]) -> None:
        files.pop("a", None)
        files["b"] = "1"

    after = replace(B, depends_on=("a",))
    world = world_of(A, after, C, b=takes_away)
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED


def test_a_check_that_is_red_on_the_tip_is_asked_twice_and_then_stops_the_next_stage():
    """It passed on each merge; nothing but the check itself can have changed."""
    answers: list[bool] = []

    def rule(command: str, files: Files) -> bool:
        if command != "own" or "b" not in files:
            return True
        answers.append(False)
        return False

    own = replace(A, checks=("own",))
    # Nobody merges it with `b` there: it is asked again only at the end of the stage.
    world = world_of(own, replace(B, depends_on=("a",)), C, rule=rule)
    world.go()
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert "stage 1 did not verify" in world.state.reason
    assert len(answers) == 2
    assert barriers.troubles(world.state)
    world.go()
    assert len(answers) == 4, "resuming says that the cause is mended: it is asked anew"


def test_where_nothing_of_a_stage_came_in_the_run_stops():  # S11
    nothing: Play = lambda *_: None  # noqa: E731
    settings = Settings(checks=("test",), max_turns=1)
    world = world_of(A, B, C, settings=settings, a=nothing, b=nothing)
    world.go()
    assert world.state.ended is e.RunEnd.FAILED
    assert world.state.reason.startswith("nothing of stage 1 was merged")
    assert world.state.tasks["c"].phase is Phase.PENDING


def test_one_failed_group_blocks_its_dependents_only():  # S11
    settings = Settings(checks=("test",), max_turns=1)
    needs_a = replace(D, depends_on=("a",))
    world = world_of(A, B, C, needs_a, settings=settings, a=lambda *_: None)
    world.go()
    assert world.state.ended is e.RunEnd.FAILED
    assert set(world.state.done) == {"b", "c"}
    say(world, "retry", "1")
    world.agent.plays = {id_: writes(id_, "2") for id_ in "abcd"}
    world.go(settings=settings)
    assert world.state.ended is e.RunEnd.COMPLETED


def test_killed_at_every_point_it_is_looked_at_again_and_goes_on():
    whole = world_of(A, B, C)
    points = whole.go().reached
    for point in range(1, points + 1):
        world = world_of(A, B, C)
        world.go(crash_at=point)
        if not world.events or world.state.ended is None:
            world.go()
        assert world.state.ended is e.RunEnd.COMPLETED, point


def test_a_word_to_a_stage_that_does_not_wait_for_it_is_none():
    world = world_of(A, C)
    world.go()
    for command in ("approve", "answer", "reset"):
        message = Message(command=command, task="1")
        assert not spoken(message, world.state, world.clock.now())
    assert not spoken(Message(command="retry", task="9"), world.state, world.clock.now())


def test_the_last_stage_is_looked_at_before_the_run_is_completed():  # S6
    world = world_of(A, replace(C, creates=("wanted.py",)))
    world.go()
    assert world.state.done == ("a", "c")
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert world.state.reason == "stage 2 did not verify: c: wanted.py gone"
    say(world, "approve", "2")
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED


def test_what_somebody_mended_meanwhile_is_seen_on_resume():  # S6
    def plays(_n: int, _turn: int, files: dict[str, str]) -> None:
        files["a"] = "1"
        world.repository.workspaces["b"]["b"] = "somebody works there"

    once = Settings(checks=("test",), max_turns=1, agents=1)
    world = world_of(B, A, C, settings=once, a=plays, b=lambda *_: None)
    world.go()
    assert world.state.reason == "stage 1 did not verify: b: uncommitted"
    del world.repository.workspaces["b"]["b"]
    world.go()
    assert world.state.done == ("a", "c")
    assert world.state.reason == "b abandoned"


def test_what_did_not_verify_lands_only_at_a_word_for_it():  # S6 G7
    world = world_of(A, replace(C, creates=("wanted.py",)))
    world.go()
    asked = e.LandRequested(at=world.clock.now(), by="windlass land")
    world.first = lambda _state, _settings: asked
    world.go()
    assert world.repository.branches["main"] == world.state.base
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert world.state.reason == "main was not moved: stage 2 did not verify"
    steps = next_steps(world.state, plan="p.md", ground=None)
    assert [step.command for step in steps] == [
        "windlass approve p:2",
        "windlass retry p:2",
        "windlass land p.md --yes",
    ]
    say(world, "approve", "2")
    world.go()
    assert world.repository.branches["main"] == world.state.tip
    assert world.state.ended is e.RunEnd.COMPLETED


def test_a_tip_that_landed_does_not_complete_a_run_whose_last_stage_did_not_pass():  # S6
    world = world_of(A, replace(C, creates=("wanted.py",)))
    world.go()
    asked = e.LandRequested(at=world.clock.now(), by="windlass land", anyway=True)
    first, world.first = world.first, lambda _state, _settings: asked
    world.go()
    assert world.repository.branches["main"] == world.state.tip
    assert world.state.ended is e.RunEnd.STOPPED
    assert world.state.reason == "stage 2 has not passed yet"
    world.first = first
    world.go()
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
