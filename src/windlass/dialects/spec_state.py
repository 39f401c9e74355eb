"""`.specflow/execution/<spec>-state.json`: SpecFlow's own state file, for those who read it.

A projection: it is stamped with the journal position it was made from and is never read back. A
spec without groups is run in SpecFlow's single mode, which keeps no state. On success the file
moves to the archive, for what lies in its place means an execution that was interrupted.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType

from msgspec import Struct

from windlass.dialects import spec_status
from windlass.dialects.claims import Claim, Claims, as_mapping, as_text, as_texts, json_object
from windlass.dialects.dialect import Projection, Redact
from windlass.dialects.state_json import STALE, Stamp, rendered, stamp_of, utc
from windlass.events.values import RunEnd
from windlass.plan import Plan, Task
from windlass.state import Phase, RunState, TaskState
from windlass.state.reach import blocked
from windlass.state.transitions import IN_TIP

FOLDER = ".specflow/execution"
SPECS = ".specflow/specs"
STATUS_FILE = ".specflow/STATE.md"
CONTINUE_HERE = ".specflow/.continue-here"

_SHORT = 7
"""SpecFlow looks for each commit in `git log --oneline`, which shows no more of its name."""

_STATUS: Mapping[str, str] = MappingProxyType(
    {
        "pending": "pending",
        "in_progress": "running",
        "verifying": "running",
        "verified": "running",
        "merging": "running",
        "failed": "running",  # it will be tried again
        "completed": "complete",
        "abandoned": "failed",
        "needs_human": "blocked",
        "stale": "partial",  # there is work, and not what the spec asks for now
    }
)
"""From Windlass's words to SpecFlow's, while the run goes on."""
_SETTLED = frozenset({"complete", "failed", "blocked"})


class GroupResult(Struct, frozen=True, kw_only=True):
    """What came of one group."""

    status: str
    commits: tuple[str, ...]
    files_created: tuple[str, ...]
    files_modified: tuple[str, ...]
    criteria_met: tuple[str, ...]
    deviations: tuple[str, ...]
    error: str | None


class Wave(Struct, frozen=True, kw_only=True):
    """One wave."""

    id: int
    groups: tuple[str, ...]
    status: str
    results: dict[str, GroupResult]


class ExecutionState(Struct, frozen=True, kw_only=True):
    """Every field of SpecFlow's state, in its order."""

    spec_id: str
    mode: str
    started: str
    waves: tuple[Wave, ...]
    commits: tuple[str, ...]
    last_checkpoint: str
    windlass: Stamp


def writes(plan: Plan) -> tuple[str, ...]:
    """The state file, where it goes when all is done, and the table of all specs."""
    if not plan.stages:
        return ()
    file = f"{plan.id}-state.json"
    return f"{FOLDER}/{file}", f"{FOLDER}/archive/{file}", STATUS_FILE


def shares(plan: Plan) -> tuple[str, ...]:
    """The table of all specs is the user's own."""
    return writes(plan)[2:]


def claims(_path: str, text: str) -> Claims | None:
    """What such a file claims, whoever wrote it."""
    told = json_object(text)
    if told is None or "spec_id" not in told or not isinstance(told.get("waves"), list):
        return None
    results = (as_mapping(as_mapping(wave).get("results")) for wave in told["waves"])
    groups = {id_: as_mapping(result) for each in results for id_, result in each.items()}
    return Claims(
        plan=f"{SPECS}/{as_text(told['spec_id'])}.md",
        tasks={
            id_: Claim(
                status=as_text(result.get("status")),
                done=result.get("status") == "complete",
                commits=as_texts(result.get("commits")),
            )
            for id_, result in groups.items()
        },
    )


def project(state: RunState, seq: int, texts: Mapping[str, str], redact: Redact) -> Projection:
    """The state files as of a journal position."""
    if not state.plan.stages:
        return {}
    waves = _waves(state)
    at = _checkpoint(state)
    told = ExecutionState(
        spec_id=state.plan.id,
        mode="orchestrated",
        started=utc(state.started_at),
        waves=waves,
        commits=tuple(c for wave in waves for each in wave.results.values() for c in each.commits),
        last_checkpoint=utc(at),
        windlass=stamp_of(state, seq),
    )
    text = rendered(told, redact)
    live, archived, status_file = writes(state.plan)
    done = state.ended is RunEnd.COMPLETED
    shown: Projection = {live: None, archived: text} if done else {live: text}
    if status_file in texts:
        row = (
            state.plan.id,
            told.mode,
            _progress(state, waves),
            f"{at.astimezone(UTC):%Y-%m-%d %H:%M}",
        )
        shown[status_file] = spec_status.with_row(texts[status_file], row)
    return shown


def _waves(state: RunState) -> tuple[Wave, ...]:
    out_of_reach = blocked(state)
    members: dict[str, list[Task]] = {stage.name: [] for stage in state.plan.stages}
    for spec in state.plan.tasks:
        if spec.stage in members:  # the scenario is no group
            members[spec.stage].append(spec)
    waves: list[Wave] = []
    for name, specs in members.items():
        results = {
            spec.id: _result(state, spec, state.tasks[spec.id], spec.id in out_of_reach)
            for spec in specs
        }
        status = _wave_status([result.status for result in results.values()])
        groups = tuple(results)
        shown = {} if status == "pending" else results
        waves.append(Wave(id=int(name), groups=groups, status=status, results=shown))
    return tuple(waves)


def _wave_status(words: Iterable[str]) -> str:
    found = set(words)
    if found == {"complete"}:
        return "complete"
    if found == {"pending"}:
        return "pending"
    return "failed" if found <= _SETTLED else "in_progress"


def _result(state: RunState, spec: Task, task: TaskState, out_of_reach: bool) -> GroupResult:  # noqa: FBT001
    status = _status(state, task, out_of_reach=out_of_reach)
    created = dict.fromkeys(path for attempt in task.attempts for path in attempt.created)
    files = dict.fromkeys(path for attempt in task.attempts for path in attempt.files)
    return GroupResult(
        status=status,
        commits=_commits(task),
        files_created=tuple(created),
        files_modified=tuple(path for path in files if path not in created),
        criteria_met=_criteria_met(_text_shown(spec, task), task),
        deviations=(),  # nobody records them: a Player's word on that is a claim
        error=None if status in ("complete", "pending", "running") else _error(task),
    )


def _status(state: RunState, task: TaskState, *, out_of_reach: bool) -> str:
    word = _STATUS[task.status]
    if word == "pending" and out_of_reach:
        return "blocked"
    stands_still = state.ended is not None or task.status == "needs_human"
    if stands_still and word in ("running", "blocked"):
        # Nobody works on it now; what there is of it waits for whoever goes on.
        return "partial" if any(attempt.changed for attempt in task.attempts) else _idle(word)
    return word


def _idle(word: str) -> str:
    return "pending" if word == "running" else word


def _commits(task: TaskState) -> tuple[str, ...]:
    """What of the group is on the integration branch: before its merge that is nothing."""
    if task.merge_commit is None:
        return ()
    made = [a.commit for a in task.attempts if a.commit and a.changed and a.kind == "snapshot"]
    return tuple(dict.fromkeys(commit[:_SHORT] for commit in (*made, task.merge_commit)))


def _criteria_met(spec: Task, task: TaskState) -> tuple[str, ...]:
    reviews = [c.review for attempt in task.attempts for c in attempt.coachings if c.review]
    met = sorted({each.criterion for each in reviews[-1].evidence if each.met}) if reviews else []
    criteria = spec.acceptance_criteria
    return tuple(criteria[number - 1] for number in met if number <= len(criteria))


def _text_shown(spec: Task, task: TaskState) -> Task:
    """The text that the Coach's evidence speaks of."""
    return (task.merged_as if task.phase in IN_TIP else None) or spec


def _error(task: TaskState) -> str | None:
    if task.phase is Phase.STALE:
        return STALE
    return task.question or task.feedback


def _progress(state: RunState, waves: tuple[Wave, ...]) -> str:
    complete = sum(wave.status == "complete" for wave in waves)
    if state.ended is RunEnd.COMPLETED:
        return "Complete"
    if state.ended in (RunEnd.FAILED, RunEnd.ABANDONED):
        left = (place for place, wave in enumerate(waves, 1) if wave.status != "complete")
        return f"Failed (Wave {next(left, len(waves))})"
    if state.ended is not None:
        return "Paused"
    return f"Wave {complete}/{len(waves)} ({round(100 * complete / len(waves))}%)"


def _checkpoint(state: RunState) -> datetime:
    """When an agent last came back, or a group was last merged."""
    times = [state.started_at]
    for task in state.tasks.values():
        times += [task.merged_at] if task.merged_at else []
        for attempt in task.attempts:
            ends = (attempt.finished_at, *(coaching.finished_at for coaching in attempt.coachings))
            times += [at for at in ends if at]
    return max(times)
