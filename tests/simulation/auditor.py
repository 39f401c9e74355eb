"""Looks at a journal fact by fact, and believes nothing."""

from collections import Counter

import pytest

from simulation.anything import Anything, holds
from windlass.events import model as e
from windlass.scheduler import decide, evidence
from windlass.state import Phase, RunState, apply
from windlass.state.demands import task_checks
from windlass.state.transitions import HELPLESS
from windlass.views.closing import closing
from windlass.views.cost import run_cost
from windlass.views.progress import progress
from windlass.views.story import line_of
from worlds import NOON


class Auditor:
    """Looks at a journal fact by fact, and believes nothing."""

    def __init__(self, anything: Anything) -> None:
        self.world = world = anything.world
        self.billed = anything.billed
        self.mains = {world.repository.base, *anything.mains}
        self.files = world.repository.files
        self.state: RunState | None = None
        self.paid = 0.0
        self.held: dict[str, float] = {}
        self.merges: Counter[str] = Counter()
        self.reopened: Counter[str] = Counter()
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
            if isinstance(event, e.Landed):
                self.landed(event, self.state)
            if isinstance(event, e.RunEnded):
                self.ended(self.state)
        if self.state is not None:
            self.afterwards(self.state)

    def afterwards(self, state: RunState) -> None:
        """What must hold when nobody does anything any more."""
        repository, runner = self.world.repository, self.world.runner
        assert [entry.seq for entry in self.world.journal.read()] == [
            *range(1, len(self.world.events) + 1)
        ], "one writer, one order"
        if runner.state.at == state.at:
            assert runner.state == state, "what is true is the fold of what happened"
        held = {*repository.pins.values(), *repository.ancestry(state.tip)}
        approved = (event for event in self.world.events if isinstance(event, e.TaskApproved))
        assert {event.commit for event in approved} <= held, "what was approved stays reachable"
        assert repository.branches["main"] in self.mains, "nobody else moved the user's branch"
        for task, count in self.merges.items():
            again = state.specs[task].scenario or count <= 1 + self.reopened[task]
            assert again, "merged once each time it is asked for"
        if self.billed is not None:
            assert state.spent_usd >= sum(self.billed) - 1e-9, "no cent is forgotten"

    def always(self, event: e.Event, state: RunState) -> None:
        self.counted(event)
        owed = self.paid + sum(self.held.values())
        assert state.spent_usd == pytest.approx(owed)
        assert run_cost(state).usd == pytest.approx(owed, abs=1e-5)
        assert set(state.done) <= set(state.tasks)
        decide(state, NOON)
        line_of(event, state)
        progress(state, 1)
        for task in state.all_tasks:
            assert len(task.attempts) >= self.attempts.get(task.id, 0)
            assert [attempt.n for attempt in task.attempts] == [*range(1, len(task.attempts) + 1)]
            undone = isinstance(event, e.TaskResetUndone)
            assert undone or task.turn >= self.turns.get(task.id, 0) or task.last.is_tip
            self.attempts[task.id], self.turns[task.id] = len(task.attempts), task.turn

    def counted(self, event: e.Event) -> None:
        match event:
            case e.PlayerFinished() | e.PlayerFailed() | e.CoachAnswered() | e.CoachFailed():
                self.paid += event.usage.cost_usd
            case e.SpendReserved():
                self.held[event.id] = event.usd
            case e.SpendSettled():
                del self.held[event.id]
                self.paid += event.usage.cost_usd
            case e.BranchMoveStarted():
                self.mains.add(event.new)
            case e.TaskMerged():
                self.merges[event.task] += 1
            case e.TaskReopened() | e.TaskReset():
                self.reopened[event.task] += 1
            case _:
                pass

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
        self.passes(event.commit, task_checks(state, task.id))

    def merged(self, event: e.TaskMerged, before: RunState, state: RunState) -> None:
        repository, tip = self.world.repository, state.tip
        assert before.tip in repository.ancestry(tip), "the tip lost work"
        assert event.commit in repository.ancestry(tip), "merged means that the tip has it"
        merge = repository.commits[event.commit]
        if event.candidate:
            old, new = self.files(merge.parents[0]), self.files(event.commit)
            changed = {path for path in {**old, **new} if old.get(path) != new.get(path)}
            assert changed <= {event.task, "shared"}, "nobody else's work is touched"
        assert state.tip_tree in {repository.commits[tip].tree, None}
        done_as = state.tasks[event.task].merged_as
        if done_as is not None:
            self.passes(tip, (*done_as.checks, "test"))
            judged = state.tasks[event.task].last.coachings[-1].review
            assert judged is not None
            assert judged.summary == done_as.text, "judged as what it was merged for"

    def landed(self, event: e.Landed, state: RunState) -> None:
        assert state.tip in self.world.repository.ancestry(event.commit)
        self.passes(event.commit, evidence.tip_demand(state).checks)

    def ended(self, state: RunState) -> None:
        closing(state, plan="p.md", workspaces="w")
        phases = {task.phase for task in state.tasks.values()}
        if state.ended is e.RunEnd.COMPLETED:
            assert phases == {Phase.MERGED}
            self.passes(state.tip, evidence.tip_demand(state).checks)
            tree = self.world.repository.commits[state.tip].tree
            for task in state.tasks.values():
                assert task.last.commit in self.world.repository.ancestry(state.tip)
                if state.specs[task.id].scenario:
                    assert self.files(task.last.commit or "") == self.world.repository.trees[tree]
        elif state.ended is e.RunEnd.FAILED:
            assert Phase.ABANDONED in phases or "did not verify" in state.reason
        elif state.ended is e.RunEnd.NEEDS_HUMAN:
            other = ("`", "did not verify", "was not moved")
            assert phases & HELPLESS or any(word in state.reason for word in other)
        assert state.ended is e.RunEnd.COMPLETED or state.reason

    def passes(self, commit: str, checks: tuple[str, ...]) -> None:
        bad = [check for check in checks if holds(check, self.files(commit)) is False]
        assert not bad
