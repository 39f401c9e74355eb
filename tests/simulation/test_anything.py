"""Whatever people and agents do, in any order, over any number of processes: nothing done is false.

Random plans, Players, Coaches and crashes; between processes and within them random edits, words
and settings. What must hold is looked at after every fact.
"""  # B4 B7 K11

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from windlass.events import model as e
from windlass.events.review import PlayerAnswer, Review, TestResults
from windlass.plan import Plan, Stage, Task, validated
from windlass.ports import Message, Report
from windlass.runner import loop
from windlass.scheduler import decide, evidence
from windlass.scheduler.people import spoken
from windlass.settings import E2ESettings, PolicySettings, Settings
from windlass.state import Phase, RunState, apply
from windlass.state.transitions import HELPLESS
from windlass.testing.agents import approval
from windlass.testing.memory import Files, MemoryInbox
from windlass.views.closing import closing
from windlass.views.cost import run_cost
from windlass.views.edits import edit_lines, edited
from windlass.views.outcome import is_finished
from windlass.views.progress import progress
from windlass.views.story import line_of
from worlds import NOON, World

IDS = ("a", "b", "c", "d")
FAILURES = (
    e.Failure.TRANSIENT,
    e.Failure.USAGE_LIMIT,
    e.Failure.STALLED,
    e.Failure.AUTH,
    e.Failure.CRASHED,
)
PAID = (e.PlayerFinished, e.PlayerFailed, e.CoachAnswered, e.CoachFailed)


def some_plan(dice: Random) -> Plan:
    """Some of the tasks, in some order, each in one of its meanings."""
    ids = dice.sample(IDS, dice.randint(1, len(IDS)))
    staged = dice.random() < 0.4
    names = sorted(dice.choice("12") for _ in ids) if staged else [None] * len(ids)
    tasks = tuple(
        Task(
            id=id_,
            title=id_,
            text=(text := dice.choice(("v1", "v1", "v2"))),
            checks=(f"{id_} is {text}",) if dice.random() < 0.3 else (),
            depends_on=tuple(dep for dep in ids[:i] if dice.random() < 0.4),
            complexity=9 if dice.random() < 0.1 else None,
            stage=names[i],
        )
        for i, id_ in enumerate(ids)
    )
    return validated(
        Plan(
            id="p",
            title="P",
            dialect=dice.choice(("milestone", "feature")),
            path="p.md",
            tasks=tasks,
            stages=tuple(Stage(name=name) for name in "12") if staged else (),
            checks=("more",) if dice.random() < 0.1 else (),
            e2e=dice.choice((None, "try it", "try it", "try it well")),
        )
    )


def some_settings(dice: Random) -> Settings:
    return Settings(
        checks=("test",) if dice.random() < 0.9 else ("test", "another"),
        agents=dice.choice((1, 2, 3)),
        max_turns=dice.choice((1, 2, 5)),
        max_cost=dice.choice((0.02, 0.1, 20.0, 20.0)),
        max_tokens=dice.choice((None, None, 50)),
        e2e=E2ESettings(run=dice.random() < 0.6),
        policy=PolicySettings(
            checkpoint=dice.choice(("ask", "pass")),
            on_failure=dice.choice(("dialect", "block", "stop")),
        ),
    )


def holds(command: str, files: Files) -> bool | None:
    """What a check says: of a task's own, that its file has that meaning."""
    if command == "another" and "shared" in files:
        return None
    if " is " in command:
        id_, _, text = command.partition(" is ")
        return text in files.get(id_, "")
    return not any(bad in text for text in files.values() for bad in ("RED", "<<<"))


class Mischief(MemoryInbox):
    """Somebody who says anything to a live run at any moment."""

    def __init__(self, dice: Random) -> None:
        super().__init__()
        self.dice = dice
        self.patience = 4

    def take(self):
        if self.patience and self.dice.random() < 0.02:
            self.patience -= 1
            self.messages.append(some_word(self.dice))
        return super().take()


def some_word(dice: Random) -> Message:
    command = dice.choice(("retry", "retry", "approve", "answer", "nonsense"))
    return Message(command=command, task=dice.choice((*IDS, "e2e")), text="as you like")


class Anything:
    """A world in which anything happens."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.world = World(
            some_plan(dice),
            {id_: self.player(id_) for id_ in (*IDS, "e2e")},
            rule=holds,
            settings=some_settings(dice),
            inbox=Mischief(dice),
            coach=self.coach,
        )

    def spec(self, id_: str) -> Task:
        return self.world.runner.state.specs[id_]

    def player(self, id_: str):
        def play(n: int, _turn: int, files: dict[str, str]) -> Report | None:
            luck = self.dice.random()
            if luck < 0.08:
                return None
            files[id_] = f"{self.spec(id_).text} {n}"
            if luck < 0.16:
                failure = self.dice.choice(FAILURES)
                return Report(failure=failure, message="no", usage=e.Usage(cost_usd=0.002))
            if luck < 0.2:
                asks = PlayerAnswer(summary="", question="which?")
                return Report(answer=asks, usage=e.Usage(cost_usd=0.002, input_tokens=3))
            if luck < 0.3:
                files[id_] = "RED"
            elif luck < 0.5:
                files["shared"] = id_
            return None

        return play

    def coach(self, id_: str, _turn: int, _files: dict[str, str]) -> Review | Report:
        luck = self.dice.random()
        if luck < 0.05:
            return Report(failure=self.dice.choice(FAILURES), message="no")
        if luck < 0.1:
            return Report(message="nothing by schema", usage=e.Usage(cost_usd=0.001))
        said = approval("«begin acceptance criteria, by number\n1. x\n«end")
        # A verdict says what it was given for, so that one for another meaning is seen.
        said = replace(said, summary=self.spec(id_).text)
        if luck < 0.25:
            return replace(said, decision="feedback", test_results=TestResults(passed=False))
        return replace(said, question="which?") if luck < 0.3 else said

    def between(self) -> None:
        """What people say while nothing runs, as `windlass retry` and its like record it."""
        for _ in range(self.dice.randint(0, 3)):
            world = self.world
            fact = spoken(some_word(self.dice), world.state, world.clock.now())
            if fact is not None:
                world.journal.append([fact], expected=len(world.events))

    def process(self) -> None:
        world, dice = self.world, self.dice
        now = some_settings(dice) if dice.random() < 0.5 else world.settings
        crash = dice.randint(1, 90) if dice.random() < 0.6 else None
        plan = some_plan(dice) if world.events and dice.random() < 0.5 else None
        if plan is not None:
            edit_lines(world.state, plan)
            plan = plan if edited(world.state, plan) else None
        world.go(crash_at=crash, settings=now, revised=plan)
        assert crash is not None or world.state.ended is not None

    def go(self) -> None:
        for _ in range(self.dice.randint(2, 7)):
            if self.world.events:
                self.between()
                if is_finished(self.world.state):
                    return
            self.process()
        if not self.world.events or self.world.state.ended is None:
            self.world.go()


class Auditor:
    """Looks at a journal fact by fact, and believes nothing."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.files = world.repository.files
        self.state: RunState | None = None
        self.paid = 0.0
        self.attempts: dict[str, int] = {}
        self.turns: dict[str, int] = {}

    def audit(self) -> None:
        for event in self.world.events:
            before, self.state = self.state, apply(self.state, event)
            self.always(event, self.state)
            if isinstance(event, e.TaskMerged) and before is not None:
                self.merged(event, before, self.state)
            if isinstance(event, e.TaskApproved):
                self.approved(event, self.state)
            if isinstance(event, e.PlayerStarted):
                self.begun(event, self.state)
            if isinstance(event, e.RunEnded):
                self.ended(self.state)

    def always(self, event: e.Event, state: RunState) -> None:
        if isinstance(event, PAID):
            self.paid += event.usage.cost_usd
        assert state.spent_usd == pytest.approx(self.paid)
        assert run_cost(state).usd == pytest.approx(self.paid)
        assert set(state.done) <= set(state.tasks)
        decide(state, NOON)
        line_of(event, state)
        progress(state, 1)
        for task in state.all_tasks:
            assert len(task.attempts) >= self.attempts.get(task.id, 0)
            assert [attempt.n for attempt in task.attempts] == [*range(1, len(task.attempts) + 1)]
            assert task.turn >= self.turns.get(task.id, 0) or task.last.is_tip
            self.attempts[task.id], self.turns[task.id] = len(task.attempts), task.turn

    def begun(self, event: e.PlayerStarted, state: RunState) -> None:
        task = state.tasks[event.task]
        if len(task.attempts) == task.begun_after + 1:
            assert event.onto is None, "who begins anew has no conflict to settle"

    def approved(self, event: e.TaskApproved, state: RunState) -> None:
        task = state.tasks[event.task]
        verdict = task.last.coachings[-1]
        assert verdict.commit == event.commit == task.last.commit
        assert verdict.review is not None
        assert verdict.review.summary == state.specs[task.id].text
        self.passes(event.commit, evidence.task_checks(state, task.id))

    def merged(self, event: e.TaskMerged, before: RunState, state: RunState) -> None:
        old, new = self.files(before.tip), self.files(event.commit)
        assert before.tip in self.world.repository.ancestry(event.commit), "the tip lost work"
        changed = {path for path in {**old, **new} if old.get(path) != new.get(path)}
        assert changed <= {event.task, "shared"}, "nobody else's work is touched"
        tree = self.world.repository.commits[event.commit].tree
        assert state.tip_tree in {tree, None}
        done_as = state.tasks[event.task].merged_as
        if done_as is not None:
            self.passes(event.commit, (*done_as.checks, "test"))

    def ended(self, state: RunState) -> None:
        closing(state, plan="p.md", workspaces="w")
        phases = {task.phase for task in state.tasks.values()}
        if state.ended is e.RunEnd.COMPLETED:
            assert phases == {Phase.MERGED}
            self.passes(state.tip, evidence.tip_checks(state))
            tree = self.world.repository.commits[state.tip].tree
            for task in state.tasks.values():
                assert task.last.commit in self.world.repository.ancestry(state.tip)
                if state.specs[task.id].scenario:
                    assert self.files(task.last.commit or "") == self.world.repository.trees[tree]
        elif state.ended is e.RunEnd.FAILED:
            assert Phase.ABANDONED in phases
        elif state.ended is e.RunEnd.NEEDS_HUMAN:
            assert phases & HELPLESS or "`" in state.reason
        assert state.ended is e.RunEnd.COMPLETED or state.reason

    def passes(self, commit: str, checks: tuple[str, ...]) -> None:
        bad = [check for check in checks if holds(check, self.files(commit)) is False]
        assert not bad


@pytest.fixture(autouse=True)
def always_listening(monkeypatch):
    """In memory a run is over before anybody could look twice."""
    monkeypatch.setattr(loop, "INBOX_SECONDS", 0)


@settings(max_examples=150, suppress_health_check=list(HealthCheck), print_blob=True)
@given(dice=st.randoms(use_true_random=False))
def test_nothing_done_is_false_whatever_happens(dice: Random):
    anything = Anything(dice)
    anything.go()
    Auditor(anything.world).audit()
