"""Where a run stands, as people are shown it: the tree, the place, what may be chosen."""  # S3 S9

from inline_snapshot import snapshot
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.exchange import Message
from windlass.core.plan import Plan, Stage, Task
from windlass.core.scheduler.people import spoken
from windlass.core.settings import Settings
from windlass.core.state import Phase, RunState, apply, fold
from windlass.ports import Report
from windlass.testing.memory import MemoryInbox, Play
from windlass.views.cleaning import last_commit, why_it_stays
from windlass.views.closing import Pointer, closing, continue_here_text, pointer
from windlass.views.steps import Ground, choices, how_to_go_on, unfinished
from windlass.views.tree import (
    failed_stage,
    position,
    stage_line,
    stage_name,
    tree,
    unverified_stage,
    verified,
)
from worlds import NOON, World, plan_of, with_policy, writes

ONCE = Settings(checks=("test",), max_turns=1)


def group(id_: str, wave: int, *needs: str, **more: object) -> Task:
    return Task(id=id_, title=id_, stage=str(wave), depends_on=needs, **more)  # pyright: ignore[reportArgumentType]


def spec(*tasks: Task, dialect: str = "spec") -> Plan:
    names = sorted({task.stage or "" for task in tasks})
    stages = tuple(Stage(name=name) for name in names)
    return replace(plan_of(*tasks, dialect=dialect), stages=stages)


SEED = spec(group("G1", 1), group("G2", 2), group("G3", 2), group("G4", 2), group("G5", 3, "G3"))


def plays(**special: Play) -> dict[str, Play]:
    return {**{f"G{n}": writes(f"G{n}", "1") for n in range(1, 30)}, **special}


def nothing(_n: int, _turn: int, _files: dict[str, str]) -> Report | None:
    return None


def ran(plan: Plan = SEED, settings: Settings = ONCE, **special: Play) -> World:
    world = World(plan, plays(**special), settings=settings)
    world.go()
    return world


def text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


class TestTree:
    def test_as_the_seed_draws_it(self):
        assert text(tree(ran(G3=nothing).state)) == snapshot("""\
- Wave 1: ✓ Complete (G1)
- Wave 2: ✗ Failed
  - G2: ✓ Complete
  - G3: ✗ Failed (not approved after 1 turn: Nothing was changed. Saying that the work…)
  - G4: ✓ Complete
- Wave 3: ○ Blocked
  - G5: ○ Blocked (needs G3)
""")

    def test_in_mid_run(self):
        world = ran()
        until = next(
            i
            for i, event in enumerate(world.events)
            if isinstance(event, e.PlayerStarted) and event.task == "G3"
        )
        state = fold(world.events[: until + 1])
        assert state is not None
        assert text(tree(state)) == snapshot("""\
- Wave 1: ✓ Complete (G1)
- Wave 2: ⚡ In Progress
  - G2: ○ Pending
  - G3: ⚡ In Progress (turn 1)
  - G4: ○ Pending
- Wave 3: ○ Pending (G5)
""")
        assert position(state).startswith("Wave 2, Group ")

    def test_all_done(self):
        state = ran().state
        assert text(tree(state)) == snapshot("""\
- Wave 1: ✓ Complete (G1)
- Wave 2: ✓ Complete (G2, G3, G4)
- Wave 3: ✓ Complete (G5)
""")
        assert position(state) == "the end: all of 5 tasks are merged"
        assert verified(state, state.done) == (
            "Wave 1: ✓ 1 commit found",
            "Wave 2: ✓ 3 commits found",
            "Wave 3: ✓ 1 commit found",
        )

    def test_without_stages_it_is_a_list(self):
        tasks = (Task(id="1.1", title="x"), Task(id="1.2", title="y", depends_on=("1.1",)))
        world = World(plan_of(*tasks), {"1.1": writes("a", "1"), "1.2": nothing}, settings=ONCE)
        world.go()
        assert text(tree(world.state)) == snapshot("""\
- 1.1: ✓ Complete
- 1.2: ✗ Failed (not approved after 1 turn: Nothing was changed. Saying that the work…)
""")
        assert position(world.state) == "Task 1.2"
        assert verified(world.state, world.state.done) == ("1.1: ✓ 1 commit found",)

    def test_of_many_tasks_those_that_say_the_same_share_a_line(self):
        tasks = [Task(id=f"G{n}", title="x") for n in range(1, 26)]
        world = ran(plan_of(*tasks), G7=nothing)
        assert text(tree(world.state)) == snapshot("""\
- G1, G2, G3: ✓ Complete
- G4, G5, G6, G8, G9: ⚡ In Progress (turn 1)
- G7: ✗ Failed (not approved after 1 turn: Nothing was changed. Saying that the work…)
- G10, G11, G12, G13, G14, G15, G16, G17 and 8 more: ○ Pending
""")
        assert len(verified(world.state, world.state.done)) <= 8

    def test_what_was_found_is_told_by_groups_where_a_wave_is_not_done(self):  # S7 S10
        state = ran(G3=nothing).state
        assert verified(state, ()) == (), "what nobody has looked for was not found"
        assert verified(state, state.done) == (
            "Wave 1: ✓ 1 commit found",
            "Wave 2/G2: ✓ 1 commit found",
            "Wave 2/G4: ✓ 1 commit found",
        )
        many = plan_of(*(Task(id=f"G{n}", title="x") for n in range(1, 11)))
        state = ran(many).state
        assert verified(state, state.done) == ("10 tasks: ✓ 10 commits found",)

    def test_what_waits_for_a_person_says_what_for(self):
        tasks = (group("G1", 1, complexity=8), group("G2", 1))
        assert text(tree(ran(spec(*tasks)).state)) == snapshot("""\
- Wave 1: ⚡ In Progress
  - G1: ⚡ Needs you (complexity 8: may it start?)
  - G2: ✓ Complete
""")

    def test_each_dialect_calls_its_stages_as_its_people_do(self):
        state = ran().state
        for dialect, told in {
            "spec": "Wave 2",
            "layers": "Layer 2",
            "milestone": "Stage 2",
            "speckit": "2",
        }.items():
            assert stage_name(_as(state, dialect), "2") == told
        assert stage_name(_as(state, "milestone"), "stage two") == "stage two"

    def test_stages_come_in_their_order_whatever_the_order_of_tasks(self):
        lines = tree(ran(spec(group("G2", 2), group("G1", 1))).state)
        assert [line.split(":")[0] for line in lines] == ["- Wave 1", "- Wave 2"]


def _as(state: RunState, dialect: str) -> RunState:
    return replace(state, plan=replace(state.plan, dialect=dialect))


class TestContinueHere:
    def test_a_paused_run_says_where_it_stands(self):  # S9 S10
        told = continue_here_text(_paused(ran()), 42)
        assert told == snapshot("""\
Execution paused at Wave 3, Group G5.

Plan: p
Run: r1
File: p.md
Commits: 4 completed
Branch: windlass/p/integration
Journal: 42

Progress:
- Wave 1: ✓ Complete (G1)
- Wave 2: ✓ Complete (G2, G3, G4)
- Wave 3: ⚡ In Progress
  - G5: ⚡ In Progress (turn 1)

To resume: windlass resume
""")
        assert pointer(told or "") == Pointer("p", "r1")

    def test_what_is_not_paused_has_none(self):
        assert continue_here_text(ran().state, 1) is None

    def test_secrets_in_what_tasks_say_are_not_told(self):
        state = replace(ran(G3=nothing).state, ended=e.RunEnd.PAUSED)
        told = continue_here_text(state, 1, lambda line: line.replace("not approved", "***")) or ""
        assert "G3: ✗ Failed (*** after 1 turn" in told
        assert "Plan: p\nRun: r1\n" in told

    def test_what_names_nothing_points_nowhere(self):
        for hostile in ("", "Plan: a\n", "Run: b\n", "Plan: a b\nRun: c\n", "plan: a\nrun: b\n"):
            assert pointer(hostile) is None
        assert pointer("x\r\nPlan: a\r\nRun: b\r\nPlan: z\r\n") == Pointer("a", "b")


def _paused(world: World) -> RunState:
    """As it was when the second wave had begun, and a person paused it there."""
    until = max(i for i, ev in enumerate(world.events) if isinstance(ev, e.TaskMerged))
    state = fold(world.events[:until])
    assert state is not None
    return apply(state, e.RunEnded(at=NOON, status=e.RunEnd.PAUSED, reason="paused by a test"))


class TestChoices:
    def names(self, state: RunState) -> list[str]:
        return [each.name for each in choices(state)]

    def test_where_nothing_is_wrong_there_is_one_way(self):
        assert self.names(_paused(ran())) == ["resume"]

    def test_a_failed_task_is_offered_first_where_nothing_else_can_go_on(self):  # S3 X6
        state = ran(G3=nothing).state
        assert state.ended is e.RunEnd.FAILED
        assert self.names(state) == ["retry", "resume", "retry-stage"]
        assert "\n".join(unfinished(state)) == snapshot("""\
Run r1 of p is failed: 3 of 5 tasks merged

Progress:
- Wave 1: ✓ Complete (G1)
- Wave 2: ✗ Failed
  - G2: ✓ Complete
  - G3: ✗ Failed (not approved after 1 turn: Nothing was changed. Saying that the work…)
  - G4: ✓ Complete
- Wave 3: ○ Blocked
  - G5: ○ Blocked (needs G3)\
""")

    def test_whoever_cannot_be_asked_is_told_the_commands(self):  # S3 X6
        assert how_to_go_on(_paused(ran()), "p.md") == snapshot(
            "continue with `windlass resume p.md`; `windlass run p.md --restart` starts a new run"
        )
        failed = how_to_go_on(ran(G3=nothing).state, "p.md")
        assert failed.split("; ") == snapshot(
            [
                "choose: `windlass resume p.md --retry` or `windlass resume p.md --retry-stage`",
                "--yes continues without G3",
                "`windlass run p.md --restart` starts a new run",
            ]
        )

    def test_every_word_of_a_choice_is_heard(self):  # S3
        states = [ran(G3=nothing).state, ran(spec(*_promising())).state]
        for state in states:
            for choice in choices(state):
                for command, subject in choice.words:
                    assert spoken(Message(command=command, task=subject), state, NOON), choice

    def test_a_stage_that_did_not_verify(self):  # S3 S6
        state = ran(spec(*_promising())).state
        assert state.ended is e.RunEnd.NEEDS_HUMAN
        assert unverified_stage(state) == failed_stage(state) == "1"
        assert self.names(state) == ["resume", "retry-stage", "go-on"]
        assert stage_line(state, "1") == "Wave 1: ✗ Did not verify"

    def test_stages_without_barriers_are_not_done_once_more(self):
        free = replace(SEED, stages=())
        assert self.names(ran(free, G3=nothing).state) == ["retry", "resume"]


def _promising() -> tuple[Task, ...]:
    """A wave that is to leave a file which nobody makes."""
    return group("G1", 1, creates=("promised.py",)), group("G2", 2)


class TestClosing:
    def end(self, state: RunState, **more: object) -> str:
        lines = closing(state, plan="p.md", workspaces="ws", continue_here="here", **more)  # pyright: ignore[reportArgumentType]
        told = [f"{line.word} {line.text}" for line in lines]
        return "\n".join(
            part for line, first in zip(lines, told, strict=True) for part in (first, *line.details)
        )

    def test_of_a_pause(self):  # S9
        told = self.end(_paused(ran()))
        assert "PAUSED Execution paused at Wave " in told
        assert "Progress saved to here\nCommits: " in told
        assert "Next windlass resume p.md  continue the run" in told
        assert "\npaused by a test\n" in told

    def test_of_an_abort(self):  # S3
        state = apply(_paused(ran()), e.RunEnded(at=NOON, status=e.RunEnd.ABORTED, reason="x"))
        told = self.end(state)
        assert "Next windlass run p.md    start a new run\nwindlass land p.md " in told
        assert "windlass clean p.md" in told

    def test_of_a_stage_that_failed(self):  # S3
        told = self.end(ran(G3=nothing).state)
        assert "Next windlass resume p.md --retry        retry G3 and continue\n" in told
        assert "windlass resume p.md --retry-stage  redo the stage\n" in told

    def test_of_a_stage_that_did_not_verify(self):  # S6
        told = self.end(ran(spec(*_promising())).state)
        assert "STAGE Wave 1 did not verify\n" in told
        assert "windlass approve p:1\nwindlass retry p:1" in told
        assert "Next windlass resume p.md --retry-stage  redo the stage\n" in told
        assert "windlass resume p.md --go-on        continue anyway\n" in told

    def test_of_a_branch_that_holds_it_all(self):
        state = ran().state
        told = self.end(state, ground=Ground(commit=state.tip, holds_tip=True))
        assert "which has all of it" in told
        assert "windlass land" not in told

    def test_of_a_branch_that_is_gone_and_of_one_nobody_looked_at(self):
        state = ran().state
        told = self.end(state, ground=Ground(commit=None))
        assert "main is gone" in told
        assert "windlass land" not in told
        assert "main.." not in told
        assert f"Next git log --graph {state.base[:10]}.." in told
        assert "git branch main windlass/p/integration  create it again\n" in told
        assert "moved" not in self.end(state)

    def test_of_a_run_that_landed(self):
        state = ran(settings=replace(ONCE, land=True)).state
        told = self.end(state, ground=Ground(commit=state.tip, holds_tip=True))
        assert "landed: main was moved to" in told
        assert "Next windlass clean p.md" in told

    def test_of_a_landing_that_was_refused(self):
        landed = ran(settings=replace(ONCE, land=True)).state
        assert landed.landing is not None
        refused = replace(landed.landing, landed=None, refused="a file in the way is dirty")
        state = replace(landed, landing=refused, ended=e.RunEnd.NEEDS_HUMAN, reason="dirty")
        assert self.end(state).endswith("Next windlass land p.md  try again")
        assert "\ndirty\n" in self.end(state)

    def test_flaky_checks_are_named(self):
        state = ran().state
        tree_, said = next(iter(state.evidence.items()))
        wavers = {
            command: replace(result, answers=(e.Outcome.FAIL, e.Outcome.PASS))
            for command, result in said.items()
        }
        told = self.end(replace(state, evidence={**state.evidence, tree_: wavers}))
        assert "flaky: `test` gave different results for the same files" in told

    def test_merges_are_counted_by_what_was_merged(self):
        adopted = e.TaskAdopted(at=NOON, task="G1", source="s", commit="c" * 40)
        started = ran().events[0]
        state = apply(apply(None, started), adopted)
        assert "Branch nothing was merged" in self.end(state)
        assert "5 merges on main@" in self.end(ran().state)


def test_a_policy_to_stop_ends_as_failed_and_still_says_what_to_do():
    settings = with_policy(ONCE, stage="stop")
    state = ran(spec(*_promising()), settings).state
    assert state.ended is e.RunEnd.FAILED
    assert [each.name for each in choices(state)] == ["resume", "retry-stage", "go-on"]


def test_a_stage_whose_tasks_an_edit_took_away_is_no_trouble():
    state = ran(spec(*_promising())).state
    less = spec(group("G2", 2))
    revised = apply(state, e.PlanRevised(at=NOON, plan=replace(less, stages=state.plan.stages)))
    assert tree(revised)


def test_a_run_that_is_paused_before_its_first_turn_says_so_too():  # S9
    inbox = MemoryInbox("pause")
    world = World(SEED, plays(), settings=ONCE, inbox=inbox)
    world.go()
    assert world.state.ended is e.RunEnd.PAUSED
    assert (continue_here_text(world.state, 1) or "").startswith(
        "Execution paused at Wave 1, Group G1."
    )


class TestCleaning:
    def stays(self, state: RunState, task: str, **changed: object) -> str | None:
        return why_it_stays(state, replace(state.tasks[task], **changed))

    def test_what_is_unfinished_or_a_persons_stays(self):  # X5 B8
        open_, over = ran(G3=nothing).state, replace(ran(G3=nothing).state, ended=e.RunEnd.ABORTED)
        assert self.stays(open_, "G3") == "G3 is abandoned, and the run is failed"
        assert self.stays(open_, "G1") is None
        assert self.stays(over, "G3") is None
        taken = self.stays(over, "G3", phase=Phase.TAKEN) or ""
        assert "windlass give p:G3" in taken
        theirs = (replace(over.tasks["G3"].last, by="Ann"),)
        assert "a person worked in it" in (self.stays(over, "G3", attempts=theirs) or "")

    def test_the_newest_commit_of_a_task_is_what_it_is_compared_with(self):
        state = ran(G3=nothing).state
        assert last_commit(state, state.tasks["G1"]) == state.tasks["G1"].last.commit
        assert last_commit(state, state.tasks["G5"]) == state.base
