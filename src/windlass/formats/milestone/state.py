"""`state/<milestone>_state.json`: the state file of the milestone tool.

A projection: Windlass never reads it back. It is written where such a file exists already, for a
run that adopted work, and where `[state_files] milestone` asks for it; a plan of Windlass's own
leaves no file in the repository.
"""

from collections.abc import Mapping

from msgspec import Struct

from windlass.core.plan import Plan
from windlass.core.state import Phase, RunState, TaskState
from windlass.core.state.stretches import worked
from windlass.core.state.transitions import HELPLESS, IN_TIP
from windlass.formats.dialect import Projection
from windlass.formats.state_files import (
    STALE,
    Claim,
    Claims,
    Redact,
    as_mapping,
    as_text,
    as_texts,
    json_object,
    rendered,
)


class TaskResult(Struct, frozen=True, kw_only=True):
    """The result of one task."""

    task_id: str
    status: str
    duration_seconds: float
    tokens_used: int
    cost_usd: float
    output: str
    error: str | None
    commit: str | None


class MilestoneState(Struct, frozen=True, kw_only=True):
    """Every field of the milestone tool's state, in its order."""

    milestone_id: str
    plan_path: str
    started_at: str
    current_task_index: int
    completed_tasks: tuple[str, ...]
    failed_tasks: tuple[str, ...]
    task_results: dict[str, TaskResult]
    e2e_status: str | None
    task_attempt_counts: dict[str, int]
    task_errors: dict[str, list[str]]
    e2e_attempt_count: int
    e2e_errors: tuple[str, ...]


def writes(plan: Plan) -> tuple[str, ...]:
    """The path of the state file."""
    return (f"state/{plan.id}_state.json",)


def project(state: RunState, texts: Mapping[str, str], redact: Redact) -> Projection:
    """The state file of this state; none where nothing asks for it."""
    [path] = writes(state.plan)
    if path not in texts and not _is_wanted(state):
        return {}
    all_begun = [task for task in state.tasks.values() if task.attempts]
    begun = [task for task in all_begun if not state.specs[task.id].scenario]
    scenario = next((task for task in all_begun if state.specs[task.id].scenario), None)
    completed = tuple(id_ for id_ in state.done if not state.specs[id_].scenario)
    file = MilestoneState(
        milestone_id=state.plan.id,
        plan_path=state.plan.path,
        started_at=state.started_at.isoformat(),
        current_task_index=len(completed),
        completed_tasks=completed,
        failed_tasks=tuple(t.id for t in begun if t.phase is Phase.ABANDONED),
        task_results={task.id: _result(state, task) for task in begun if _has_result(task)},
        e2e_status=_e2e_status(scenario) if scenario is not None else None,
        task_attempt_counts={task.id: task.last.turn for task in begun},
        task_errors={task.id: errors for task in begun if (errors := _errors(task))},
        e2e_attempt_count=_tries(scenario) if scenario is not None else 0,
        e2e_errors=tuple(_errors(scenario)) if scenario is not None else (),
    )
    return {path: rendered(file, redact)}


def _is_wanted(state: RunState) -> bool:
    adopted = any(task.phase in IN_TIP and not task.attempts for task in state.tasks.values())
    return adopted or state.settings.state_files.milestone


def claims(_path: str, text: str) -> Claims | None:
    """What such a file claims."""
    found = json_object(text)
    if (
        found is None
        or "plan_path" not in found
        or not isinstance(found.get("completed_tasks"), list)
    ):
        return None
    results, failed = as_mapping(found.get("task_results")), as_texts(found.get("failed_tasks"))
    done = as_texts(found["completed_tasks"])
    words = {**dict.fromkeys(failed, "failed"), **dict.fromkeys(done, "completed")}
    return Claims(
        plan=as_text(found["plan_path"]),
        tasks={
            id_: Claim(
                status=word,
                done=word == "completed",
                # Only Windlass names a commit here; the milestone tool does not.
                commits=tuple(filter(None, [as_text(as_mapping(results.get(id_)).get("commit"))])),
            )
            for id_, word in words.items()
        },
    )


def _e2e_status(scenario: TaskState) -> str:
    if scenario.phase is Phase.MERGED:
        return "passed"
    return "needs_human" if scenario.phase in HELPLESS else "in_progress"


def _tries(scenario: TaskState) -> int:
    """How often a Coach tried the scenario and gave a verdict."""
    return sum(c.review is not None for a in scenario.attempts for c in a.coachings)


def _has_result(task: TaskState) -> bool:
    return task.phase in HELPLESS | {Phase.MERGED, Phase.ABANDONED}


def _result(state: RunState, task: TaskState) -> TaskResult:
    ended = task.merged_at or task.last.finished_at or task.last.started_at
    return TaskResult(
        task_id=task.id,
        status=_RESULTS.get(task.phase, task.status),
        duration_seconds=round(worked(state, task.attempts[0].started_at, ended), 3),
        tokens_used=task.spent.tokens,
        cost_usd=round(task.spent.cost_usd, 6),
        output=task.last.summary,
        error=_error(task),
        commit=task.merge_commit,
    )


_RESULTS = {Phase.ABANDONED: "failed", Phase.STALE: "needs_human"}
"""The milestone tool's words for results, where they differ from Windlass's status words."""


def _error(task: TaskState) -> str | None:
    if task.phase is Phase.STALE:
        return STALE
    return None if task.merge_commit else task.question or task.feedback


def _errors(task: TaskState) -> list[str]:
    errors = (attempt.feedback or attempt.message for attempt in task.attempts)
    return [error for error in errors if error]
