"""`execute-state.json` (schema 2.0) in the tasks folder.

A projection: Windlass never reads it back.
Every path in it is relative to the project, so `project_path` is ".".
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType

from msgspec import Struct

from windlass.core.events.values import RunEnd
from windlass.core.plan import Plan
from windlass.core.state import Attempt, Phase, RunState, TaskState
from windlass.core.state.stretches import run_seconds
from windlass.core.state.transitions import Status
from windlass.formats.dialect import Projection
from windlass.formats.state_files import (
    STALE,
    Claim,
    Claims,
    Redact,
    as_list,
    as_mapping,
    as_text,
    json_object,
    rendered,
    utc,
    workspaces_of,
)

BRANCH = "work"
"""The branch of every workspace."""

_STATUS: Mapping[Status, str] = MappingProxyType(
    {
        "pending": "pending",
        "in_progress": "in_progress",
        "verifying": "verifying",
        "verified": "verified",
        "merging": "merging",
        "completed": "completed",
        "failed": "failed",
        "abandoned": "abandoned",
        "needs_human": "failed",  # it continues once a person has helped
        "stale": "failed",  # it is in the tip, but for an older text
    }
)
"""From Windlass's status words to the file's; a task that a person must start is pending."""

_RUN_STATUS: Mapping[RunEnd | None, str] = MappingProxyType(
    {
        None: "in_progress",
        RunEnd.COMPLETED: "completed",
        RunEnd.FAILED: "abandoned",
        RunEnd.NEEDS_HUMAN: "stopped",
        RunEnd.STOPPED: "stopped",
        RunEnd.PAUSED: "stopped",
        RunEnd.LIMIT: "stopped",
        RunEnd.ABORTED: "abandoned",
        RunEnd.ABANDONED: "abandoned",
    }
)
"""From the end of a run to the file's words."""

_QUEUE_STATUS: Mapping[str, str] = MappingProxyType(
    {"completed": "merged", "merging": "merging", "verified": "ready"}
)
"""From the file's words for a task to those of its merge queue; all others are pending there."""


class Layer(Struct, frozen=True, kw_only=True):
    """The state of one layer."""

    status: str
    tasks_total: int
    tasks_completed: int
    tasks_failed: int
    started_at: str | None
    completed_at: str | None


class Commit(Struct, frozen=True, kw_only=True):
    """One commit of a task's work."""

    hash: str
    type: str
    attempt: int
    created_at: str


class Error(Struct, frozen=True, kw_only=True):
    """Why an attempt did not succeed."""

    attempt: int
    message: str
    details: str | None
    timestamp: str


class Feedback(Struct, frozen=True, kw_only=True):
    """The feedback that an attempt must answer."""

    attempt: int
    feedback: str


class TaskEntry(Struct, frozen=True, kw_only=True):
    """The state of one task, and its attempts."""

    status: str
    attempts: int
    worktree_path: str | None
    branch: str | None
    commits: tuple[Commit, ...]
    errors: tuple[Error, ...]
    retry_feedback: tuple[Feedback, ...]
    merged_at: str | None


class Queued(Struct, frozen=True, kw_only=True):
    """The place of one task in the merge queue."""

    task_id: str
    priority: int
    status: str


class Metrics(Struct, frozen=True, kw_only=True):
    """The numbers of the run."""

    total_tasks: int
    completed_tasks: int
    failed_tasks: int
    total_attempts: int
    total_commits: int
    elapsed_time_seconds: int


class ExecuteState(Struct, frozen=True, kw_only=True):
    """Every field of the schema, in its order."""

    schema_version: str
    prd_slug: str
    project_path: str
    worktree_dir: str
    tasks_path: str
    status: str
    current_layer: str | None
    current_batch: int
    started_at: str
    updated_at: str
    completed_at: str | None
    layers: dict[str, Layer]
    tasks: dict[str, TaskEntry]
    merge_queue: tuple[Queued, ...]
    metrics: Metrics


def writes(plan: Plan) -> tuple[str, ...]:
    """The path of the state file."""
    folder = plan.path.rstrip("/")
    return ("execute-state.json" if folder in ("", ".") else f"{folder}/execute-state.json",)


def claims(path: str, text: str) -> Claims | None:
    """What such a file claims; the plan is the folder of the file."""
    found = json_object(text)
    if found is None or "schema_version" not in found or not isinstance(found.get("tasks"), dict):
        return None
    tasks = {id_: as_mapping(task) for id_, task in as_mapping(found["tasks"]).items()}
    return Claims(
        plan=path.rpartition("/")[0] or ".",
        tasks={
            id_: Claim(
                status=as_text(task.get("status")),
                done=task.get("status") == "completed",
                commits=_hashes(as_list(task.get("commits"))),
            )
            for id_, task in tasks.items()
        },
    )


def _hashes(commits: list[object]) -> tuple[str, ...]:
    return tuple(filter(None, (as_text(as_mapping(each).get("hash")) for each in commits)))


def project(state: RunState, _texts: Mapping[str, str], redact: Redact) -> Projection:
    """The state file of this state."""
    by_layer = _by_layer(state)
    entries = {id_: _entry(state, task, redact) for id_, task in state.tasks.items()}
    layers = {name: _layer(tasks, entries) for name, tasks in by_layer.items()}
    current = _current(layers)
    inside = by_layer[current] if current is not None else ()
    ended_at = state.ended_at if state.ended is RunEnd.COMPLETED else None
    words = [entry.status for entry in entries.values()]
    file = ExecuteState(
        schema_version="2.0",
        prd_slug=state.plan.id,
        project_path=".",
        worktree_dir=workspaces_of(state.plan.id),
        tasks_path=state.plan.path,
        status=_run_status(state),
        current_layer=current,
        # Tasks that are ready together start together.
        current_batch=len({task.attempts[0].started_at for task in inside if task.attempts}),
        started_at=utc(state.started_at),
        updated_at=utc(state.at),
        completed_at=_maybe(ended_at),
        layers=layers,
        tasks=entries,
        merge_queue=_queue(state, inside, entries),
        metrics=Metrics(
            total_tasks=len(entries),
            completed_tasks=words.count("completed"),
            failed_tasks=_failed(words),
            total_attempts=sum(entry.attempts for entry in entries.values()),
            total_commits=sum(len(entry.commits) for entry in entries.values()),
            elapsed_time_seconds=int(run_seconds(state)),
        ),
    )
    [path] = writes(state.plan)
    return {path: rendered(file, redact)}


def _run_status(state: RunState) -> str:
    begun = any(task.attempts for task in state.tasks.values())
    if state.ended is RunEnd.FAILED and not any(
        task.phase is Phase.ABANDONED for task in state.tasks.values()
    ):
        return "stopped"  # the tip is red, but no task was abandoned
    return _RUN_STATUS[state.ended] if begun or state.ended is not None else "pending"


def _by_layer(state: RunState) -> dict[str, tuple[TaskState, ...]]:
    found: dict[str, list[TaskState]] = {stage.name: [] for stage in state.plan.stages}
    for task in state.tasks.values():
        found.setdefault(state.specs[task.id].stage or "", []).append(task)
    return {name: tuple(tasks) for name, tasks in found.items()}


def _layer(tasks: Iterable[TaskState], entries: Mapping[str, TaskEntry]) -> Layer:
    tasks = tuple(tasks)
    words = [entries[task.id].status for task in tasks]
    begun = [task.attempts[0].started_at for task in tasks if task.attempts]
    merged = [task.merged_at for task in tasks if task.merged_at]
    completed = words.count("completed") == len(words)
    return Layer(
        status="completed" if completed else "in_progress" if begun else "pending",
        tasks_total=len(words),
        tasks_completed=words.count("completed"),
        tasks_failed=_failed(words),
        started_at=_maybe(min(begun, default=None)),
        completed_at=_maybe(max(merged, default=None)) if completed else None,
    )


def _failed(words: list[str]) -> int:
    return words.count("failed") + words.count("abandoned")


def _current(layers: Mapping[str, Layer]) -> str | None:
    """The first layer in progress, else the last that was started."""
    begun = [name for name, layer in layers.items() if layer.started_at]
    under_way = [name for name in begun if layers[name].status == "in_progress"]
    return next(iter(under_way), begun[-1] if begun else None)


def _entry(state: RunState, task: TaskState, redact: Redact) -> TaskEntry:
    # A look at the tip is not an attempt.
    attempts = [attempt for attempt in task.counted if not attempt.is_tip]
    here = bool(attempts) and task.merged_at is None
    stale = task.phase is Phase.STALE
    errors = [_error(each, redact) for each in attempts if each.feedback or each.message]
    return TaskEntry(
        status=_word(task),
        attempts=attempts[-1].turn if attempts else 0,
        worktree_path=f"{workspaces_of(state.plan.id)}/{task.id}" if here else None,
        branch=BRANCH if here else None,
        commits=_commits(attempts),
        errors=(*errors, *((_stale(state, task),) if stale else ())),
        retry_feedback=_retries(task, attempts, redact),
        merged_at=None if stale else _maybe(task.merged_at),
    )


def _stale(state: RunState, task: TaskState) -> Error:
    return Error(attempt=task.turn, message=STALE, details=None, timestamp=utc(state.at))


def _word(task: TaskState) -> str:
    waits_to_begin = task.status == "needs_human" and not task.attempts
    return "pending" if waits_to_begin else _STATUS[task.status]


def _commits(attempts: Iterable[Attempt]) -> tuple[Commit, ...]:
    """Each commit once: a turn that changed nothing made none."""
    found: dict[str, Commit] = {}
    for attempt in attempts:
        if attempt.commit is not None and attempt.changed:
            commit = Commit(
                hash=attempt.commit,
                type="implementation" if attempt.turn == 1 else "fix",
                attempt=attempt.turn,
                created_at=utc(attempt.finished_at or attempt.started_at),
            )
            found.setdefault(attempt.commit, commit)
    return tuple(found.values())


def _error(attempt: Attempt, redact: Redact) -> Error:
    # Redacted before it is cut, because half a secret would not be recognised.
    text = redact(attempt.feedback or attempt.message).strip()
    message, _, details = text.partition("\n")
    reviewed = [each.finished_at for each in attempt.coachings if each.finished_at]
    ended = reviewed[-1] if reviewed else attempt.finished_at or attempt.started_at
    return Error(
        attempt=attempt.turn,
        message=message,
        details=details.strip() or None,
        timestamp=utc(ended),
    )


def _retries(task: TaskState, attempts: list[Attempt], redact: Redact) -> tuple[Feedback, ...]:
    """The feedback for each next attempt."""
    turns = [attempt.turn for attempt in attempts[1:]]
    if task.phase is not Phase.ABANDONED:
        turns.append(task.turn)
    pairs = zip(attempts, turns, strict=False)
    return tuple(
        Feedback(attempt=turn, feedback=redact(attempt.feedback))
        for attempt, turn in pairs
        if attempt.feedback
    )


def _queue(
    state: RunState, inside: Iterable[TaskState], entries: Mapping[str, TaskEntry]
) -> tuple[Queued, ...]:
    """The layer's tasks in the order of their merges; tasks in progress come last."""
    begun = {task.id for task in inside if task.attempts and task.phase is not Phase.ABANDONED}
    order = dict.fromkeys((*state.merged, *state.queue, *state.tasks))
    return tuple(
        Queued(
            task_id=id_,
            priority=priority,
            status=_QUEUE_STATUS.get(entries[id_].status, "pending"),
        )
        for priority, id_ in enumerate((each for each in order if each in begun), 1)
    )


def _maybe(at: datetime | None) -> str | None:
    return utc(at) if at is not None else None
