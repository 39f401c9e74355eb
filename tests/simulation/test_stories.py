"""Whole runs in memory, one for each thing that can happen to a task."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.exchange import Message
from windlass.core.plan import Task
from windlass.core.settings import Settings
from windlass.core.state import Phase
from windlass.ports import Report
from windlass.testing.memory import Files, MemoryInbox
from worlds import World, plan_of, with_policy, writes

A, B = Task(id="a", title="a"), Task(id="b", title="b", depends_on=("a",))
GOOD = {"a": writes("a", "1"), "b": writes("b", "1")}
CHECKED = Settings(checks=("test",))


def events_of(world: World, kind: type) -> list:
    return [event for event in world.events if isinstance(event, kind)]


def failing(*failures: e.Failure | Report):
    """A Player that fails so many times, then writes its file."""
    left = list(failures)

    def play(_n: int, _turn: int, files: dict[str, str]) -> Report | None:
        if left:
            failure = left.pop(0)
            return failure if isinstance(failure, Report) else Report(failure=failure, message="no")
        files["a"] = "1"
        return None

    return play


def test_a_workspace_that_is_taken_away_costs_no_turn_and_no_neighbour():  # G7 S11
    def play(n: int, _turn: int, files: dict[str, str]) -> Report | None:
        files["a"] = "1"
        if n == 1:
            del world.repository.workspaces["a"]
        elif n == 2:
            files.clear()
        return None

    world = World(plan_of(A, replace(B, depends_on=())), {**GOOD, "a": play})
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert [n for id_, n in world.agent.calls if id_ == "a"] == [1, 2, 3]
    assert [n for id_, n in world.agent.calls if id_ == "b"] == [1]
    failed = events_of(world, e.PlayerFailed)
    assert {event.failure for event in failed} == {e.Failure.ENVIRONMENT}
    assert world.state.tasks["a"].last.turn == 1
    assert world.repository.files(world.state.tip) == {"README": "hello", "a": "1", "b": "1"}


def test_a_plan_runs_in_the_order_of_its_dependencies():
    world = World(plan_of(A, B), GOOD)
    world.go()
    assert world.state.merged == ("a", "b")
    assert world.state.ended is e.RunEnd.COMPLETED
    started = {ev.task: ev.start for ev in events_of(world, e.PlayerStarted)}
    merged = {ev.task: ev.commit for ev in events_of(world, e.TaskMerged)}
    assert started["b"] == merged["a"], "a task starts at the current tip"


def test_the_baseline_comes_before_anything_is_spent():
    world = World(plan_of(A), GOOD, rule=lambda _c, files: "a" in files)
    world.go()
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert world.agent.calls == []
    world.go(settings=with_policy(CHECKED, red_base="go"))
    assert world.state.ended is e.RunEnd.COMPLETED


def test_a_red_base_can_also_stop_the_run():
    world = World(
        plan_of(A), GOOD, rule=lambda _c, _f: False, settings=with_policy(CHECKED, red_base="stop")
    )
    world.go()
    assert world.state.ended is e.RunEnd.FAILED


def test_a_base_that_collects_nothing_is_said_and_the_run_goes_on():
    world = World(plan_of(A), GOOD, rule=lambda _c, files: True if "a" in files else None)
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.state.baseline is not None
    assert world.state.baseline[0].outcome is e.Outcome.ABSENT


def test_the_tasks_own_checks_are_not_asked_of_the_base():
    task = replace(A, checks=("own",))
    world = World(plan_of(task), GOOD, rule=lambda c, files: c != "own" or "a" in files)
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert ("base", "own") not in world.checks.runs


def test_a_player_that_changes_nothing_is_never_approved():  # G6
    world = World(plan_of(A, B), {"a": lambda *_: None, "b": writes("b", "1")})
    world.go()
    assert world.agent.reviews == [], "nobody is paid to look at nothing"
    assert events_of(world, e.TaskApproved) == []
    # The same feedback twice and no change in the tree: that is stuck, and a person's matter.
    assert world.state.tasks["a"].phase is Phase.HELP_TO_PLAY
    assert len(world.agent.calls) == 2
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    world.go()
    assert len(world.agent.calls) == 4, "a person who resumes gives it two more"
    returned = events_of(world, e.TurnReturned)
    assert {event.cause for event in returned} == {"unchanged"}
    assert returned[-1].feedback.count("Nothing was changed") == 1


def test_feedback_stays_when_the_next_turn_changes_nothing():
    def play(_n: int, turn: int, files: dict[str, str]) -> None:
        if turn == 1:
            files["a"] = "bad"

    world = World(
        plan_of(replace(A, max_turns=2)), {"a": play}, rule=lambda _c, f: "bad" not in f.values()
    )
    world.go()
    feedback = world.state.tasks["a"].feedback or ""
    assert "Check `test` failed" in feedback
    assert "Nothing was changed" in feedback


def test_an_abandoned_task_stops_a_milestone_and_blocks_only_dependents_elsewhere():  # X5 S11
    tasks = (A, B, Task(id="c", title="c"), Task(id="d", title="d", depends_on=("c",)))
    plays = {"a": lambda *_: None, **{t: writes(t, "1") for t in "bcd"}}
    milestone = World(plan_of(*tasks), plays, settings=Settings(agents=1, max_turns=1))
    milestone.go()
    assert "d" not in milestone.state.merged, "nothing new is started"
    other = World(plan_of(*tasks, dialect="feature"), plays, settings=Settings(max_turns=1))
    other.go()
    assert set(other.state.merged) == {"c", "d"}
    assert other.state.ended is e.RunEnd.FAILED
    told = Settings(agents=1, max_turns=1)
    blocking = World(plan_of(*tasks), plays, settings=with_policy(told, on_failure="block"))
    blocking.go()
    assert set(blocking.state.merged) == {"c", "d"}


@pytest.mark.parametrize("failure", [e.Failure.TRANSIENT, e.Failure.STALLED, e.Failure.CRASHED])
def test_failures_that_are_not_the_codes_use_no_turn(failure):  # G13
    world = World(plan_of(A), {"a": failing(failure, failure)})
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.state.tasks["a"].turn == 1
    assert len(world.state.tasks["a"].attempts) == 3


def test_the_last_word_names_some_of_many():
    tasks = [Task(id=f"t{i}", title="t") for i in range(12)]
    world = World(plan_of(*tasks), {task.id: lambda *_: None for task in tasks})
    world.go()
    named = "t0, t1, t2, t3, t4, t5, t6, t7, t8, t9"
    assert world.state.reason == f"{named} and 2 more cannot go on without you"


def test_beyond_the_bound_a_person_is_asked_and_resume_begins_the_count_anew():
    world = World(plan_of(A), {"a": failing(*[e.Failure.STALLED] * 5)})
    world.go()
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert world.state.tasks["a"].status == "needs_human"
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED


def test_what_only_a_person_can_mend_is_asked_at_once():
    report = Report(
        failure=e.Failure.ENVIRONMENT, message="cannot reach h: x", unreached=True, lasting=True
    )
    world = World(plan_of(A), {"a": lambda n, _t, files: report if n == 1 else files.update(a="1")})
    world.go()
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert world.agent.calls == [("a", 1)]
    assert world.state.tasks["a"].question == "cannot reach h: x"
    assert world.state.tasks["a"].last.turn == 1
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED


@pytest.mark.parametrize("failure", [e.Failure.AUTH, e.Failure.BUDGET])
def test_auth_and_budget_pause_everything_and_resume_goes_on(failure):
    tasks = (A, Task(id="c", title="c"), Task(id="d", title="d"))
    plays = {"a": failing(failure), "c": writes("c", "1"), "d": writes("d", "1")}
    world = World(plan_of(*tasks), plays, settings=Settings(agents=2))
    world.go()
    assert world.state.ended is e.RunEnd.LIMIT
    assert world.state.tasks["d"].phase is Phase.PENDING, "nothing new is started"
    assert world.state.tasks["c"].last.commit is not None, "what was done is not lost"
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED


def test_the_budget_holds_over_restarts():  # B6
    costly = Report(summary="done", usage=e.Usage(cost_usd=6.0))

    def play(task: str):
        def work(_n: int, _turn: int, files: dict[str, str]) -> Report:
            files[task] = "1"
            return costly

        return work

    tasks = (A, B, Task(id="c", title="c", depends_on=("b",)))
    world = World(plan_of(*tasks), {t: play(t) for t in "abc"}, settings=Settings(max_cost=10))
    world.go()
    assert world.state.ended is e.RunEnd.LIMIT
    assert world.state.merged == ("a",), "b is played, and nobody is left to pay a Coach for it"
    world.go()
    assert world.state.ended is e.RunEnd.LIMIT
    assert len(world.agent.calls) == 2
    world.go(settings=Settings(max_cost=100))
    assert world.state.ended is e.RunEnd.COMPLETED


def test_a_usage_limit_is_waited_out_also_over_a_restart():
    world = World(plan_of(A), {})
    until = world.clock.time + timedelta(hours=3)
    limit = Report(failure=e.Failure.USAGE_LIMIT, message="limit", retry_at=until)
    world.agent.plays = {"a": failing(limit)}
    points = world.go().names
    waited = points.index("agent:after") + 4
    again = World(plan_of(A), {"a": failing(limit)})
    again.go(crash_at=waited)
    again.go()
    for each in (world, again):
        assert each.state.ended is e.RunEnd.COMPLETED
        assert each.clock.time > until
        assert each.state.tasks["a"].turn == 1


def test_partial_work_is_pinned_and_given_to_the_next_player():  # G10
    def play(n: int, _turn: int, files: dict[str, str]) -> Report | None:
        if n == 1:
            files["half"] = "1"
            return Report(failure=e.Failure.CRASHED, message="gone")
        assert files["half"] == "1"
        return None

    world = World(plan_of(A), {"a": play})
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED, "work done before the crash counts"
    assert "task/a/1/partial" in world.repository.pins


def test_what_must_not_be_committed_is_sent_back():
    def play(_n: int, turn: int, files: dict[str, str]) -> None:
        files["a"] = "1"
        if turn == 1:
            files["FORBIDDEN"] = "1"
        else:
            files.pop("FORBIDDEN", None)

    world = World(plan_of(A), {"a": play})
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert [event.cause for event in events_of(world, e.TurnReturned)] == ["refused"]


def test_refused_partial_work_does_not_stop_the_next_player():
    def play(n: int, _turn: int, files: dict[str, str]) -> Report | None:
        if n == 1:
            files["FORBIDDEN"] = "1"
            return Report(failure=e.Failure.CRASHED, message="gone")
        files.pop("FORBIDDEN", None)
        files["a"] = "1"
        return None

    world = World(plan_of(A), {"a": play})
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED


def both(task: str):
    """A Player that adds its line to a shared file, and keeps what is there when it conflicts."""

    def play(_n: int, _turn: int, files: dict[str, str]) -> None:
        lines = {x for x in files.get("f", "").split("\n") if x.isalpha()}
        files["f"] = "\n".join(sorted(lines | {task}))

    return play


def test_a_conflict_is_settled_without_using_a_turn():
    tasks = (A, Task(id="c", title="c"))
    world = World(plan_of(*tasks), {"a": both("a"), "c": both("c")})
    world.go()
    assert world.repository.files(world.state.tip)["f"] == "a\nc"
    assert {task.turn for task in world.state.tasks.values()} == {1}
    assert len(events_of(world, e.MergeConflicted)) == 1
    onto = [event for event in events_of(world, e.PlayerStarted) if event.onto is not None]
    assert len(onto) == 1


def test_green_alone_and_red_together_is_caught_before_the_tip_moves():
    tasks = (A, Task(id="c", title="c"))

    def play(_n: int, _turn: int, files: dict[str, str]) -> None:
        files["c"] = "mended" if "a" in files else "1"

    def rule(_command: str, files: Files) -> bool:
        return not ("a" in files and files.get("c") == "1")

    world = World(plan_of(*tasks), {"a": writes("a", "1"), "c": play}, rule=rule)
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    causes = [event.cause for event in events_of(world, e.TurnReturned)]
    assert causes == ["merged_checks"]
    assert all(rule("", world.repository.files(ev.commit)) for ev in events_of(world, e.TaskMerged))


def test_rounds_of_conflict_have_a_bound_of_their_own():
    """A Player that never settles anything is stopped by its rounds, not by its turns."""
    tasks = (A, Task(id="c", title="c"))

    def stubborn(_n: int, _turn: int, files: dict[str, str]) -> None:
        files["c"] = files.get("c", "") + "1"

    def rule(_command: str, files: Files) -> bool:
        return not ("a" in files and "c" in files)

    plays = {"a": writes("a", "1"), "c": stubborn}

    def merged_is_red(command: str, files: Files) -> bool:
        return rule(command, files) or "<<<" in "".join(files.values())

    world = World(plan_of(*tasks), plays, rule=merged_is_red, settings=Settings(checks=("t",)))
    world.go()
    # The workspace holds both after the first round, so its own checks fail: that costs turns.
    assert world.state.ended is e.RunEnd.FAILED
    assert world.state.tasks["c"].rounds == 1


def test_a_task_that_conflicts_again_and_again_is_put_to_a_person():
    names = "acdefg"
    tasks = [Task(id=name, title=name) for name in names]
    plays = {name: both(name) for name in names}
    world = World(plan_of(*tasks), plays, settings=Settings(checks=("test",), agents=6))
    world.go()
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    helpless = [t for t in world.state.tasks.values() if t.phase is Phase.HELP_TO_PLAY]
    assert helpless
    assert all("after 3 rounds" in (task.question or "") for task in helpless)
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.repository.files(world.state.tip)["f"].split() == list(names), (
        "nobody's line is lost"
    )


def test_work_that_settles_a_conflict_without_a_change_of_its_files_is_not_stuck():
    """Its Player foresees what the others write, and conflicts with each of them in turn."""
    tasks = [Task(id=name, title=name) for name in "dac"]
    plays = {"d": writes("f", "d"), "a": writes("f", "a d"), "c": writes("f", "a c d")}
    world = World(plan_of(*tasks), plays, settings=Settings(checks=("test",), agents=3))
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED, world.state.tasks["c"].question
    first, second = (ev for ev in events_of(world, e.TurnReturned) if ev.task == "c")
    assert first.feedback == second.feedback
    assert world.repository.files(world.state.tip)["f"] == "a c d"


def breaking(world: World, absence: e.Absence, *logs: str) -> None:
    """Make the checks of these logs absent."""
    run = world.checks.run

    async def sometimes(commit, commands, log):
        if any(log.startswith(name) and log.endswith(name[-1]) for name in logs):
            return tuple(
                e.CheckResult(command=c, outcome=e.Outcome.ABSENT, absence=absence)
                for c in commands
            )
        return await run(commit, commands, log)

    world.checks.run = sometimes


@pytest.mark.parametrize(
    ("log", "phase"), [("a-1", Phase.HELP_TO_CHECK), ("c-1-merged", Phase.HELP_TO_MERGE)]
)
def test_a_check_that_cannot_start_asks_a_person_and_pays_nothing_again(log, phase):
    plays = {"a": writes("a", "1"), "c": writes("c", "1")}
    world = World(plan_of(A, Task(id="c", title="c")), plays)
    run = world.checks.run
    breaking(world, e.Absence.UNABLE_TO_START, log)
    world.go()
    assert world.state.tasks[log[0]].phase is phase
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    world.checks.run = run
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert sorted(world.agent.calls) == [("a", 1), ("c", 1)], "the Players' work was kept"


@pytest.mark.parametrize(
    ("absence", "word"),
    [(e.Absence.TIMED_OUT, "timed out"), (e.Absence.UNABLE_TO_START, "could not start")],
)
def test_a_base_that_cannot_be_checked_is_said_as_it_is(absence, word):
    world = World(plan_of(A), GOOD)
    breaking(world, absence, "base")
    world.go()
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert word in world.state.reason


def test_a_stop_keeps_what_agents_have_done():
    def play(_n: int, _turn: int, files: dict[str, str]) -> None:
        files["a"] = "half"

    world = World(plan_of(A), {"a": play}, inbox=MemoryInbox())

    async def hang(brief, workspace, watch):
        import anyio

        world.agent.calls.append((brief.task, brief.n))
        world.repository.workspaces[str(workspace)]["half"] = "1"
        world.inbox.messages.append(Message(command="stop"))
        await anyio.sleep_forever()

    work, world.agent.work = world.agent.work, hang
    world.go()
    assert world.state.ended is e.RunEnd.STOPPED
    assert world.inbox.messages == []
    assert world.state.tasks["a"].last.failure is e.Failure.INTERRUPTED
    assert world.repository.files(world.repository.pins["task/a/1/partial"])["half"] == "1"
    world.agent.work = work
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED


def test_unknown_commands_in_the_inbox_are_passed_over():
    world = World(plan_of(A), GOOD, inbox=MemoryInbox("dance"))
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED


def test_the_tip_is_looked_at_once_more_at_the_end():
    """Checks of a task that was merged early run again on what others made of it."""
    first = replace(A, checks=("own",))
    later = Task(id="c", title="c")
    world = World(
        plan_of(first, replace(later, depends_on=("a",))),
        {"a": writes("a", "1"), "c": writes("a", "broken")},
        rule=lambda c, f: c != "own" or f.get("a") == "1",
    )
    world.go()
    assert world.state.ended is e.RunEnd.NEEDS_HUMAN
    assert "the tip does not pass" in world.state.reason
    world.checks.rule = lambda _c, _f: True
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED


def test_without_any_checks_approvals_say_so():
    world = World(plan_of(A), GOOD, settings=Settings())
    world.go()
    assert [event.checked for event in events_of(world, e.TaskApproved)] == [False]


@pytest.mark.parametrize(("model", "waits"), [(None, True), ("another", False)])
def test_while_one_waits_for_a_usage_limit_nobody_asks_that_model(model, waits):  # G13 B6
    other = Task(id="b", title="b", model=model)
    until = World(plan_of(A), GOOD).clock.now() + timedelta(hours=1)
    limit = Report(failure=e.Failure.USAGE_LIMIT, message="limit", retry_at=until)
    world = World(
        plan_of(A, other),
        {"a": failing(limit), "b": writes("b", "1")},
        settings=Settings(checks=("test",), agents=1, coach_model="third"),
    )
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    begun = [ev for ev in world.events if isinstance(ev, e.PlayerStarted | e.TimerFired)]
    timer = next(i for i, ev in enumerate(begun) if isinstance(ev, e.TimerFired))
    b = next(i for i, ev in enumerate(begun) if ev.task == "b")
    assert (timer < b) is waits


def test_a_coach_at_its_usage_limit_lets_players_of_other_models_go_on():  # G13
    until = World(plan_of(A), GOOD).clock.now() + timedelta(hours=1)
    limits = [Report(failure=e.Failure.USAGE_LIMIT, message="limit", retry_at=until)]
    world = World(
        plan_of(A, Task(id="b", title="b")),
        GOOD,
        settings=Settings(checks=("test",), agents=1, coach_model="third"),
        coach=lambda *_: limits.pop() if limits else None,
    )
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    [waited] = events_of(world, e.WaitStarted)
    timer = next(i for i, ev in enumerate(world.events) if isinstance(ev, e.TimerFired))
    kinds = [(type(ev), ev.task) for ev in world.events[:timer] if isinstance(ev, e.TaskEvent)]
    assert (e.PlayerStarted, "b") in kinds, "another model may play"
    assert (e.CoachStarted, "b") not in kinds, "its own model is asked by nobody"
    assert waited.task == "a"
