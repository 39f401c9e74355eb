"""The merge queue: approved commits onto the tip, one after another, in the order of approval.

Law: the tip moves only to a commit whose tree passed every check that concerns it, and only from
the commit it was merged with.
"""

from datetime import datetime
from typing import assert_never

from windlass.events import model as e
from windlass.scheduler import evidence
from windlass.scheduler.gate import Judgement
from windlass.state import Phase, RunState, TaskState
from windlass.state.transitions import IN_MERGE

_CONFLICT = (
    "Your work cannot be merged with what others merged meanwhile. Their work was merged into "
    "your workspace, conflict markers and all. Settle every conflict so that nothing of either "
    "side is lost, and leave no marker behind.\n\n"
)
_RED_MERGE = (
    "Your work passes alone, but not together with what others merged meanwhile. Their work was "
    "merged into your workspace; mend what fails there without undoing theirs.\n\n"
)
_OTHER_TIP = "It holds of a tip that has moved since; it is to be tried on what is there now."


def steps(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """The next step of the queue: at most one, for it is a queue."""
    conflicted = [task for task in state.live if task.phase is Phase.CONFLICTED]
    if conflicted:
        return tuple(_conflict_returned(task, at) for task in conflicted)
    head = next((task for task in state.live if task.phase in IN_MERGE), None)
    if head is not None:
        return _judge(state, head, at) if head.phase is Phase.BUILT else ()
    if not state.queue:
        return ()
    task = state.tasks[state.queue[0]]
    if task.last.is_tip:
        return (_tip_approved(state, task, at),)
    return (
        e.MergeStarted(
            at=at,
            task=task.id,
            candidate=state.candidates + 1,
            commit=task.last.commit or "",
            tip=state.tip,
        ),
    )


def _tip_approved(state: RunState, task: TaskState, at: datetime) -> e.Event:
    """There is nothing to merge; but what held of another tip says nothing of this one."""
    if task.last.commit == state.tip:
        return e.TaskMerged(at=at, task=task.id, candidate=0, commit=state.tip)
    return e.TurnReturned(at=at, task=task.id, cause="conflict", feedback=_OTHER_TIP)


def _conflict_returned(task: TaskState, at: datetime) -> e.TurnReturned:
    return e.TurnReturned(at=at, task=task.id, cause="conflict", feedback=_CONFLICT + task.conflict)


def _judge(state: RunState, task: TaskState, at: datetime) -> tuple[e.Event, ...]:
    commit, tree = task.candidate_commit or "", task.candidate_tree or ""
    move = e.TipMoveStarted(
        at=at, task=task.id, candidate=task.candidate or 0, commit=commit, tip=state.tip
    )
    if task.moving_as is not None:
        return (move,)  # git may have moved the tip already, and there is no way back
    verdict = evidence.verdict(state, task, tree, evidence.merge_checks(state, task.id))
    match verdict.judgement:
        case Judgement.RUN:
            return (
                e.ChecksStarted(
                    at=at, task=task.id, commit=commit, tree=tree, checks=verdict.rerun
                ),
            )
        case Judgement.RETURN:
            feedback = _RED_MERGE + verdict.reason
            return (e.TurnReturned(at=at, task=task.id, cause="merged_checks", feedback=feedback),)
        case Judgement.ASK:
            return (e.HelpNeeded(at=at, task=task.id, question=verdict.reason),)
        case Judgement.PASS:
            return (move,)
        case _:
            assert_never(verdict.judgement)
