"""state = fold(events). Every field of the state is set here and nowhere else."""

from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from msgspec.structs import replace

from windlass.errors import IllegalEvent
from windlass.events import model as e
from windlass.state.model import Attempt, Coaching, RunState, TaskState
from windlass.state.transitions import (
    HELPLESS,
    RUN_TRANSITIONS,
    TASK_TRANSITIONS,
    Phase,
    next_phase,
    next_run_phase,
)

_COUNTED = frozenset({"unchanged", "refused", "checks", "review"})
"""Causes of a return that use up a turn; conflicts have a bound of their own."""


def fold(events: Iterable[e.Event]) -> RunState | None:
    """The state of the last run these events tell of."""
    state: RunState | None = None
    for event in events:
        state = apply(state, event)
    return state


def runs(events: Iterable[e.Event]) -> list[RunState]:
    """The state each run in the journal was left in, oldest first."""
    states: list[RunState] = []
    for event in events:
        if isinstance(event, e.RunStarted):
            states.append(apply(None, event))
        elif states:
            states[-1] = apply(states[-1], event)
        else:
            raise IllegalEvent(f"{type(event).__name__} came before any run was started")
    return states


def apply(state: RunState | None, event: e.Event) -> RunState:
    """What is true once the event has happened."""
    if isinstance(event, e.RunStarted):
        return _started(event)
    if state is None:
        raise IllegalEvent(f"{type(event).__name__} came before any run was started")
    if isinstance(event, e.TaskEvent):
        return _apply_to_task(state, event)
    return _apply_to_run(state, event)


def _started(event: e.RunStarted) -> RunState:
    return RunState(
        run=event.run,
        plan=event.plan,
        settings=event.settings,
        sandbox=event.sandbox,
        base=event.base,
        base_branch=event.base_branch,
        started_at=event.at,
        at=event.at,
        tip=event.base,
        tasks={task.id: TaskState(id=task.id) for task in event.plan.tasks},
        specs={task.id: task for task in event.plan.tasks},
    )


def _apply_to_run(state: RunState, event: e.RunEvent) -> RunState:
    match event:
        case e.RunResumed():
            return _resumed(state, event)
        case e.StopRequested():
            return replace(state, at=event.at, stopping=event.by)
        case e.RunEnded():
            return replace(
                state, at=event.at, ended=event.status, reason=event.reason, ended_at=event.at
            )
        case e.BaselineFinished():
            changes: dict[str, Any] = {"baseline": event.results}
        case e.VerificationFinished():
            changes = {
                "verification": event.results,
                "evidence": _with_evidence(state, event.tree, event.results),
            }
        case _:
            changes = {}
    return replace(state, at=event.at, phase=next_run_phase(state.phase, event), **changes)


def _resumed(state: RunState, event: e.RunResumed) -> RunState:
    """Nothing is under way any more; every phase that had an effect goes back to before it."""
    return replace(
        state,
        at=event.at,
        settings=event.settings,
        sandbox=event.sandbox,
        phase=RUN_TRANSITIONS[state.phase].get(e.RunResumed, state.phase),
        tasks=(tasks := {id_: _interrupted(task, event) for id_, task in state.tasks.items()}),
        queue=_requeued(state.queue, tasks),
        stopping=None,
        ended=None,
        reason="",
        ended_at=None,
        resumes=state.resumes + 1,
        base_moved_to=event.base_moved_to,
    )


def _requeued(queue: tuple[str, ...], tasks: Mapping[str, TaskState]) -> tuple[str, ...]:
    """The queue with the approved tasks that had left it for a person."""
    back = (id_ for id_, task in tasks.items() if task.phase is Phase.APPROVED)
    return (*queue, *(id_ for id_ in back if id_ not in queue))


def _interrupted(task: TaskState, event: e.RunResumed) -> TaskState:
    to = TASK_TRANSITIONS[task.phase].get(e.RunResumed, task.phase)
    changes: dict[str, Any] = {"failures": {}, "check_runs": 0}
    if to is not task.phase and task.phase in HELPLESS:
        changes |= _helped(task)
    if task.phase is Phase.PLAYING:
        changes["attempts"] = _amended(
            task,
            finished_at=event.at,
            failure=e.Failure.INTERRUPTED,
            message="the run ended while the Player worked",
            usage=e.Usage(known=False),
        )
    if task.phase is Phase.REVIEWING:
        lost = replace(
            task.last.coachings[-1],
            finished_at=event.at,
            failure=e.Failure.INTERRUPTED,
            message="the run ended while the Coach worked",
            usage=e.Usage(known=False),
        )
        changes["attempts"] = _amended(task, coachings=(*task.last.coachings[:-1], lost))
    return replace(task, phase=to, **changes)


def _helped(task: TaskState) -> dict[str, Any]:
    """A person has looked: every bound begins anew."""
    return {"question": None, "rounds": 0, "helped_after": len(task.attempts)}


def _apply_to_task(state: RunState, event: e.TaskEvent) -> RunState:
    if event.task not in state.tasks:
        raise IllegalEvent(f"there is no task {event.task!r} in plan {state.plan.id!r}")
    task = state.tasks[event.task]
    task = replace(
        task,
        phase=next_phase(task.id, task.phase, event),
        **_task_changes(state, task, event),
    )
    return replace(
        state,
        at=event.at,
        tasks={**state.tasks, task.id: task},
        **_run_changes(state, event),
    )


def _task_changes(  # noqa: C901  one arm a fact
    state: RunState, task: TaskState, event: e.TaskEvent
) -> dict[str, Any]:
    match event:
        case e.PlayerStarted():
            return _player_started(state, task, event)
        case e.PlayerFinished():
            attempts = _amended(
                task,
                finished_at=event.at,
                summary=event.summary,
                usage=event.usage,
                question=event.question,
            )
            return {"attempts": attempts, "failures": {}}
        case e.PlayerFailed():
            return _player_failed(task, event)
        case e.SnapshotTaken():
            attempts = _amended(
                task,
                kind=event.kind,
                commit=event.commit,
                tree=event.tree,
                changed=event.changed,
                files=event.files,
            )
            return {"attempts": attempts, "check_runs": 0}
        case e.SnapshotRefused():
            return {"attempts": _amended(task, refused=event.reason)}
        case e.ChecksFinished():
            return {
                "attempts": _amended(task, results=event.results),
                "check_runs": task.check_runs + 1,
            }
        case e.TurnReturned():
            return _turn_returned(task, event)
        case e.CoachStarted() | e.CoachAnswered() | e.CoachFailed():
            return _coach_changes(task, event)
        case e.Answered():
            told = f"{task.question}\n\nAnswer: {event.text}" if task.question else event.text
            return {"answers": (*task.answers, told), "failures": {}, **_helped(task)}
        case _:
            return _later_changes(event)


def _later_changes(event: e.TaskEvent) -> dict[str, Any]:  # noqa: C901  one arm a fact
    match event:
        case e.WaitStarted():
            return {"wait_until": event.until}
        case e.TimerFired():
            return {"wait_until": None}
        case e.HelpNeeded():
            return {"question": event.question}
        case e.CheckpointPassed():
            return {"question": None, "released": True}
        case e.TaskAbandoned():
            return {"question": event.reason}
        case e.MergeStarted():
            return {"candidate": event.candidate, "check_runs": 0, "conflict": ""}
        case e.MergeBuilt():
            return {"candidate_commit": event.commit, "candidate_tree": event.tree}
        case e.MergeConflicted():
            return {"conflict": event.detail}
        case e.TaskMerged():
            return {"merge_commit": event.commit, "merged_at": event.at}
        case _:
            return {}


def _player_started(state: RunState, task: TaskState, event: e.PlayerStarted) -> dict[str, Any]:
    attempt = Attempt(
        n=event.n, turn=event.turn, start=event.start, onto=event.onto, started_at=event.at
    )
    first = not task.attempts
    return {
        "attempts": (*task.attempts, attempt),
        "merged_before": len(state.merged) if first else task.merged_before,
        "candidate": None,
        "candidate_commit": None,
        "candidate_tree": None,
    }


def _player_failed(task: TaskState, event: e.PlayerFailed) -> dict[str, Any]:
    attempts = _amended(
        task,
        finished_at=event.at,
        failure=event.failure,
        message=event.message,
        usage=event.usage,
        retry_at=event.retry_at,
        jitter=event.jitter,
    )
    return {"attempts": attempts, "failures": _one_more(task.failures, event.failure)}


def _coach_changes(
    task: TaskState, event: e.CoachStarted | e.CoachAnswered | e.CoachFailed
) -> dict[str, Any]:
    coachings = task.last.coachings
    match event:
        case e.CoachStarted():
            new = Coaching(k=event.k, commit=event.commit, started_at=event.at)
            return {"attempts": _amended(task, coachings=(*coachings, new))}
        case e.CoachAnswered():
            done = replace(
                coachings[-1],
                finished_at=event.at,
                review=event.review,
                usage=event.usage,
                touched=event.touched,
            )
            failures: dict[e.Failure, int] = {}
        case e.CoachFailed():
            done = replace(
                coachings[-1],
                finished_at=event.at,
                failure=event.failure,
                message=event.message,
                usage=event.usage,
                retry_at=event.retry_at,
                jitter=event.jitter,
            )
            failures = _one_more(task.failures, event.failure)
        case _:
            assert_never(event)
    return {"attempts": _amended(task, coachings=(*coachings[:-1], done)), "failures": failures}


def _turn_returned(task: TaskState, event: e.TurnReturned) -> dict[str, Any]:
    counted = event.cause in _COUNTED
    return {
        "attempts": _amended(task, feedback=event.feedback),
        "feedback": event.feedback,
        "turn": task.turn + counted,
        "rounds": task.rounds + (not counted),
    }


def _run_changes(state: RunState, event: e.TaskEvent) -> dict[str, Any]:
    match event:
        case e.TaskApproved():
            return {"queue": (*state.queue, event.task)}
        case e.TurnReturned() | e.HelpNeeded():
            return {"queue": _without(state.queue, event.task)}
        case e.ChecksFinished():
            return {"evidence": _with_evidence(state, event.tree, event.results)}
        case e.MergeStarted():
            return {"candidates": event.candidate}
        case e.TaskMerged():
            return {
                "queue": _without(state.queue, event.task),
                "merged": (*state.merged, event.task),
                "tip": event.commit,
                "tip_tree": state.tasks[event.task].candidate_tree,
                "notes": (*state.notes, event.note) if event.note else state.notes,
            }
        case _:
            return {}


def _one_more(failures: Mapping[e.Failure, int], failure: e.Failure) -> dict[e.Failure, int]:
    return {**failures, failure: failures.get(failure, 0) + 1}


def _without(queue: tuple[str, ...], task_id: str) -> tuple[str, ...]:
    return tuple(other for other in queue if other != task_id)


def _with_evidence(
    state: RunState, tree: str, results: tuple[e.CheckResult, ...]
) -> Mapping[str, Mapping[str, e.CheckResult]]:
    # What a passing check printed is in the logs; what a failing one printed is feedback.
    said = {
        result.command: replace(result, output="") if result.outcome is e.Outcome.PASS else result
        for result in results
    }
    return {**state.evidence, tree: {**state.evidence.get(tree, {}), **said}}


def _amended(task: TaskState, **changes: object) -> tuple[Attempt, ...]:
    return (*task.attempts[:-1], replace(task.attempts[-1], **changes))
