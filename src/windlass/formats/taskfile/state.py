"""`status` and `feature_build` in the frontmatter of task files.

A projection: Windlass never reads it back. The files belong to the user, so only these two keys are
written, and a file that cannot be read at the moment is left alone.
"""

from collections.abc import Mapping
from types import MappingProxyType

from windlass.core.events.values import RunEnd
from windlass.core.plan import Plan
from windlass.core.state import Attempt, Phase, RunState, TaskState
from windlass.core.state.selection import blocked
from windlass.core.state.transitions import Status
from windlass.core.state.work import turn_limit
from windlass.errors import PlanError
from windlass.formats import frontmatter
from windlass.formats.dialect import Projection
from windlass.formats.state_files import STALE, Claim, Claims, Redact, workspaces_of
from windlass.formats.words import is_done
from windlass.formats.yaml import Keys, Value, lines_of

MAX_SUMMARY = 500

_IN_REVIEW = "in_review"
"""The task file's word for a task that is merged and not yet reviewed by a person."""
_STATUS: Mapping[Status, str | None] = MappingProxyType(
    {
        "pending": None,
        "in_progress": "in_progress",
        "verifying": "in_progress",
        "verified": "in_progress",
        "merging": "in_progress",
        "failed": "in_progress",  # it will be tried again
        "completed": _IN_REVIEW,
        "abandoned": "blocked",
        "needs_human": "blocked",
        "stale": "blocked",
    }
)
"""From Windlass's status words to the task file's; the file of a pending task is not changed."""


def writes(plan: Plan) -> tuple[str, ...]:
    """The file of each task that has one of its own."""
    return tuple(dict.fromkeys(task.path for task in plan.tasks if task.path))


def project(state: RunState, texts: Mapping[str, str], redact: Redact) -> Projection:
    """Each task file with the task's state, as {path: text}; only files that change."""
    files = {task.id: task.path for task in state.plan.tasks if task.path}
    return _project(state, files, texts, redact)


def project_alone(state: RunState, texts: Mapping[str, str], redact: Redact) -> Projection:
    """The same for a plan of one task file."""
    return _project(state, {state.plan.tasks[0].id: state.plan.path}, texts, redact)


def _project(
    state: RunState,
    files: Mapping[str, str],
    texts: Mapping[str, str],
    redact: Redact,
) -> Projection:
    out_of_reach = blocked(state)
    made: Projection = {}
    for task_id, path in files.items():
        task = state.tasks[task_id]
        status = "blocked" if task_id in out_of_reach else _status(state, task)
        if path not in texts or status is None:
            continue
        build = _build(state, task, redact)
        text = _with_state(path, texts[path], status, build)
        if text != texts[path]:
            made[path] = text
    return made


def _with_state(path: str, text: str, status: str, build: Mapping[str, Value]) -> str:
    """The text with this state in it; unchanged where it has this state already."""
    if _has(text, status, build):
        return text
    try:
        return frontmatter.spliced(path, text, {"status": status, "feature_build": build})
    except PlanError:
        # A person may be editing it; the next change of state tries again.
        return text


def _has(text: str, status: str, build: Mapping[str, Value]) -> bool:
    """Whether the frontmatter has exactly these lines already.

    Of a thousand tasks only a few change, and reading the YAML of each would take too long.
    """
    above = text.removesuffix(frontmatter.body(text))
    lines = "".join(f"{line}\n" for line in lines_of({"feature_build": build}))
    _, found, after = above.partition(f"\n{lines}")
    return f"\nstatus: {status}\n" in above and bool(found) and not after.startswith(" ")


def _status(state: RunState, task: TaskState) -> str | None:
    if task.status != "completed" or state.ended is RunEnd.COMPLETED:
        return _STATUS[task.status]
    # A merged task is no success if the tip of the whole plan failed.
    all_merged = len(state.done) == len(state.tasks)
    if all_merged and state.ended in (RunEnd.FAILED, RunEnd.NEEDS_HUMAN):
        return "blocked"
    # The only task of a plan waits for the checks of the tip; one of many does not, because the
    # other tasks may take days.
    return "in_progress" if len(state.tasks) == 1 else _STATUS[task.status]


def _build(state: RunState, task: TaskState, redact: Redact) -> dict[str, Value]:
    attempts = task.attempts
    # After a crash or a limit the same turn starts again.
    turns = {attempt.turn: attempt for attempt in attempts}
    workspace = f"{workspaces_of(state.plan.id)}/{task.id}"
    return {
        "current_turn": task.last.turn if attempts else 0,
        "max_turns": turn_limit(state, task.id),
        "worktree_path": workspace if attempts else None,
        "started_at": attempts[0].started_at if attempts else state.started_at,
        **({"stale": STALE} if task.phase is Phase.STALE else {}),
        "turns": [_turn(attempt, redact) for attempt in turns.values()],
    }


def _turn(attempt: Attempt, redact: Redact) -> dict[str, Value]:
    return {
        "turn": attempt.turn,
        # Redacted before it is cut, because half a secret would not be recognised.
        "player_summary": _cut(redact(attempt.summary)),
        "coach_decision": _decision(attempt),
        "feedback": redact(attempt.feedback) if attempt.feedback else None,
        "timestamp": attempt.finished_at or attempt.started_at,
    }


def _decision(attempt: Attempt) -> str | None:
    """The Coach's decision; an approval that did not hold counts as feedback."""
    reviews = [coaching.review for coaching in attempt.coachings if coaching.review]
    if not reviews:
        return None
    return "feedback" if attempt.feedback else reviews[-1].decision


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SUMMARY else text[: MAX_SUMMARY - 1] + "…"


def claims(path: str, text: str) -> Claims | None:
    """What a task file's frontmatter claims; it names no commit."""
    data = frontmatter.keys(path, text) or Keys(1)
    task_id, status = data.get("id"), data.get("status")
    if not isinstance(task_id, str) or not isinstance(status, str):
        return None
    claim = Claim(status=status, done=is_done(status) or status == _IN_REVIEW)
    return Claims(plan=path, tasks={task_id: claim})
