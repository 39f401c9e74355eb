"""The auditor itself is audited: each thing it promises to see is spoilt once, and seen."""
# B4 B7 M5

import sys
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from simulation.anything import Anything
from simulation.auditor import Auditor
from windlass.core.events import model as e
from windlass.core.intents import BuildMerge, RunChecks
from windlass.core.scheduler import ending, evidence, merge_queue
from windlass.core.state import Phase, staleness, task_fold
from windlass.runner import Runner, Session, loop
from windlass.runner.effects import Effects
from windlass.testing.memory import MemoryRepository

WORLDS = range(60)


def smuggled(was: Callable[..., Any]) -> Callable[..., Any]:
    """Something is merged that nobody reviewed."""

    def merge(self: MemoryRepository, author: Any, n: int, commit: str, onto: str) -> Any:
        files = {**self.files(commit), "shared": "smuggled"}
        return was(self, author, n, self._commit(files, (commit,), "unreviewed"), onto)

    return merge


def of_its_parent(was: Callable[..., Any]) -> Callable[..., Any]:
    """A Coach is given another commit than the one it is asked about."""
    return lambda self, commit, label: was(self, [*self.ancestry(commit)][-1], label)


def on_the_tip(was: Callable[..., Any]) -> Callable[..., Any]:
    """Checks are run on another commit than the one they are believed of."""

    async def check(self: Effects, intent: RunChecks) -> Any:
        base = self._ports.repository.base
        [said] = await was(self, replace(intent, commit=base))
        return (replace(said, commit=intent.commit),)

    return check


def unproven(_was: Callable[..., Any]) -> Callable[..., Any]:
    """The tip moves to a merge whose tree nobody has checked."""
    return merge_queue._move


def too_early(was: Callable[..., Any]) -> Callable[..., Any]:
    """The tip moves before anybody has said that it may."""

    async def merge(self: Effects, intent: BuildMerge) -> Any:
        [made] = await was(self, intent)
        if isinstance(made, e.MergeBuilt):
            self._ports.repository.tip = made.commit
        return (made,)

    return merge


def unpinned(was: Callable[..., Any]) -> Callable[..., Any]:
    """What is approved is left to whoever collects garbage."""

    async def snapshot(self: MemoryRepository, author: Any, kind: str, parents: Any) -> Any:
        made = await was(self, author, kind, parents)
        self.pins.pop(f"task/{author.task}/{author.n}/{kind}", None)
        return made

    return snapshot


def users_too(was: Callable[..., Any]) -> Callable[..., Any]:
    """The user's branch goes along with the tip."""

    async def move_tip(self: MemoryRepository, tip: str, commit: str) -> str:
        self.branches["main"] = commit
        return await was(self, tip, commit)

    return move_tip


def costs_a_turn(was: Callable[..., Any]) -> Callable[..., Any]:
    """A provider that fails is taken for code that does."""
    return lambda task, event: replace(was(task, event), turn=task.turn + 1)


def interrupted_costs_a_turn(was: Callable[..., Any]) -> Callable[..., Any]:
    """A process that dies is taken for code that fails."""

    def interrupted(task: Any, event: Any, **how: Any) -> Any:
        after = was(task, event, **how)
        return replace(after, turn=task.turn + (task.phase is Phase.PLAYING))

    return interrupted


def halved(was: Callable[..., Any]) -> Callable[..., Any]:
    """Half of what a request cost is recorded."""

    def settle(self: Runner, id_: str, usage: e.Usage, *, broke_off: bool = False) -> None:
        was(self, id_, replace(usage, cost_usd=usage.cost_usd / 2), broke_off=broke_off)

    return settle


def beside_the_journal(was: Callable[..., Any]) -> Callable[..., Any]:
    """Something is taken for true that no fact says."""

    def store(self: Session, step: Any) -> Any:
        done = was(self, step)
        self._state = replace(self.state, tip_runs=self.state.tip_runs + 1)
        return done

    return store


def never_over(_was: Callable[..., Any]) -> Callable[..., Any]:
    """What is completed is taken up again."""
    return lambda _state: False


def never_stale(_was: Callable[..., Any]) -> Callable[..., Any]:
    """A merged task stays done, whatever the plan says of it now."""
    return lambda task, _spec: task


def not_asked(_was: Callable[..., Any]) -> Callable[..., Any]:
    """The tip is asked what its tasks were merged for, and not what the plan asks now."""
    return evidence._merged_as


def completed_anyway(was: Callable[..., Any]) -> Callable[..., Any]:
    """A run with a stale task ends as if it were complete."""

    def unfinished(state: Any, at: Any) -> e.RunEnded:
        end = was(state, at)
        return replace(end, status=e.RunEnd.COMPLETED) if state.stale else end

    return unfinished


SPOILT = {
    never_stale: (staleness, "settled", "a stale task is taken for done"),
    not_asked: (evidence, "_asked_of_tip", "never passed what the plan asks now"),
    completed_anyway: (ending, "_unfinished", "a run with a stale task is taken for completed"),
    smuggled: (MemoryRepository, "merge", "merged than was approved"),
    of_its_parent: (MemoryRepository, "throwaway", "the Coach saw something else"),
    on_the_tip: (Effects, "_check", "checks of something else"),
    unproven: (merge_queue, "_judge", "taken for proven, and never was"),
    too_early: (Effects, "_merge", "the tip is where it was proven to be right"),
    unpinned: (MemoryRepository, "snapshot", "approved and unreachable"),
    users_too: (MemoryRepository, "move_tip", "nobody else moved the user's branch"),
    costs_a_turn: (task_fold, "_agent_failed", "only what is the code's fault costs a turn"),
    interrupted_costs_a_turn: (
        sys.modules["windlass.core.state.fold"],  # the package has the function of that name
        "interrupted",
        "only what is the code's fault costs a turn",
    ),
    halved: (Runner, "settle", "what the provider asked for"),
    beside_the_journal: (Session, "_store", "the fold of what is stored"),
    never_over: (loop, "is_finished", "what is over is not taken up again"),
}


@pytest.mark.parametrize("spoil", SPOILT, ids=lambda spoil: spoil.__name__)
def test_what_is_spoilt_is_seen(spoil: Callable[..., Any], monkeypatch: pytest.MonkeyPatch):
    where, name, seen = SPOILT[spoil]
    monkeypatch.setattr(loop, "INBOX_SECONDS", 0)
    monkeypatch.setattr(where, name, spoil(getattr(where, name)))
    with pytest.raises((AssertionError, ExceptionGroup)) as fault:
        audited(WORLDS)
    assert seen in " ".join(words(fault.value))


def audited(seeds: range) -> None:
    for seed in seeds:
        anything = Anything(seed)
        auditor = Auditor(anything)
        anything.go()
        auditor.audit()


def words(error: BaseException) -> list[str]:
    """What was said, by one or by several at once."""
    if isinstance(error, BaseExceptionGroup):
        return [word for each in error.exceptions for word in words(each)]
    return [str(error)] if isinstance(error, AssertionError) else []
