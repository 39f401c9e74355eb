"""Looks at a journal fact by fact, at the moment each is recorded, and believes nothing.

What a process records is looked at as it does, with git as it is then. What is recorded while
nobody looks (a person's word between processes, a last batch that its writer did not live to see)
is looked at before whatever comes next.
"""

from collections import Counter, defaultdict

import pytest

from simulation.anything import Anything, holds, seen
from windlass.core.engine import record
from windlass.core.events import model as e
from windlass.core.plan import same_meaning
from windlass.core.scheduler import evidence
from windlass.core.state import Phase, RunState, TaskState, apply
from windlass.core.state.checks import task_checks
from windlass.core.state.requests import RECENT
from windlass.core.state.transitions import HELPLESS
from windlass.views.closing import closing
from windlass.views.cost import run_cost
from windlass.views.outcome import is_finished
from windlass.views.progress import progress
from windlass.views.story import line_of
from worlds import NOON

CODE = {"unchanged", "refused", "checks", "review"}
"""The causes of a return that are the code's; no other failure costs a turn."""
ANEW = (e.TaskReopened, e.TaskReset, e.TaskResetUndone, e.RedoUndone, e.TipTaken, e.PlanRevised)
"""Facts with which a task begins once more, or is as it was: its turns are counted from there."""
AGENTS_END = (e.PlayerFinished, e.PlayerFailed, e.CoachAnswered, e.CoachFailed)


class Auditor:
    """Looks at a journal fact by fact, and believes nothing."""

    def __init__(self, anything: Anything) -> None:
        self.anything = anything
        self.world = world = anything.world
        self.files = world.repository.files
        self.main = world.repository.base
        """Where the user's branch was last seen."""
        self.begin()
        world.observers.append(self.told)

    def begin(self) -> None:
        """Know nothing of any journal."""
        self.state: RunState | None = None
        self.kept: list[bytes] = []
        """All that was looked at, as it was stored."""
        self.paid = 0.0
        self.estimated = 0.0
        self.held: dict[str, e.SpendReserved] = {}
        self.streamed: dict[str, float] = {}
        self.known: list[float] = []
        """What each answered request came to."""
        self.answered: set[str] = set()
        self.most_allowed = 0.0
        """The highest limit of money that there was."""
        self.ends: set[object] = set()
        """The calls of agents that are paid for."""
        self.merges: Counter[str] = Counter()
        self.reopened: Counter[str] = Counter()
        self.attempts: dict[str, int] = {}
        self.turns: dict[str, int] = {}
        self.returned: Counter[str] = Counter()
        """Turns that each task lost by its code since it began, or began once more."""
        self.before_reset: dict[str, int] = {}
        """The same before its last reset, which may be undone."""
        self.approvals: dict[str, str] = {}
        """The commit of each task that was last approved."""
        self.approved_ever: set[str] = set()
        self.proven: defaultdict[str, set[str]] = defaultdict(set)
        """By tree: the checks that passed on it, by their own word."""
        self.moves: dict[str, str] = {}
        """Where the user's branch may be moved to, and from where."""

    def told(self, entry: e.Entry, state: RunState) -> None:
        """A process has recorded a fact, and this is what it takes to be true now."""
        alone = entry.seq == len(self.kept) + 1
        assert alone or isinstance(entry.event, e.RunStarted | e.RunResumed), "one writer"
        self.catch_up(entry.seq)
        assert state == self.state, "what is true is the fold of what is stored"
        self.now(state)

    def audit(self) -> None:
        """Look at whatever is left, and at how it all stands in the end."""
        self.catch_up(len(self.world.journal.storage))
        if self.state is not None:
            self.afterwards(self.state)

    def catch_up(self, until: int) -> None:
        stored = self.world.journal.storage
        assert stored[: len(self.kept)] == self.kept, "nothing recorded is ever changed"
        for entry in self.world.journal.read(len(self.kept)):
            if entry.seq > until:
                return
            self.kept.append(stored[entry.seq - 1])
            assert entry.seq == len(self.kept), "one order"
            self.look(entry.event)

    def look(self, event: e.Event) -> None:
        before, self.state = self.state, apply(self.state, event)
        if before is not None and is_finished(before):
            assert not isinstance(event, e.RunResumed), "what is over is not taken up again"
        self.always(event, self.state)
        self.done_is_true(event, self.state)
        self.judged(event, self.state)
        if before is not None:
            self.queued(event, before, self.state)
        if isinstance(event, e.Landed):
            self.landed(event, self.state)
        if isinstance(event, e.RunEnded):
            self.ended(self.state)

    def judged(self, event: e.Event, state: RunState) -> None:
        if isinstance(event, e.PlayerStarted):
            self.begun(event, state)
        if isinstance(event, e.ChecksFinished | e.VerificationFinished):
            self.checked(event)
        if isinstance(event, e.CoachAnswered):
            self.reviewed(event, state)
        if isinstance(event, e.TaskApproved):
            self.approved(event, state)
        if isinstance(event, e.TaskAbandoned):
            self.abandoned(event, state)

    def queued(self, event: e.Event, before: RunState, state: RunState) -> None:
        if isinstance(event, e.MergeBuilt):
            self.built(state.tasks[event.task])
        if isinstance(event, e.TipMoveStarted):
            self.moving(event, before)
        if isinstance(event, e.TaskMerged):
            self.merged(event, before, state)

    def now(self, state: RunState) -> None:
        """What must hold of git and of the provider's bill whenever a fact is recorded."""
        repository = self.world.repository
        moving = {task.candidate_commit for task in state.tasks.values() if task.moving_as}
        assert repository.tip in {state.tip, *moving}, "the tip is where it was proven to be right"
        lost = self.approved_ever.difference(repository.pins.values())
        assert not lost or lost <= {*repository.ancestry(repository.tip)}, (
            "approved and unreachable"
        )
        self.untouched()
        if self.anything.billed is not None:
            billed = sum(self.anything.billed[id_] for id_ in self.answered)
            assert state.spent.cost_usd >= billed - 1e-9, "no cent is forgotten"
            assert billed <= self.most_allowed + 1e-9, "the limit is never crossed"

    def untouched(self) -> None:
        """All that a memory repository has of the user's: their branch, moved by them or landed."""
        repository = self.world.repository
        assert repository.branches.keys() == {"main"}
        assert not repository.dirty
        main = repository.branches["main"]
        if main != self.main:
            known = {self.main, *self.anything.mains, *self.moves}
            landed = self.moves.get(main) in known
            assert landed or main in self.anything.mains, "nobody else moved the user's branch"
            assert self.main in repository.ancestry(main), "the user's branch lost work"
            self.main = main

    def afterwards(self, state: RunState) -> None:
        """What must hold when nobody does anything any more."""
        self.now(state)
        held = {*self.world.repository.pins.values(), *self.world.repository.ancestry(state.tip)}
        assert self.approved_ever <= held, "what was approved stays reachable"

    def always(self, event: e.Event, state: RunState) -> None:
        self.counted(event)
        self.most_allowed = max(self.most_allowed, state.settings.max_cost)
        cost, held = run_cost(state), sum(each.usd for each in self.held.values())
        assert state.spent.cost_usd == pytest.approx(self.paid + self.estimated)
        assert cost.spent_usd == pytest.approx(self.paid, abs=1e-5)
        assert cost.estimated_usd == pytest.approx(self.estimated, abs=1e-5)
        assert cost.reserved_most_usd == pytest.approx(held, abs=1e-5)
        assert 0 <= cost.reserved_usd <= cost.reserved_most_usd
        assert set(state.done) <= set(state.tasks)
        record(state, (), NOON)
        line_of(event, state)
        progress(state, 1)
        for task in state.all_tasks:
            assert len(task.attempts) >= self.attempts.get(task.id, 0)
            assert [attempt.n for attempt in task.attempts] == [*range(1, len(task.attempts) + 1)]
            self.attempts[task.id] = len(task.attempts)
            self.counts_turns(event, task)

    def done_is_true(self, event: e.Event, state: RunState) -> None:
        """A completed run has no stale task, and its tip passed all that the plan asks now.

        Nothing here asks the scheduler what the tip owes: the plan and the settings say it.
        """
        if isinstance(event, e.TaskAccepted):
            assert same_meaning(event.spec, state.specs[event.task]), "accepted for another text"
        for task in state.tasks.values():
            if task.phase is Phase.MERGED:
                accepted = [task.accepted.spec] if task.accepted is not None else []
                texts = (task.merged_as, *accepted)
                spec = state.specs[task.id]
                done = any(text is not None and same_meaning(text, spec) for text in texts)
                assert done, "a stale task is taken for done"
        said_so = isinstance(event, e.RunEnded) and event.status is e.RunEnd.COMPLETED
        if said_so or state.ended is e.RunEnd.COMPLETED:
            assert not state.stale, "a run with a stale task is taken for completed"
            own = (check for id_ in state.tasks for check in state.specs[id_].checks)
            stages = (check for stage in state.plan.stages for check in stage.checks)
            checks = (*state.settings.checks, *state.plan.checks, *stages, *own)
            files = self.files(state.tip)
            proven = self.proven[self.world.repository.commits[state.tip].tree]
            # A check that finds nothing to run says nothing.
            asked = {check for check in checks if holds(check, files) is not None}
            assert asked <= proven, "completed, and the tip never passed what the plan asks now"
            self.passes(state.tip, checks)

    def counts_turns(self, event: e.Event, task: TaskState) -> None:
        """Only code costs a turn: nothing else that happens to a task moves its count."""
        before = self.turns.get(task.id, task.turn)
        self.turns[task.id] = task.turn
        returned = isinstance(event, e.TurnReturned) and event.task == task.id
        lost = returned and event.cause in CODE
        if isinstance(event, ANEW):
            undone = isinstance(event, e.TaskResetUndone)
            assert undone or task.turn >= before or task.last.is_tip
        else:
            assert task.turn == before + lost, "only what is the code's fault costs a turn"
        self.returned[task.id] += lost

    def estimate(self, streamed: float, most: float) -> None:
        """The larger of what was streamed and the 95th percentile of the newest answers.

        Without any answer, the most; however the answer was lost.
        """
        recent = sorted(self.known[-RECENT:])
        likely = recent[-1 - len(recent) * 5 // 100] if recent else most
        self.estimated += max(streamed, min(likely, most))

    def write_off(self) -> None:
        for id_, lost in self.held.items():
            self.estimate(self.streamed.get(id_, 0.0), lost.usd)
        self.held = {}

    def spending(self, event: e.SpendReserved | e.SpendStreamed | e.SpendSettled) -> None:
        if isinstance(event, e.SpendReserved):
            self.held[event.id] = event
            return
        usd = event.usage.cost_usd
        if isinstance(event, e.SpendStreamed):
            self.streamed[event.id] = usd
            return
        asked = self.held.pop(event.id)
        if event.broke_off:
            self.estimate(usd, asked.usd)
            return
        self.paid += usd
        self.known += [usd] if usd else []
        self.answered.add(event.id)
        billed = self.anything.billed
        same = billed is None or usd == billed[event.id]
        assert same, "what the provider asked for is what is counted"

    def counted(self, event: e.Event) -> None:
        if isinstance(event, AGENTS_END):
            self.paid += event.usage.cost_usd
            call = (event.task, event.n, getattr(event, "k", None))
            assert call not in self.ends, "each call of an agent is paid for once"
            self.ends.add(call)
        match event:
            case e.RunStarted() | e.RunResumed() | e.RunEnded():
                self.write_off()
            case e.SpendReserved() | e.SpendStreamed() | e.SpendSettled():
                self.spending(event)
            case e.BranchMoveStarted():
                self.moves[event.new] = event.old
            case e.TaskMerged():
                self.merges[event.task] += 1
            case e.TaskReopened() | e.TaskReset():
                self.reopened[event.task] += 1
                self.before_reset[event.task] = self.returned[event.task]
                self.returned[event.task] = 0
            case e.TaskResetUndone():
                self.returned[event.task] = self.before_reset[event.task]
            case _:
                pass

    def begun(self, event: e.PlayerStarted, state: RunState) -> None:
        task = state.tasks[event.task]
        if len(task.attempts) == task.begun_after + 1:
            assert event.onto is None, "who begins anew has no conflict to settle"

    def abandoned(self, event: e.TaskAbandoned, state: RunState) -> None:
        limit = state.specs[event.task].max_turns or state.settings.max_turns
        assert self.returned[event.task] >= limit, "given up before its turns were used up"

    def checked(self, event: e.ChecksFinished | e.VerificationFinished) -> None:
        """They saw exactly the tree that their word is taken for."""
        assert event.tree == self.world.repository.commits[event.commit].tree
        for result in event.results:
            assert result.output == seen(self.files(event.commit)), "checks of something else"
            if result.outcome is e.Outcome.PASS:
                self.proven[event.tree].add(result.command)

    def reviewed(self, event: e.CoachAnswered, state: RunState) -> None:
        assert event.commit == state.tasks[event.task].last.commit
        shown = {each.evidence for each in event.review.evidence}
        assert shown == {seen(self.files(event.commit))}, "the Coach saw something else"

    def approved(self, event: e.TaskApproved, state: RunState) -> None:
        task = state.tasks[event.task]
        self.approvals[task.id] = event.commit
        self.approved_ever.add(event.commit)
        verdict = task.last.coachings[-1]
        assert verdict.commit == event.commit == task.last.commit
        assert verdict.review is not None
        assert verdict.review.summary == state.specs[task.id].text
        self.passes(event.commit, task_checks(state, task.id))
        self.proves(event.commit, task_checks(state, task.id))

    def built(self, task: TaskState) -> None:
        """What is merged is what was approved, and nothing beside it."""
        repository, approved = self.world.repository, self.approvals[task.id]
        merge, onto = repository.commits[task.candidate_commit or ""], task.candidate_onto or ""
        assert merge.parents == (onto, approved), "something else was merged than was approved"
        whole, conflicts = repository._combined(onto, approved)
        assert not conflicts
        assert repository.trees[merge.tree] == whole, "the merge holds what nobody reviewed"

    def moving(self, event: e.TipMoveStarted, before: RunState) -> None:
        """No tip is announced whose very tree has not passed all that concerns it."""
        tasks = [before.tasks[id_] for id_ in event.tasks]
        assert event.commit == tasks[-1].candidate_commit
        if not any(task.moving_as for task in tasks):  # else it was announced before
            self.proves(event.commit, evidence.merge_demand(before, tasks).checks)

    def merged(self, event: e.TaskMerged, before: RunState, state: RunState) -> None:
        repository, tip = self.world.repository, state.tip
        assert before.tip in repository.ancestry(tip), "the tip lost work"
        assert event.commit in repository.ancestry(tip), "merged means that the tip has it"
        again = state.specs[event.task].scenario
        once = self.merges[event.task] <= 1 + self.reopened[event.task]
        assert again or once, "merged once each time it is asked for"
        merge = repository.commits[event.commit]
        if event.candidate:
            assert merge.parents[1] == self.approvals[event.task], "merged is what was approved"
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

    def proves(self, commit: str, checks: tuple[str, ...]) -> None:
        """It is on record that they passed on that very tree; what finds nothing proves nothing."""
        tree = self.world.repository.commits[commit].tree
        silent = {check for check in checks if holds(check, self.files(commit)) is None}
        assert {*checks} - silent <= self.proven[tree], "taken for proven, and never was"
