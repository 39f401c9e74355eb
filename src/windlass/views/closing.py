"""The end of a run: the last lines, worst first, and the continue-here file.

Law: there is always a next command. Windlass reads only the plan and the run from a continue-here
file; everything else comes from the journal.
"""

import re
import shlex
from collections.abc import Callable

from msgspec import Struct

from windlass.core.events.model import RunEnd
from windlass.core.state import Phase, RunState, TaskState
from windlass.core.state.selection import blocked
from windlass.core.state.stretches import limit_seconds, task_seconds
from windlass.core.state.transitions import HELPLESS
from windlass.views.activity import quota
from windlass.views.cost import amounts, column, doubts, run_cost, task_cost
from windlass.views.lines import (
    ALL,
    FEW,
    UNCHECKED,
    Line,
    Room,
    harmless_line,
    is_unchecked,
    must_fix,
    network_advice,
    not_passed,
    red_lines,
    room_for,
)
from windlass.views.outcome import STALE_BECAUSE, accepted_line, check_lines, counts, task_statuses
from windlass.views.progress import (
    checks_line,
    commits_of,
    integration_branch,
    landed_at,
    progress,
    turns_allowed,
    turns_used,
)
from windlass.views.steps import Ground, Step, listed, next_steps, ways_to_help
from windlass.views.tree import position, stage_name, tree, unverified_stage
from windlass.views.words import duration, money, one_line, plural, tokens

_WORST = ("RED", "ABANDONED", "STAGE", "NEEDS YOU", "STALE", "BLOCKED")


def closing(
    state: RunState,
    *,
    plan: str,
    workspaces: str,
    continue_here: str = "",
    ground: Ground | None = None,
) -> list[Line]:
    """The last lines; `plan` is its name on the command line."""
    steps = next_steps(state, plan=plan, ground=ground)
    if state.ended in {RunEnd.COMPLETED, RunEnd.FAILED}:
        steps.append(Step(f"windlass report {plan} --open", "read the report"))
    first, *more = listed(steps)
    lines = [
        *_summaries(state),
        *troubles(state, workspaces),
        *_rests(state, continue_here),
        _summary(state),
        branch_line(state, ground),
        Line("Next", first, tuple(more)),
    ]
    return [harmless_line(line) for line in lines]


def _summaries(state: RunState) -> list[Line]:
    """What agents said of merged tasks, whole, where the screen showed only a part of it."""
    lines: list[Line] = []
    for task in (state.tasks[id_] for id_ in state.done):
        said = task.last.summary if task.attempts else ""
        if room_for(state, task.id).folds(said):
            lines.append(Line("DONE", _name(state, task), ALL.prose(said)))
    return lines


def _name(state: RunState, task: TaskState) -> str:
    return f"{task.id} {one_line(state.specs[task.id].title, 60)}"


def troubles(state: RunState, workspaces: str) -> list[Line]:
    """What stands in the way, worst first."""
    return sorted(_troubles(state, workspaces), key=lambda line: _WORST.index(line.word))


def _troubles(state: RunState, workspaces: str) -> list[Line]:
    lines: list[Line] = []
    words = task_statuses(state)
    for task in state.tasks.values():
        name = _name(state, task)
        log = f"windlass log {state.plan.id}:{task.id}"
        kept = (f"kept: {workspaces}/{task.id} · {log}",) if task.attempts else ()
        if task.phase is Phase.ABANDONED:
            lines.append(_abandoned(state, task, name, kept))
        elif state.is_stale(task.id):
            lines.append(Line("STALE", name, (*about_stale(state, task.id), *kept)))
        elif task.phase in HELPLESS:
            ways = (step.command for step in ways_to_help(task, state))
            lines.append(Line("NEEDS YOU", name, (*ALL.prose(asks(task)), *kept, *ways)))
        elif words[task.id] == "blocked":
            lines.append(Line("BLOCKED", f"{name} · needs {blocked(state)[task.id]}"))
    return lines + _stage_trouble(state) + _red(state)


def _red(state: RunState) -> list[Line]:
    red = red_lines(state, room_for(state))
    what = "tip" if state.merged else "base"
    return [Line("RED", f"the {what} itself does not pass", red)] if red else []


def _abandoned(state: RunState, task: TaskState, name: str, kept: tuple[str, ...]) -> Line:
    spent = column(task_cost(state, task))
    text = f"{name} · {turns_used(task)}/{turns_allowed(state, task)} turns · {spent}"
    room = room_for(state, task.id)
    why = (*not_passed(task.last.results, room), *_must_fix(task))
    # Without either, the feedback says why.
    why = why or room.prose(task.feedback or "")
    again = f"retry it: windlass retry {state.plan.id}:{task.id}"
    details = (*why, *kept, again)
    return Line("ABANDONED", text, details, task_seconds(state, task))


def _must_fix(task: TaskState) -> list[str]:
    return [
        f"must_fix {one_line(' · '.join(filter(None, (each.file, each.description))), 300)}"
        for each in must_fix(task)
    ]


def _stage_trouble(state: RunState) -> list[Line]:
    stage = unverified_stage(state)
    if stage is None:
        return []
    where = shlex.quote(f"{state.plan.id}:{stage}")
    problems = [one_line(problem, 160) for problem in state.looks[stage].problems[:5]]
    return [
        Line(
            "STAGE",
            f"{stage_name(state, stage)} did not verify",
            (*problems, f"windlass approve {where}", f"windlass retry {where}"),
        )
    ]


def _rests(state: RunState, continue_here: str) -> list[Line]:
    if state.ended is not RunEnd.PAUSED:
        return []
    saved = (f"Progress saved to {continue_here}",) if continue_here else ()
    commits = f"Commits: {commits_done(state)} completed"
    return [Line("PAUSED", f"Execution paused at {position(state)}.", (*saved, commits))]


def what_it_needs(task: TaskState, state: RunState) -> tuple[str, ...]:
    """What a task needs from a person, in a few lines, and the commands that give it, if any."""
    if task.phase not in HELPLESS:
        return ()
    if task.phase is Phase.STALE:
        return about_stale(state, task.id)
    asked = Room(f"windlass status {state.plan.id}:{task.id}", FEW).prose(asks(task))
    return (*asked, *(step.command for step in ways_to_help(task, state)))


def about_stale(state: RunState, task_id: str) -> tuple[str, ...]:
    """Why the task is stale, the results of its checks, and how to settle it."""
    why = f"{STALE_BECAUSE}; decide what to do with it"
    old = f"or restore the old text in {state.plan.path}, or remove the task from it"
    ways = ways_to_help(state.tasks[task_id], state)
    return (why, *check_lines(state, task_id), *(step.command for step in ways), old)


def asks(task: TaskState) -> str:
    if task.phase is Phase.STALE:
        return f"{STALE_BECAUSE}; decide what to do with it"
    return f"{task.last.by} works on it" if task.phase is Phase.TAKEN else task.question or ""


def _summary(state: RunState) -> Line:
    metrics = progress(state, 0).metrics
    cost = run_cost(state)
    read, written = cost.input_tokens + cost.cached_tokens, tokens(cost.output_tokens)
    cached = f" ({round(100 * cost.cached_tokens / read)}% cached)" if cost.cached_tokens else ""
    spent = f"{amounts(cost)} of {money(state.settings.max_cost)}"
    turns = f"{plural(metrics.turns, 'turn')}, {metrics.returned} returned"
    details = [
        *ALL.prose(state.reason),
        f"{turns} · checks {checks_line(state)}",
        f"{spent} · tokens {tokens(read)} in{cached}, {written} out",
    ]
    details += _repeated(state)
    details += doubts(cost)
    if is_unchecked(state):
        details.append(UNCHECKED)
    details += _accepted(state)
    details += _flaky(state)
    if state.resumes:
        details.append(f"resumed {plural(state.resumes, 'time')}")
    return Line("Summary", counts(state), tuple(details), metrics.elapsed_seconds)


def _repeated(state: RunState) -> list[str]:
    """Time lost through no fault of a task."""
    waited = limit_seconds(state)
    limit = f"{duration(waited)} waiting for {quota(state)}" if waited else ""
    rounds = sum(each.onto is not None for task in state.all_tasks for each in task.attempts)
    merged = f"{plural(rounds, 'merge')} repeated" if rounds else ""
    line = " · ".join(part for part in (limit, merged) if part)
    return [line] if line else []


def _accepted(state: RunState) -> list[str]:
    """A line for each task that a person accepted for its current text."""
    lines = ((id_, accepted_line(state, id_)) for id_ in state.done)
    return [f"{id_}: {line}" for id_, line in lines if line]


def _flaky(state: RunState) -> list[str]:
    """A line for each check that gave different results for one tree."""
    results = (result for tree in state.evidence.values() for result in tree.values())
    commands = dict.fromkeys(result.command for result in results if result.wavers)
    return [
        f"flaky: `{one_line(each, 80)}` gave different results for the same files"
        for each in commands
    ]


def branch_line(state: RunState, ground: Ground | None) -> Line:
    """The merges, their base, and the state of the branch that the run started from."""
    base = f"{state.base_branch or 'commit'}@{state.base[:10]}"
    details = (*state.notes, *network_advice(state), *_base_line(state, ground))
    if not (count := state.merges):
        return Line("Branch", f"nothing was merged onto {base}", details)
    return Line(
        "Branch", f"{integration_branch(state)}: {plural(count, 'merge')} on {base}", details
    )


def _base_line(state: RunState, ground: Ground | None) -> tuple[str, ...]:
    """The state of the branch that the run started from; nothing if git was not asked."""
    base = state.base_branch
    if base is None:
        return ("the run started from a commit without a branch",)
    if (landed := landed_at(state)) is not None:
        squashed = state.landing is not None and state.landing.squash
        how = ", as one commit for each task" if squashed else ""
        return (f"landed: {base} was moved to {landed[:10]}, which has all of it{how}",)
    if ground is None:
        return ()
    if ground.commit is None:
        return (f"{base} is gone",)
    if ground.commit == state.base:
        return (f"{base} itself has not moved",)
    where = f"{base} has moved to {ground.commit[:10]}"
    if ground.holds_tip:
        return (f"{where}, which has all of it",)
    return (f"{where}, which is not in these merges; `windlass land` merges it",)


_LINE = re.compile(r"^(Plan|Run): (\S+)[ \t]*\r?$", re.MULTILINE)


class Pointer(Struct, frozen=True):
    """The run that a continue-here file names."""

    plan: str
    run: str


def continue_here_text(state: RunState, seq: int, redact: Callable[[str], str] = str) -> str | None:
    """The text of the continue-here file; None if the run is not paused."""
    if state.ended is not RunEnd.PAUSED:
        return None
    lines = [
        f"Execution paused at {position(state)}.",
        "",
        f"Plan: {state.plan.id}",
        f"Run: {state.run}",
        f"File: {one_line(state.plan.path, 500)}",
        f"Commits: {commits_done(state)} completed",
        f"Branch: {integration_branch(state)}",
        f"Journal: {seq}",
        "",
        "Progress:",
        *(redact(line) for line in tree(state)),
        "",
        "To resume: windlass resume",
    ]
    return "\n".join(lines) + "\n"


def commits_done(state: RunState) -> int:
    """The number of commits of the merged tasks."""
    merged = (task for task in state.tasks.values() if task.phase is Phase.MERGED)
    return sum(len(commits_of(task)) for task in merged)


def pointer(text: str) -> Pointer | None:
    """The run that the text names, if it is a continue-here file."""
    found: dict[str, str] = {}
    for line in _LINE.finditer(text):
        found.setdefault(line[1], line[2])
    return Pointer(found["Plan"], found["Run"]) if found.keys() == {"Plan", "Run"} else None
