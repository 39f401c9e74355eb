"""`status` and `feature_build` in task files' frontmatter, for those who read them there.

A projection: it is never read back. It is written into files of the user's, so only these two
keys are touched, and a file that cannot be understood just now is left alone.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from windlass.dialects import frontmatter
from windlass.dialects.claims import Claim, Claims
from windlass.dialects.dialect import Projection, Redact
from windlass.dialects.state_json import STALE
from windlass.dialects.yaml_lines import Value, lines_of
from windlass.errors import PlanError
from windlass.events.values import RunEnd
from windlass.plan import Plan
from windlass.state import Attempt, Phase, RunState, TaskState
from windlass.state.reach import blocked

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
        "stale": "blocked",
    }
)
"""From Windlass's words to the task file's; a pending task's file is not touched."""


def writes(plan: Plan) -> tuple[str, ...]:
    """The file of each task that has one of its own."""
    return tuple(dict.fromkeys(task.path for task in plan.tasks if task.path))


def project(state: RunState, seq: int, texts: Mapping[str, str], redact: Redact) -> Projection:
    """Each task's file with its state in it, as {path: text}; only those with something new."""
    files = {task.id: task.path for task in state.plan.tasks if task.path}
    return _project(state, files, texts, seq, redact)


def project_alone(
    state: RunState, seq: int, texts: Mapping[str, str], redact: Redact
) -> Projection:
    """The same for a plan that is its one task's file."""
    return _project(state, {state.plan.tasks[0].id: state.plan.path}, texts, seq, redact)


def _project(
    state: RunState,
    files: Mapping[str, str],
    texts: Mapping[str, str],
    seq: int,
    redact: Redact,
) -> Projection:
    out_of_reach = blocked(state)
    made: Projection = {}
    for task_id, path in files.items():
        task = state.tasks[task_id]
        lost = task_id in out_of_reach
        if path not in texts or not (lost or task.status in _STATUS):
            continue
        status = "blocked" if lost else _status(state, task)
        text = _told(stamp(state.run, seq), path, texts[path], status, _build(state, task, redact))
        if text != texts[path]:
            made[path] = text
    return made


def stamp(run: str, seq: int | str) -> str:
    """Which run, and which position of its journal, a file was made from."""
    return f"{run}@{seq}"


def unstamped(text: str, run: str) -> str:
    """Give the text without stamps of the run: where nothing else is new, it keeps an older one."""
    return re.sub(rf"\b{stamp(re.escape(run), '[0-9]+')}", "", text)


def _told(position: str, path: str, text: str, status: str, build: Mapping[str, Value]) -> str:
    """The text with this state in it; as it was where it has it already."""
    if _has(text, status, build):
        return text
    try:
        owned = {"status": status, "feature_build": {**build, STAMP: _stamp(text)}}
        if frontmatter.spliced(path, text, owned) == text:
            return text  # a new position alone is no news to whoever reads the file
        owned["feature_build"] = {**build, STAMP: position}
        return frontmatter.spliced(path, text, owned)
    except PlanError:
        # Somebody is in the middle of editing it; the next change brings the next chance.
        return text


def _has(text: str, status: str, build: Mapping[str, Value]) -> bool:
    """Whether the frontmatter surely has this state, line for line as it is written here.

    Of a thousand tasks all but a few are as they were, and reading YAML for each would take time.
    """
    above = text.removesuffix(frontmatter.body(text))
    told = "".join(f"{line}\n" for line in lines_of({"feature_build": build}))
    return f"\nstatus: {status}\n" in above and f"\n{told}  {STAMP}: " in above


def _stamp(text: str) -> str | None:
    """What the file says it was made from."""
    found = frontmatter.read("", text)
    build = found.data.get("feature_build") if found is not None else None
    found_there = build.get(STAMP) if isinstance(build, dict) else None
    return found_there if isinstance(found_there, str) else None


def _status(state: RunState, task: TaskState) -> str:
    if task.status != "completed" or state.ended is RunEnd.COMPLETED:
        return _STATUS[task.status]
    # Merged is no success where the whole has not proven itself.
    all_merged = len(state.done) == len(state.tasks)
    if all_merged and state.ended in (RunEnd.FAILED, RunEnd.NEEDS_HUMAN):
        return "blocked"
    # Alone, a task has yet to see that proof; among others it has had its own, and theirs may take
    # days.
    return "in_progress" if len(state.tasks) == 1 else _STATUS[task.status]


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
        **({"stale": STALE} if task.phase is Phase.STALE else {}),
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
