"""From the facts of a run to its report: the data is gathered here, and drawn elsewhere.

Law: rules of other views are used from there: statuses, costs, problems, next steps. Data that only
git has comes in as arguments.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.plan import Task, critical_lengths, critical_path
from windlass.core.state import Attempt, Phase, RunState, TaskState
from windlass.core.state.selection import blocked
from windlass.core.state.stretches import rests_since, worked
from windlass.core.state.transitions import HELPLESS, IN_TIP
from windlass.core.state.work import change_of
from windlass.ports import Changes, Patches, PatchText
from windlass.views.bills import bills, totals, whole
from windlass.views.closing import asks, branch_line, troubles
from windlass.views.cost import Cost, run_cost
from windlass.views.lines import UNCHECKED, is_unchecked, network_advice
from windlass.views.outcome import (
    STALE_BECAUSE,
    accepted_line,
    check_lines,
    run_status,
    text_shown,
    words_for_people,
)
from windlass.views.progress import checks_line, progress, turns_allowed, turns_used
from windlass.views.report.model import Bar, Diff, Report, Round, TaskReport
from windlass.views.report.timeline import Timeline
from windlass.views.steps import Ground, next_steps
from windlass.views.words import plural

_DIFF, _ALL_DIFFS = 400, 20_000
"""How many lines are shown of a task's diff, and of all diffs together."""
_NO_CHANGES: Changes = {}
_NO_PATCHES: Patches = {}


def compared(state: RunState) -> Iterator[tuple[str, str]]:
    """The pairs of commits whose differences a report shows."""
    for task in state.all_tasks:
        yield from (pair for attempt in task.attempts if (pair := _pair(attempt)) is not None)
        if (pair := change_of(task)) is not None:
            yield pair


def diffed(state: RunState) -> Iterator[tuple[str, str]]:
    """The pairs of commits whose patches a report shows: one for each task."""
    return (pair for task in state.all_tasks if (pair := change_of(task)) is not None)


def report_of(
    entries: Sequence[e.Entry],
    *,
    plan: str,
    workspaces: str,
    live: bool = False,
    now: datetime | None = None,
    ground: Ground | None = None,
    changes: Changes = _NO_CHANGES,
    patches: Patches = _NO_PATCHES,
) -> Report | None:
    """The journal's last run; None where it has none.

    `plan` is its name on the command line; `live` says whether a process runs it now. `patches`
    are git's, as far as they are not too large.
    """
    own = _last_run(entries)
    timeline = Timeline((entry.event for entry in own), now=now if live else None)
    state, at = timeline.state, timeline.at
    if state is None or at is None:
        return None
    events = [entry.event for entry in own]
    paid = bills(state.plan.id, events, live=live)
    by_task = {key.partition(":")[2]: each for key, each in totals(paid, "task").items()}
    words = words_for_people(state)
    bars = [bar for each in timeline.bars.values() for bar in each]
    status = run_status(state)
    tasks = tuple(_tasks(state, timeline, changes, patches, by_task, words))
    steps = [] if live else next_steps(state, plan=plan, ground=ground)
    whole_cost = run_cost(state)
    return Report(
        plan=state.plan,
        run=state.run,
        status="interrupted" if status == "in_progress" and not live else status,
        reason=state.reason,
        version=timeline.version,
        seq=own[-1].seq,
        at=at,
        started_at=state.started_at,
        elapsed=worked(state, state.started_at, at if state.ended is None else rests_since(state)),
        live=live,
        metrics=progress(state, own[-1].seq).metrics,
        checks=checks_line(state),
        statuses=Counter(words.values()),
        max_cost=state.settings.max_cost,
        cost=replace(whole(paid), known=whole_cost.known, recovered=whole_cost.recovered),
        costs={"task": by_task, "role": totals(paid, "role"), "model": totals(paid, "model")},
        waited=_together(bars, "wait"),
        asked=_together(bars, "person"),
        gaps=tuple(timeline.gaps),
        troubles=tuple(troubles(state, workspaces)),
        branch=branch_line(state, ground),
        next=tuple(step.command for step in steps),
        notes=(*((UNCHECKED,) if is_unchecked(state) else ()), *network_advice(state)),
        whole=tuple(timeline.whole),
        looks=tuple(timeline.looks),
        critical=_critical(state, tasks),
        tasks=tasks,
    )


def _last_run(entries: Sequence[e.Entry]) -> Sequence[e.Entry]:
    starts = [at for at, entry in enumerate(entries) if isinstance(entry.event, e.RunStarted)]
    return entries[starts[-1] :] if starts else ()


def _tasks(
    state: RunState,
    timeline: Timeline,
    changes: Changes,
    patches: Patches,
    costs: dict[str, Cost],
    words: dict[str, str],
) -> Iterator[TaskReport]:
    out_of_reach, room = blocked(state), _ALL_DIFFS
    for task in state.all_tasks:
        spec = state.specs[task.id]
        gone = task.id in state.withdrawn
        rounds, anchors = _rounds(task, timeline, changes)
        bars = timeline.bars.get(task.id, ())
        pair = change_of(task)
        patch = patches.get(pair) if pair is not None else None
        diff = _diff(state, task, patch, room) if patch is not None else None
        room -= diff.text.count("\n") + 1 if diff is not None else 0
        yield TaskReport(
            id=task.id,
            title=spec.title,
            status="withdrawn" if gone else words[task.id],
            stage=spec.stage or "",
            needs="" if gone else out_of_reach.get(task.id, ""),
            criteria=_criteria(text_shown(state, task.id)),
            rounds=rounds,
            turns=turns_used(task),
            allowed=turns_allowed(state, task),
            bars=tuple(_anchored(bar, anchors) for bar in bars),
            seconds=_seconds(state, task, bars),
            cost=_cost(task, costs),
            merged=task.merge_commit,
            changes=changes.get(pair) if pair is not None else None,
            diff=diff,
            asks=asks(task) if task.phase in _STUCK else "",
            notes=_notes(state, task, gone=gone),
        )


def _diff(state: RunState, task: TaskState, patch: PatchText, room: int) -> Diff:
    """The beginning of a task's patch, at most `room` lines of it."""
    lines = patch.text.rstrip("\n").split("\n")
    shown = lines[: min(_DIFF, max(room, 0))]
    left: list[str] = []
    if len(lines) > len(shown):
        left.append(f"{len(lines) - len(shown):,} more lines")
    if patch.files_left:
        left.append(f"{plural(patch.files_left, 'file')} too large to show")
    return Diff(
        text="\n".join(shown),
        left=", ".join(left),
        command=f"windlass diff {shlex.quote(f'{state.plan.id}:{task.id}')}",
    )


_STUCK = HELPLESS | {Phase.ABANDONED}


def _cost(task: TaskState, costs: dict[str, Cost]) -> Cost:
    """From its bills; one is missing if an agent was killed before it reported its usage."""
    paid = costs.get(task.id, Cost())
    return replace(paid, known=paid.known and task.spent.known)


def _usage(attempt: Attempt, paid: e.Usage) -> e.Usage:
    known = attempt.usage.known and all(each.usage.known for each in attempt.coachings)
    return paid + e.Usage(known=known)


def _notes(state: RunState, task: TaskState, *, gone: bool) -> tuple[str, ...]:
    if gone:
        return ("no longer in the plan; its work stays pinned",)
    if state.is_stale(task.id):
        return (f"stale: {STALE_BECAUSE}", *check_lines(state, task.id))
    return tuple(filter(None, (accepted_line(state, task.id),)))


def _criteria(spec: Task) -> tuple[str, ...]:
    """The task's criteria; without any, the task itself."""
    return spec.acceptance_criteria or (spec.title,)


def _rounds(
    task: TaskState, timeline: Timeline, changes: Changes
) -> tuple[tuple[Round, ...], dict[str, str]]:
    """The rounds, and the anchor of each by the number of its start."""
    seen: Counter[int] = Counter()
    anchors: dict[str, str] = {}
    rounds: list[Round] = []
    for attempt in task.attempts:
        place = (task.id, attempt.n)
        seen[attempt.turn] += 1
        nth = f".{seen[attempt.turn]}" if seen[attempt.turn] > 1 else ""
        anchor = anchors[f"{task.id}/{attempt.n}"] = f"{task.id}/turn-{attempt.turn}{nth}"
        pair = _pair(attempt)
        cause = timeline.causes.get(place, "")
        is_last = attempt is task.last
        approved = place in timeline.approved
        rounds.append(
            Round(
                anchor=anchor,
                attempt=attempt,
                checks=tuple(timeline.checks.get(place, ())),
                usage=_usage(attempt, timeline.usage.get(place, e.Usage())),
                changes=changes.get(pair) if pair is not None else None,
                cause=cause,
                fate=_fate(task, attempt, cause, is_last=is_last, approved=approved),
                calm=not (cause or attempt.failure or attempt.refused)
                and not (is_last and task.phase is Phase.ABANDONED),
            )
        )
    return tuple(rounds), anchors


def _fate(task: TaskState, attempt: Attempt, cause: str, *, is_last: bool, approved: bool) -> str:
    if cause:
        return f"returned: {cause.replace('_', ' ')}"
    if attempt.failure is not None:
        return attempt.failure.replace("_", " ")
    if is_last and task.phase in IN_TIP:
        return "merged"
    if approved:
        return "approved"
    return task.status.replace("_", " ") if is_last else "left"


def _pair(attempt: Attempt) -> tuple[str, str] | None:
    """The commits to compare for a round: its start, or the tip it conflicted with, and its end."""
    old = attempt.onto or attempt.start
    return (old, attempt.commit) if attempt.commit not in {None, old} else None  # pyright: ignore[reportReturnType]


def _anchored(bar: Bar, anchors: dict[str, str]) -> Bar:
    return Bar(
        kind=bar.kind,
        start=bar.start,
        end=bar.end,
        what=bar.what,
        bad=bar.bad,
        anchor=anchors.get(bar.anchor, ""),
    )


def _seconds(state: RunState, task: TaskState, bars: Sequence[Bar]) -> float:
    if not bars or not task.attempts:
        return 0.0
    start = task.attempts[0].started_at
    end = max(bars[-1].end, start)
    return worked(state, start, end)


def _together(bars: Iterable[Bar], kind: str) -> float:
    """Seconds in which there was at least one bar of that kind."""
    spans = sorted((bar.start, bar.end) for bar in bars if bar.kind == kind)
    covered, until = 0.0, None
    for start, end in spans:
        begin = start if until is None else max(start, until)
        if end > begin:
            covered += (end - begin).total_seconds()
            until = end
    return covered


def _critical(state: RunState, tasks: Sequence[TaskReport]) -> tuple[str, ...]:
    """The chain of tasks with the longest total time; before any has run, the longest chain."""
    took = {task.id: task.seconds for task in tasks if task.seconds}
    if state.plan.stages or not took:
        return critical_path(state.plan)
    left = critical_lengths(state.plan, took)
    dependents: dict[str, list[str]] = {}
    for task in state.plan.tasks:
        for dep in task.depends_on:
            dependents.setdefault(dep, []).append(task.id)
    ways, path = list(left), list[str]()
    while ways:
        path.append(max(ways, key=lambda id_: left[id_]))
        ways = dependents.get(path[-1], [])
    return tuple(path)
