"""SpecFlow's state files: `.specflow/execution/<spec>-state.json` and a row of `STATE.md`.

A projection: Windlass never reads it back. A spec without groups runs in SpecFlow's single mode,
which keeps no state. On success the file moves to the archive, because a file in its old place
means an interrupted execution.

`STATE.md` belongs to the user. Windlass writes one row of its Execution Status table and no other
byte. It never creates the file, and leaves a file without such a table alone.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

from msgspec import Struct

from windlass.core.events.values import RunEnd
from windlass.core.plan import Plan, Task
from windlass.core.state import Phase, RunState, TaskState
from windlass.core.state.selection import blocked
from windlass.core.state.transitions import IN_TIP, Status
from windlass.formats import markdown
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
    utc,
)
from windlass.formats.tables import PIPE, Table, table_of

FOLDER = ".specflow/execution"
SPECS = ".specflow/specs"
STATUS_FILE = ".specflow/STATE.md"
CONTINUE_HERE = ".specflow/.continue-here"

_SHORT = 7
"""SpecFlow looks for each commit in `git log --oneline`, which shows this many characters."""

_STATUS: Mapping[Status, str] = MappingProxyType(
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
        "stale": "partial",  # the work is for an older text of the spec
    }
)
"""From Windlass's status words to SpecFlow's, during the run."""
_SETTLED = frozenset({"complete", "failed", "blocked"})

_STATUS_HEADING = "execution status"
_STATUS_COLUMNS = (
    frozenset({"spec id", "spec", "specification", "id"}),
    frozenset({"mode"}),
    frozenset({"progress"}),
    frozenset({"last updated", "updated"}),
)
_MAX_CHARS = 1_000_000
"""A longer file is not read, because that would take too long at every step."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")


class GroupResult(Struct, frozen=True, kw_only=True):
    """The result of one group."""

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


def writes(plan: Plan) -> tuple[str, ...]:
    """The state file, its place in the archive, and the table of all specs."""
    if not plan.stages:
        return ()
    file = f"{plan.id}-state.json"
    return f"{FOLDER}/{file}", f"{FOLDER}/archive/{file}", STATUS_FILE


def shares(plan: Plan) -> tuple[str, ...]:
    """The table of all specs, which belongs to the user."""
    return writes(plan)[2:]


def claims(_path: str, text: str) -> Claims | None:
    """What such a file claims."""
    found = json_object(text)
    if found is None or "spec_id" not in found or not isinstance(found.get("waves"), list):
        return None
    results = (as_mapping(as_mapping(wave).get("results")) for wave in found["waves"])
    groups = {id_: as_mapping(result) for each in results for id_, result in each.items()}
    return Claims(
        plan=f"{SPECS}/{as_text(found['spec_id'])}.md",
        tasks={
            id_: Claim(
                status=as_text(result.get("status")),
                done=result.get("status") == "complete",
                commits=as_texts(result.get("commits")),
            )
            for id_, result in groups.items()
        },
    )


def project(state: RunState, texts: Mapping[str, str], redact: Redact) -> Projection:
    """The state files of this state."""
    if not state.plan.stages:
        return {}
    waves = _waves(state)
    at = _checkpoint(state)
    file = ExecutionState(
        spec_id=state.plan.id,
        mode="orchestrated",
        started=utc(state.started_at),
        waves=waves,
        commits=tuple(c for wave in waves for each in wave.results.values() for c in each.commits),
        last_checkpoint=utc(at),
    )
    text = rendered(file, redact)
    live, archived, status_file = writes(state.plan)
    done = state.ended is RunEnd.COMPLETED
    shown: Projection = {live: None, archived: text} if done else {live: text}
    if status_file in texts:
        row = (
            state.plan.id,
            file.mode,
            _progress(state, waves),
            f"{at.astimezone(UTC):%Y-%m-%d %H:%M}",
        )
        shown[status_file] = with_row(texts[status_file], row)
    return shown


def _waves(state: RunState) -> tuple[Wave, ...]:
    out_of_reach = blocked(state)
    members: dict[str, list[Task]] = {stage.name: [] for stage in state.plan.stages}
    for spec in state.plan.tasks:
        if spec.stage in members:  # the scenario is not a group
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
    created = dict.fromkeys(path for attempt in task.counted for path in attempt.created)
    files = dict.fromkeys(path for attempt in task.counted for path in attempt.files)
    return GroupResult(
        status=status,
        commits=_commits(task),
        files_created=tuple(created),
        files_modified=tuple(path for path in files if path not in created),
        criteria_met=_criteria_met(_text_shown(spec, task), task),
        deviations=(),  # not recorded: a Player's own report would be a claim
        error=None if status in ("complete", "pending", "running") else _error(task),
    )


def _status(state: RunState, task: TaskState, *, out_of_reach: bool) -> str:
    word = _STATUS[task.status]
    if word == "pending" and out_of_reach:
        return "blocked"
    stands_still = state.ended is not None or task.status == "needs_human"
    if stands_still and word in ("running", "blocked"):
        # No agent works on it now.
        return "partial" if any(attempt.changed for attempt in task.attempts) else _idle(word)
    return word


def _idle(word: str) -> str:
    return "pending" if word == "running" else word


def _commits(task: TaskState) -> tuple[str, ...]:
    """The group's commits on the integration branch; none before its merge."""
    if task.merge_commit is None:
        return ()
    made = [a.commit for a in task.counted if a.commit and a.changed and a.kind == "snapshot"]
    return tuple(dict.fromkeys(commit[:_SHORT] for commit in (*made, task.merge_commit)))


def _criteria_met(spec: Task, task: TaskState) -> tuple[str, ...]:
    reviews = [c.review for attempt in task.counted for c in attempt.coachings if c.review]
    met = sorted({each.criterion for each in reviews[-1].evidence if each.met}) if reviews else []
    criteria = spec.acceptance_criteria
    return tuple(criteria[number - 1] for number in met if number <= len(criteria))


def _text_shown(spec: Task, task: TaskState) -> Task:
    """The task text that the Coach's evidence is about."""
    return (task.merged_as if task.phase in IN_TIP else None) or spec


def _error(task: TaskState) -> str | None:
    if task.phase is Phase.STALE:
        return STALE
    return task.question or task.feedback


def _progress(state: RunState, waves: tuple[Wave, ...]) -> str:
    complete = sum(wave.status == "complete" for wave in waves)
    if state.ended is RunEnd.COMPLETED:
        return "Complete"
    if state.ended in (RunEnd.FAILED, RunEnd.ABORTED, RunEnd.ABANDONED):
        left = (place for place, wave in enumerate(waves, 1) if wave.status != "complete")
        return f"Failed (Wave {next(left, len(waves))})"
    if state.ended is not None:
        return "Paused"
    return f"Wave {complete}/{len(waves)} ({round(100 * complete / len(waves))}%)"


def _checkpoint(state: RunState) -> datetime:
    """When an agent last returned, or a group was last merged."""
    times = [state.started_at]
    for task in state.tasks.values():
        times += [task.merged_at] if task.merged_at else []
        for attempt in task.attempts:
            ends = (attempt.finished_at, *(coaching.finished_at for coaching in attempt.coachings))
            times += [at for at in ends if at]
    return max(times)


# The Execution Status table


def with_row(text: str, values: Sequence[str]) -> str:
    """The text with the row of this spec: its id, mode, progress and time."""
    if len(text) > _MAX_CHARS or _STATUS_HEADING not in text.casefold():
        return text
    found = _table(text)
    if found is None:
        return text
    table, places = found
    lines = _LINE.findall(text)
    row = next((row for row in table.rows if _is_of(row.cell(places[0]), values[0])), None)
    if row is not None:
        wanted = dict(zip(places, values, strict=True))
        lines[row.line - 1] = _changed(lines[row.line - 1], wanted)
        return "".join(lines)
    last = table.rows[-1].line if table.rows else table.line + 1
    cells = ["—"] * len(table.header)
    for place, value in zip(places, values, strict=True):
        cells[place] = value
    lines[last - 1] = _with_line_below(lines[last - 1], lines[0], f"| {' | '.join(cells)} |")
    return "".join(lines)


def _table(text: str) -> tuple[Table, list[int]] | None:
    document = markdown.parse(text)
    for section in document.sections():
        if markdown.label_of(section.heading.text) != _STATUS_HEADING:
            continue
        for block in document.blocks[section.start : section.stop]:
            table = table_of(block)
            places = [_place(table, names) for names in _STATUS_COLUMNS] if table else [None]
            known = [place for place in places if place is not None]
            if table is not None and len(known) == len(_STATUS_COLUMNS):
                return table, known
    return None


def _place(table: Table, names: frozenset[str]) -> int | None:
    return next((i for i, label in enumerate(table.columns) if label in names), None)


def _is_of(cell: str, spec_id: str) -> bool:
    return cell.strip("*_`[] ").casefold() == spec_id.casefold()


def _changed(line: str, wanted: dict[int, str]) -> str:
    """The line with these cells; equal cells keep their spacing."""
    end = line[len(line.rstrip("\r\n")) :]
    bare = line.rstrip("\r\n")
    parts = PIPE.split(bare)
    first = 1 if not parts[0].strip() and len(parts) > 1 else 0  # before the opening pipe
    for place, value in list(wanted.items())[1:]:
        index = first + place
        parts += [""] * (index + 1 - len(parts))
        if parts[index].strip() != value:
            parts[index] = f" {value} "
    return "|".join(parts) + end


def _with_line_below(line: str, sample: str, new: str) -> str:
    """The line with a new one after it; the file's last line may have no line end."""
    end = line[len(line.rstrip("\r\n")) :]
    if end:
        return f"{line}{new}{end}"
    return f"{line}{sample[len(sample.rstrip(chr(13) + chr(10))) :] or chr(10)}{new}"
