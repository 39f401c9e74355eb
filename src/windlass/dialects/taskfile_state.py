"""`status` and `feature_build` in a task file's frontmatter, for those who read them there.

A projection: it is never read back. It is written into a file of the user's, so only these two
keys are touched, and a file that cannot be understood just now is left alone.
"""

from collections.abc import Mapping
from types import MappingProxyType

from windlass.dialects import frontmatter
from windlass.dialects.claims import Claim, Claims
from windlass.dialects.dialect import Projection, Redact
from windlass.dialects.yaml_lines import Value
from windlass.errors import PlanError
from windlass.events.values import RunEnd
from windlass.state import Attempt, RunState, TaskState

MAX_SUMMARY = 500
STAMP = "journal"
"""Where it stands which run, and which position of its journal, this was made from."""

DONE = frozenset({"completed", "complete", "done", "in_review"})
"""Words with which a task file says that nothing is left to do."""

_STATUS: Mapping[str, str] = MappingProxyType(
    {
        "in_progress": "in_progress",
        "verifying": "in_progress",
        "verified": "in_progress",
        "merging": "in_progress",
        "failed": "in_progress",  # it will be tried again
        "completed": "in_review",
        "abandoned": "blocked",
        "needs_human": "blocked",
    }
)
"""From Windlass's words to the task file's; a pending task's file is not touched."""


def project(state: RunState, seq: int, texts: Mapping[str, str], redact: Redact) -> Projection:
    """The task's file with its state in it, as {path: text}; nothing where nothing is new."""
    path = state.plan.path
    task = state.tasks[state.plan.tasks[0].id]
    if path not in texts or task.status not in _STATUS:
        return {}
    build = _build(state, task, redact)
    text = texts[path]
    try:
        owned = {"status": _status(state, task), "feature_build": {**build, STAMP: _stamp(text)}}
        if frontmatter.spliced(path, text, owned) == text:
            return {}  # a new position alone is no news to whoever reads the file
        owned["feature_build"] = {**build, STAMP: f"{state.run}@{seq}"}
        return {path: frontmatter.spliced(path, text, owned)}
    except PlanError:
        # Somebody is in the middle of editing it; the next change brings the next chance.
        return {}


def _stamp(text: str) -> str | None:
    """What the file says it was made from."""
    found = frontmatter.read("", text)
    build = found.data.get("feature_build") if found is not None else None
    stamp = build.get(STAMP) if isinstance(build, dict) else None
    return stamp if isinstance(stamp, str) else None


def _status(state: RunState, task: TaskState) -> str:
    if task.status == "completed" and state.ended is not RunEnd.COMPLETED:
        # Merged is no success until the whole has proven itself.
        proved_wrong = state.ended in (RunEnd.FAILED, RunEnd.NEEDS_HUMAN)
        return "blocked" if proved_wrong else "in_progress"
    return _STATUS[task.status]


def _build(state: RunState, task: TaskState, redact: Redact) -> dict[str, Value]:
    attempts = task.attempts
    # What a crash or a limit cut short was the same turn, begun again.
    turns = {attempt.turn: attempt for attempt in attempts}
    workspace = f".windlass/plans/{state.plan.id}/workspaces/{task.id}"
    return {
        "current_turn": task.last.turn if attempts else 0,
        "max_turns": state.specs[task.id].max_turns or state.settings.max_turns,
        "worktree_path": workspace if attempts else None,
        "started_at": attempts[0].started_at if attempts else state.started_at,
        "turns": [_turn(attempt, redact) for attempt in turns.values()],
    }


def _turn(attempt: Attempt, redact: Redact) -> dict[str, Value]:
    return {
        "turn": attempt.turn,
        # Redacted before it is cut, or half a secret would not be known for one.
        "player_summary": _cut(redact(attempt.summary)),
        "coach_decision": _decision(attempt),
        "feedback": redact(attempt.feedback) if attempt.feedback else None,
        "timestamp": attempt.finished_at or attempt.started_at,
    }


def _decision(attempt: Attempt) -> str | None:
    """What the Coach's answer came to: an approval that did not hold is none."""
    reviews = [coaching.review for coaching in attempt.coachings if coaching.review]
    if not reviews:
        return None
    return "feedback" if attempt.feedback else reviews[-1].decision


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SUMMARY else text[: MAX_SUMMARY - 1] + "…"


def claims(path: str, text: str) -> Claims | None:
    """What a task file's own frontmatter claims; it names no commit."""
    try:
        found = frontmatter.read(path, text)
    except PlanError:
        return None
    data = found.data if found is not None else {}
    task_id, status = data.get("id"), data.get("status")
    if not isinstance(task_id, str) or not isinstance(status, str):
        return None
    claim = Claim(status=status, done=status in DONE)
    return Claims(plan=path, tasks={task_id: claim})
