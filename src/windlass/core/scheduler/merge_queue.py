"""The merge queue: approved commits onto the tip, in the order of approval.

Tasks that wait at the same time form one batch: each commit is merged onto the merge before it,
and the last merge is checked for all of them. If it passes, the tip moves to it. If not, the first
half is checked, and so on, until one commit is found that fails on a tip that passed. That task is
returned, the tasks before it are merged, and those after it are merged again.

Law: the tip moves only to a commit whose tree passed all its checks, and only from the commit it
was merged with. The progress of a batch follows from the evidence alone.
"""

from datetime import datetime
from typing import assert_never

from windlass.core.events import model as e
from windlass.core.scheduler import evidence
from windlass.core.scheduler.gate import Judgement, Verdict
from windlass.core.state import Phase, RunState, TaskState
from windlass.core.state.checks import free_slots
from windlass.core.state.transitions import IN_MERGE

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
    """The next steps of the queue; at most one batch is under way."""
    conflicted = [task for task in state.live if task.phase is Phase.CONFLICTED]
    if conflicted:
        return tuple(_conflicted(state, task, at) for task in conflicted)
    merging = [task for task in state.live if task.phase in IN_MERGE]
    if any(task.phase is not Phase.BUILT for task in merging):
        return ()
    batch = _batch(state, merging)
    loose = [task for task in merging if task not in batch]
    if loose:
        return tuple(e.MergeSetAside(at=at, task=task.id) for task in loose)
    if batch and (due := _judge(state, batch, at)) is not None:
        return (due,)
    if (task := _next(state, batch)) is not None:
        return (_begin(state, task, batch, at),)
    return (_check(state, batch, at),) if batch and free_slots(state) > 0 else ()


def _batch(state: RunState, built: list[TaskState]) -> list[TaskState]:
    """The merges on top of the tip, each made onto the one before it."""
    by_onto = {task.candidate_onto: task for task in built}
    batch: list[TaskState] = []
    at: str | None = state.tip
    while (task := by_onto.pop(at, None)) is not None:
        batch.append(task)
        at = task.candidate_commit
    return batch


def _next(state: RunState, batch: list[TaskState]) -> TaskState | None:
    """The task that joins the batch next; None once the batch is being checked."""
    if len(batch) >= state.settings.batch or any(task.check_runs for task in batch):
        return None
    merges = {task.candidate_commit for task in batch}
    waiting = (state.tasks[id_] for id_ in state.queue)
    for task in waiting:
        if task.phase is not Phase.APPROVED or task.clashes_with in merges:
            continue
        # A scenario approved on the tip itself is not merged, and forms a batch alone.
        return task if not (batch and task.last.is_tip) else None
    return None


def _begin(state: RunState, task: TaskState, batch: list[TaskState], at: datetime) -> e.Event:
    if task.last.is_tip:
        return _tip_approved(state, task, at)
    return e.MergeStarted(
        at=at,
        task=task.id,
        candidate=state.candidates + 1,
        commit=task.last.commit or "",
        onto=(batch[-1].candidate_commit if batch else None) or state.tip,
    )


def _tip_approved(state: RunState, task: TaskState, at: datetime) -> e.Event:
    """There is nothing to merge; but an approval of another tip does not count."""
    if task.last.commit == state.tip:
        return e.TaskMerged(at=at, task=task.id, candidate=0, commit=state.tip)
    return e.TurnReturned(at=at, task=task.id, cause="conflict", feedback=_OTHER_TIP)


def _conflicted(state: RunState, task: TaskState, at: datetime) -> e.Event:
    """A conflict with the tip goes to the Player; one within the batch may go away."""
    if task.candidate_onto != state.tip:
        return e.MergeSetAside(at=at, task=task.id)
    return e.TurnReturned(at=at, task=task.id, cause="conflict", feedback=_CONFLICT + task.conflict)


def _judge(state: RunState, batch: list[TaskState], at: datetime) -> e.Event | None:
    """Move the tip or return the first task of the batch, if the evidence is enough."""
    moving = [task for task in batch if task.moving_as is not None]
    if moving:
        return _move(state, moving, at)  # git may have moved the tip already
    verdicts = _verdicts(state, batch)
    passed = [i for i, verdict in enumerate(verdicts) if verdict.judgement is Judgement.PASS]
    if passed:
        return _move(state, batch[: passed[-1] + 1], at)
    return _refused(batch[0], verdicts[0], at)


def _verdicts(state: RunState, batch: list[TaskState]) -> list[Verdict]:
    return [evidence.merge_verdict(state, batch[: i + 1]) for i in range(len(batch))]


def _refused(task: TaskState, verdict: Verdict, at: datetime) -> e.Event | None:
    match verdict.judgement:
        case Judgement.RETURN:
            feedback = _RED_MERGE + verdict.reason
            return e.TurnReturned(at=at, task=task.id, cause="merged_checks", feedback=feedback)
        case Judgement.ASK:
            return e.HelpNeeded(at=at, task=task.id, question=verdict.reason)
        case Judgement.RUN | Judgement.PASS:
            return None
        case _:
            assert_never(verdict.judgement)


def _check(state: RunState, batch: list[TaskState], at: datetime) -> e.Event:
    """Check the whole batch; if a part is known to fail, check the first half of that part."""
    verdicts = _verdicts(state, batch)
    red = (i for i, v in enumerate(verdicts) if v.judgement in {Judgement.RETURN, Judgement.ASK})
    begun = (i for i, task in enumerate(batch) if task.check_runs)
    asked_again = next((i for i in begun if verdicts[i].judgement is Judgement.RUN), None)
    first_red = next(red, len(batch))
    at_once = len(batch) - 1 if first_red == len(batch) else (first_red - 1) // 2
    chosen = asked_again if asked_again is not None and asked_again < first_red else at_once
    task = batch[chosen]
    return e.ChecksStarted(
        at=at,
        task=task.id,
        commit=task.candidate_commit or "",
        tree=task.candidate_tree or "",
        checks=verdicts[chosen].rerun,
    )


def _move(state: RunState, tasks: list[TaskState], at: datetime) -> e.TipMoveStarted:
    return e.TipMoveStarted(
        at=at,
        tasks=tuple(task.id for task in tasks),
        commit=tasks[-1].candidate_commit or "",
        tip=state.tip,
    )
