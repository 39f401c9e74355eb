"""One task's turn, step by step: Player, snapshot, checks, gate. `priority` starts agents."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import assert_never

from windlass.core.events import model as e
from windlass.core.scheduler import evidence, failures, retry, reviews
from windlass.core.scheduler.gate import Judgement
from windlass.core.state import Phase, RunState, TaskState
from windlass.core.state.checks import free_slots
from windlass.core.state.staleness import is_done_for
from windlass.core.state.work import turn_limit

MAX_ROUNDS = 3
"""Rounds a task may spend on conflicts and red merges before a person is asked."""

_EDITED = "an edit of the plan"

_NOTHING_CHANGED = (
    "Nothing was changed. Saying that the work is done is not evidence: change the files that the "
    "task asks for."
)


def steps(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """Every step of a turn that is due, over all tasks."""
    if edited := [id_ for id_ in state.index.scenarios if state.is_stale(id_)]:
        # A scenario has no merge. If its text has changed, it is tried again.
        return tuple(e.TaskReopened(at=at, task=id_, by=_EDITED) for id_ in edited)
    scenarios = (state.tasks[id_] for id_ in state.index.scenarios if id_ in state.index.free)
    due = (_step(state, task, at) for task in (*state.live, *scenarios))
    return tuple(_within_slots(state, (event for event in due if event is not None)))


def _within_slots(state: RunState, due: Iterable[e.Event]) -> Iterator[e.Event]:
    """The due facts, without checks beyond the free slots."""
    free = free_slots(state)
    for event in due:
        if isinstance(event, e.ChecksStarted):
            free -= 1
            if free < 0:
                continue
        yield event


def keep_what_is_left(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """The snapshots that are due even while the run stops, so that no work is lost."""
    unsaved = (t for t in state.live if t.phase in {Phase.PLAYED, Phase.LEFT})
    return tuple(_save(task, at) for task in unsaved)


def _step(state: RunState, task: TaskState, at: datetime) -> e.Event | None:
    match task.phase:
        case Phase.PENDING | Phase.RETURNED if begins_with_tip(state, task):
            return _take_tip(state, task, at)
        case Phase.PLAYED | Phase.LEFT:
            return _save(task, at)
        case Phase.FAILED:
            return failures.step(task, task.last, "agent", at)
        case Phase.REFUSED:
            return e.TurnReturned(at=at, task=task.id, cause="refused", feedback=task.last.refused)
        case Phase.SAVED | Phase.CHECKED:
            return _judge_work(state, task, at)
        case Phase.REVIEWED | Phase.UNREVIEWED:
            return reviews.step(state, task, at)
        case Phase.RETURNED:
            return _give_up(state, task, at)
        case _:
            return None


def begins_with_tip(state: RunState, task: TaskState) -> bool:
    """Whether it is a scenario that has not been tried yet, or not since a person answered."""
    return state.specs[task.id].scenario and (task.phase is Phase.PENDING or task.turn == 0)


def _take_tip(state: RunState, task: TaskState, at: datetime) -> e.TipTaken | None:
    """A scenario begins with the tip, once all other tasks are merged."""
    if state.index.merged < len(state.tasks) - 1:
        return None
    n = len(task.attempts) + 1
    return e.TipTaken(at=at, task=task.id, n=n, commit=state.tip, tree=state.tip_tree or "")


def _judge_work(state: RunState, task: TaskState, at: datetime) -> e.Event | None:
    """Judge the Player's work as far as possible without paying for a review."""
    if task.last.question and task.last.n > task.helped_after:
        return e.HelpNeeded(at=at, task=task.id, question=task.last.question)
    if not task.last.is_tip and not _changed(task):
        if (merge := _standing_merge(state, task)) is not None:
            return e.MergeStands(at=at, task=task.id, commit=merge)
        return e.TurnReturned(at=at, task=task.id, cause="unchanged", feedback=_unchanged(task))
    return _judge_checks(state, task, at)


def _save(task: TaskState, at: datetime) -> e.SnapshotStarted:
    kind = "snapshot" if task.phase is Phase.PLAYED else "partial"
    return e.SnapshotStarted(at=at, task=task.id, n=task.last.n, kind=kind)


def _changed(task: TaskState) -> bool:
    """Whether the work differs from the start of the turn.

    An interrupted turn continues from its partial work, so the whole turn counts. A round that
    resolves a conflict may end with exactly the tip's content.
    """
    present = task.attempts[task.begun_after :]
    this_turn = [attempt for attempt in present if attempt.turn == task.turn]
    return any(attempt.changed or attempt.onto is not None for attempt in this_turn)


def _standing_merge(state: RunState, task: TaskState) -> str | None:
    """The earlier merge of a reopened task with the same text that needed no change.

    This approves nothing new: the approved work is in the tip already.
    """
    untouched = not any(attempt.changed for attempt in task.attempts[task.begun_after :])
    same = is_done_for(task, state.specs[task.id])
    return task.merge_before if untouched and same else None


def _unchanged(task: TaskState) -> str:
    """The earlier feedback, followed once by the note that nothing changed."""
    asked = (task.feedback or "").removesuffix(_NOTHING_CHANGED).rstrip()
    return f"{asked}\n\n{_NOTHING_CHANGED}" if asked else _NOTHING_CHANGED


def _judge_checks(state: RunState, task: TaskState, at: datetime) -> e.Event | None:
    commit, tree = task.last.commit or "", task.last.tree or ""
    verdict = evidence.task_verdict(state, task)
    match verdict.judgement:
        case Judgement.RUN:
            return e.ChecksStarted(
                at=at, task=task.id, commit=commit, tree=tree, checks=verdict.rerun
            )
        case Judgement.RETURN:
            return e.TurnReturned(at=at, task=task.id, cause="checks", feedback=verdict.reason)
        case Judgement.ASK:
            return e.HelpNeeded(at=at, task=task.id, question=verdict.reason)
        case Judgement.PASS:
            return None  # ready for a Coach, which `priority` starts
        case _:
            assert_never(verdict.judgement)


def is_ready_for_coach(state: RunState, task: TaskState) -> bool:
    """Whether this commit needs only a review."""
    if task.phase is Phase.UNREVIEWED:
        return failures.retry_of(task, task.last.coachings[-1]).then is retry.Then.AGAIN
    if task.phase not in {Phase.SAVED, Phase.CHECKED}:
        return False
    return evidence.task_verdict(state, task).judgement is Judgement.PASS


def _give_up(state: RunState, task: TaskState, at: datetime) -> e.Event | None:
    limit = turn_limit(state, task.id)
    if state.specs[task.id].scenario:
        if _repairs(task) >= limit:
            repairs = f"{limit} repair{'s' * (limit > 1)}"
            question = f"the scenario still fails after {repairs}: {task.feedback}"
            return e.HelpNeeded(at=at, task=task.id, question=question)
    elif task.turn - task.first_turn >= limit:
        used = task.turn - 1  # those before it was reopened too, as screens count them
        turns = f"{used} turn{'s' * (used > 1)}"
        return e.TaskAbandoned(
            at=at, task=task.id, reason=f"not approved after {turns}: {task.feedback}"
        )
    if task.rounds > MAX_ROUNDS:
        return e.HelpNeeded(
            at=at,
            task=task.id,
            question=f"still cannot be merged after {MAX_ROUNDS} rounds: {task.feedback}",
        )
    if _is_stuck(task):
        return e.HelpNeeded(
            at=at,
            task=task.id,
            question=f"stuck: the same feedback twice, and nothing changed: {task.feedback}",
        )
    return None


def _repairs(task: TaskState) -> int:
    """Turns of Players on a scenario since a person last helped; a scenario is never abandoned."""
    since = (a for a in task.attempts if a.n > task.helped_after and not a.is_tip)
    return len({attempt.turn for attempt in since})


def _is_stuck(task: TaskState) -> bool:
    """The same feedback twice with no change in the tree, since a person last helped.

    Work that was merged with another tip has changed, even if its files are the same.
    """
    returned = [a for a in task.attempts if a.feedback is not None and a.n > task.helped_after]
    if len(returned) < 2:  # noqa: PLR2004  a pair
        return False
    last, before = returned[-1], returned[-2]
    return (last.feedback, last.tree, last.onto) == (before.feedback, before.tree, before.onto)
