"""What a person can do now: the next commands, the ways to continue, and why one was refused.

Law: every suggestion of what to do next comes from here, for the end of a run, `status`, the report
and programs; the usual way comes first.
"""

import math
import shlex
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple, assert_never

from msgspec import Struct

from windlass.core.events.model import RunEnd
from windlass.core.events.values import Amount
from windlass.core.plan import Plan
from windlass.core.plan.names import escaped, some
from windlass.core.scheduler.late_edits import newly_stale
from windlass.core.state import Phase, RunState, TaskState
from windlass.core.state.budget import is_money_short, used_up
from windlass.core.state.transitions import IN_MERGE, IN_TIP, RESETTABLE, UNDER_WAY
from windlass.core.state.work import turn_limit
from windlass.views.edits import edited
from windlass.views.lines import red_lines, room_for
from windlass.views.outcome import run_status, task_statuses
from windlass.views.progress import integration_branch, landed_at
from windlass.views.tree import failed_stage, position, stage_name, tree, unverified_stage
from windlass.views.words import one_line, plural

_SOME_WORDS = 3
_BROAD = 36
"""Columns; a longer command does not widen the column of commands."""


class Ground(Struct, frozen=True, kw_only=True):
    """The branch that the run started from, as git has it now."""

    commit: str | None
    """None if the branch was deleted."""
    holds_tip: bool = False
    """Whether it contains all merged work."""
    has_remote: bool = False
    """Whether the repository has a remote to push to."""


class Step(Struct, frozen=True):
    """A command, and what it does."""

    command: str
    does: str


def listed(steps: list[Step]) -> list[str]:
    """A line for each, aligned in two columns."""
    broad = max((len(s.command) for s in steps if len(s.command) <= _BROAD), default=0)
    return [f"{step.command:<{broad}}  {step.does}" for step in steps]


def resuming(state: RunState, plan: str) -> Step:
    """Resume, with a higher limit if the budget is used up."""
    if used_up(state) is None:
        return Step(f"windlass resume {plan}", "continue the run")
    short, limits = state.short or Amount(), state.settings
    if is_money_short(state):
        enough = max(2 * limits.max_cost, math.ceil(100 * (state.spent.cost_usd + short.usd)) / 100)
        more = f"--max-cost {enough:g}"
    else:
        tokens = max(2 * (limits.max_tokens or 0), state.spent.tokens + short.tokens)
        more = f"--max-tokens {tokens}"
    return Step(f"windlass resume {plan} {more}", "continue with a higher limit")


def next_steps(state: RunState, *, plan: str, ground: Ground | None) -> list[Step]:
    """What to do now; `plan` is its name on the command line."""
    match state.ended:
        case RunEnd.COMPLETED:
            return _take_it(state, plan, ground) or [_clean(plan)]
        case RunEnd.FAILED:
            look = Step(f"windlass log {plan}", "see what happened")
            return [*_mend(state, plan), look, _restart(plan)]
        case RunEnd.ABORTED:
            again = Step(f"windlass run {plan}", "start a new run")
            return [again, *_take_it(state, plan, ground), _clean(plan)]
        case RunEnd.ABANDONED:
            return [Step(f"windlass run {plan}", "start a new run")]
        case RunEnd.NEEDS_HUMAN if state.base_is_refused and not state.merged:
            go = Step(f"windlass resume {plan} --red-base go", "continue anyway")
            return [go, Step(_restart(plan).command, "after fixing the base")]
        case RunEnd.NEEDS_HUMAN:
            return _help(state, plan)
        case RunEnd.STOPPED | RunEnd.PAUSED | RunEnd.LIMIT | None:
            return _words(state, plan)
        case _:
            assert_never(state.ended)


def _clean(plan: str) -> Step:
    return Step(f"windlass clean {plan}", "delete its workspaces")


def _restart(plan: str) -> Step:
    return Step(f"windlass run {plan} --restart", "start again")


def has_landed(state: RunState, ground: Ground | None) -> bool:
    """Whether the user's branch has all merged work, by a landing or their own merge."""
    return landed_at(state) is not None or (ground is not None and ground.holds_tip)


def _take_it(state: RunState, plan: str, ground: Ground | None) -> list[Step]:
    """How the user's branch gets the merged work, unless it has it or there is none."""
    branch = integration_branch(state)
    if has_landed(state, ground) or not state.merges:
        return []
    these = f"these {state.merges} merges" if state.merges > 1 else "this merge"
    base = state.base_branch
    asked = [Step(f"windlass pr {plan}", "open a pull request")]
    asked = asked if ground is not None and ground.has_remote else []
    if base is None or (ground is not None and ground.commit is None):
        look = Step(f"git log --graph {state.base[:10]}..{branch}", "look at them")
        again = [_made_again(base, branch)] if base is not None else []
        return [*asked, look, Step(f"git merge {branch}", f"take {these}"), *again]
    land = Step(f"windlass land {plan}", f"move {base} to {these}")
    return [land, *asked, Step(f"git log --graph {base}..{branch}", "look at them")]


def _made_again(base: str, branch: str) -> Step:
    """Create the branch that the run started from, if it was deleted."""
    return Step(f"git branch {shlex.quote(base)} {branch}", "create it again")


def _mend(state: RunState, plan: str) -> list[Step]:
    ways: list[Step] = []
    if given_up := state.index.abandoned:
        what = given_up[0] if len(given_up) == 1 else plural(len(given_up), "task")
        ways.append(Step(f"windlass resume {plan} --retry", f"retry {what} and continue"))
    if failed_stage(state) is not None:
        ways.append(Step(f"windlass resume {plan} --retry-stage", "redo the stage"))
    return ways


def _help(state: RunState, plan: str) -> list[Step]:
    if state.landing is not None and state.landing.refused:
        return list(cure(state, plan).steps)
    if unverified_stage(state) is not None:
        return [
            Step(f"windlass resume {plan} --retry-stage", "redo the stage"),
            Step(f"windlass resume {plan} --go-on", "continue anyway"),
            Step(f"windlass abort {plan}", "abort the run"),
        ]
    return _words(state, plan)


def _words(state: RunState, plan: str) -> list[Step]:
    """Tasks that wait for a person need their commands before a resume."""
    words = (word for task in state.live for word in ways_to_help(task, state))
    return [*islice(words, _SOME_WORDS), resuming(state, plan)]


def ways_to_help(task: TaskState, state: RunState) -> tuple[Step, ...]:
    """The commands that give a task what it waits for, if any."""
    where = shlex.quote(f"{state.plan.id}:{task.id}")
    if task.phase is Phase.STALE:
        return (
            Step(f"windlass retry {where}", "redo it for the new text"),
            Step(f"windlass approve {where}", "accept the merged work for the new text"),
        )
    if task.phase is Phase.HELP_TO_START:
        return (Step(f"windlass approve {where}", "let it start"),)
    if task.phase is Phase.ASKED:
        return (Step(f'windlass answer {where} "…"', "answer it"),)
    if task.phase is Phase.TAKEN:
        return (Step(f"windlass give {where}", "hand it back"),)
    if task.phase is Phase.HELP_TO_PLAY and task.feedback is not None:
        return (Step(f'windlass answer {where} "…"', "give advice"),)
    return ()


def how_to_settle(state: RunState, stale: Sequence[str]) -> str:
    """How to settle stale tasks, in a sentence."""
    where = shlex.quote(f"{state.plan.id}:{stale[0]}")
    each = "" if len(stale) == 1 else " (for each of them)"
    return (
        f"`windlass retry {where}` redoes it, `windlass approve {where}` accepts the merged work"
        f"{each}; or restore the old text in {state.plan.path}, or remove the task from it; then"
        f" `windlass resume {state.plan.id}`"
    )


def how_to_take_up(state: RunState, plan: Plan, typed: str) -> str:
    """How a complete run gets the edits of its plan, in a sentence; empty if there is none.

    `plan` is the plan as it is now, `typed` its name on the command line.
    """
    edits = edited(state, plan)
    if state.ended is not RunEnd.COMPLETED or not edits:
        return ""
    stale = newly_stale(state, plan)
    run = f"`windlass run {typed}`"
    new = f"{run} runs {some(edits.added, _NAMED)} as part of it" if edits.added else ""
    other = "" if new or stale else f"{run} applies the edit of the plan"
    settle = how_to_settle(state, stale) if stale else ""
    return "; ".join(part for part in (new, other, settle) if part)


class Cure(Struct, frozen=True, kw_only=True):
    """What to do about a refused landing."""

    hint: str = ""
    """A sentence; empty if the refusal itself has it."""
    steps: tuple[Step, ...]


def cure(state: RunState, plan: str) -> Cure:
    again = Step(f"windlass land {plan}", "try again")
    anyway = Step(f"windlass land {plan} --yes", "land it anyway")
    if state.stale:
        steps = ways_to_help(state.tasks[state.stale[0]], state)
        return Cure(hint=how_to_settle(state, state.stale), steps=(*steps, resuming(state, plan)))
    if (stage := unverified_stage(state)) is not None:
        where = shlex.quote(f"{state.plan.id}:{stage}")
        passed = Step(f"windlass approve {where}", "let the stage pass")
        retried = Step(f"windlass retry {where}", "redo the stage")
        hint = f"`{passed.command}` lets it pass, `{retried.command}` redoes it"
        hint = f"{hint}; `{anyway.command}` lands it anyway"
        return Cure(hint=hint, steps=(passed, retried, anyway))
    branch, landing = integration_branch(state), state.landing
    merging = Step(f"git merge {branch}", "merge it by hand")
    if state.base_branch is None:
        return Cure(steps=(merging,))
    if landing is not None and landing.relation == "gone":
        made = _made_again(state.base_branch, branch)
        hint = f"`{made.command}` creates it again with all of it; or merge into another branch:"
        return Cure(hint=f"{hint} `{merging.command}`", steps=(made, merging))
    if landing is not None and landing.rewound and not landing.anyway:
        return Cure(hint=f"`{anyway.command}` lands it anyway", steps=(anyway,))
    if landing is not None and landing.conflicted:
        hint = f"merge it by hand on {state.base_branch}: `{merging.command}`"
        return Cure(hint=f"{hint}, then `{again.command}`", steps=(merging, again))
    return Cure(steps=(again,))


class Choice(Struct, frozen=True, kw_only=True):
    """One way to continue, or not to."""

    name: str
    """What is typed, and the name of the option."""
    text: str
    words: tuple[tuple[str, str], ...] = ()
    """The commands to send first, each with its task or stage."""


_NAMED = 5
"""How many tasks a choice names."""

RESTART = Choice(name="restart", text="leave it pinned, and start a new run")
ABORT = Choice(name="abort", text="abort the run; its work stays pinned")


def choices(state: RunState) -> tuple[Choice, ...]:
    """The ways to continue the run, the usual one first."""
    found = [_plain(state)]
    if given_up := state.index.abandoned:
        again = Choice(
            name="retry",
            text=f"give {_turns_again(state, given_up)}, and continue",
            words=tuple(("retry", id_) for id_ in given_up),
        )
        # A run that failed can do nothing without them.
        found.insert(0 if state.ended is RunEnd.FAILED else 1, again)
    if (stage := failed_stage(state)) is not None:
        text = f"redo all of {stage_name(state, stage)}, and continue"
        found.append(Choice(name="retry-stage", text=text, words=(("retry", stage),)))
    if (stage := unverified_stage(state)) is not None:
        text = f"continue although {stage_name(state, stage)} did not verify"
        found.append(Choice(name="go-on", text=text, words=(("approve", stage),)))
    return tuple(found)


def _turns_again(state: RunState, ids: Sequence[str]) -> str:
    """`1.1, 1.2 another 5 turns`; tasks with another limit of their own are named with it."""
    by_limit: dict[int, list[str]] = {}
    for id_ in ids:
        by_limit.setdefault(turn_limit(state, id_), []).append(id_)
    return " and ".join(
        f"{some(those, _NAMED)} another {plural(limit, 'turn')}"
        for limit, those in by_limit.items()
    )


def unfinished(state: RunState) -> list[str]:
    """The run that the choices are for, and its state."""
    merged = f"{len(state.done)} of {plural(len(state.tasks), 'task')} merged"
    first = f"Run {state.run} of {state.plan.id} is {run_status(state)}: {merged}"
    red = (escaped(line) for line in red_lines(state, room_for(state)))
    return [first, *filter(None, (why_it_ended(state),)), *red, "", "Progress:", *tree(state)]


def why_it_ended(state: RunState) -> str:
    """Why the run could not go on, in one line; empty where its tasks say that."""
    return one_line(state.reason, 400) if state.ended in {RunEnd.NEEDS_HUMAN, RunEnd.LIMIT} else ""


def how_to_go_on(state: RunState, plan: str) -> str:
    """The commands to use without a terminal, the usual one first."""
    first, *_ = offered = choices(state)
    restart = f"`windlass run {plan} --restart` starts a new run"
    if state.base_is_refused and not state.merged:
        anyway = f"`windlass resume {plan} --red-base go` continues anyway"
        return f"fix the base, then {restart}; {anyway}"
    if first.name == "resume":
        return f"continue with `{resuming(state, plan).command}`; {restart}"
    ways = [f"`windlass resume {plan} --{each.name}`" for each in offered if each.words]
    without = f"--yes continues without {some(state.index.abandoned, _NAMED)}"
    return f"choose: {' or '.join(ways)}; {without}; {restart}"


def _plain(state: RunState) -> Choice:
    stage = unverified_stage(state)
    if state.base_is_refused and not state.merged:
        text = "stop again at the base, which does not pass; --red-base go ignores that"
    elif stage is not None:
        text = f"look at {stage_name(state, stage)} again, and continue if it holds"
    elif state.index.abandoned:
        text = f"continue without {some(state.index.abandoned, _NAMED)}"
    else:
        text = f"continue at {position(state)}"
    return Choice(name="resume", text=text)


_DONE = {
    "approve": "approved",
    "answer": "answered",
    "retry": "retried",
    "reset": "reset",
    "take": "taken",
    "give": "given back",
}
_LOOK = "`windlass status` shows what waits for you"
_WAIT = "wait for its turn to end, or `windlass stop` first"


class Refusal(NamedTuple):
    message: str
    cure: str


def refusal(command: str, state: RunState, task_id: str, *, undo: bool = False) -> Refusal:
    """Why the command does not fit the task now; `undo`: of a reset or a retry."""
    why, cure = _why(command, state, task_id, undo=undo)
    done = "put back" if undo else _DONE[command]
    return Refusal(f"task {task_id!r} cannot be {done}: {why}", cure)


def _why(command: str, state: RunState, task_id: str, *, undo: bool) -> tuple[str, str]:
    task = state.tasks[task_id]
    status = f"it is {task_statuses(state)[task_id]}"
    if undo:
        return _not_undone(command, task)
    if command == "give":
        return f"it is not taken, {status}", _how_to_take(state, task_id, status)
    if command in {"approve", "answer"}:
        return _not_asked(command, state, task_id, status)
    if task.phase in UNDER_WAY:
        return "work on it is under way", _WAIT
    if state.specs[task_id].scenario and command != "retry":
        return "it is the plan's E2E scenario, which runs on the merged work", _LOOK
    if command == "take":
        return _not_taken(state, task_id, status)
    if command == "reset" and task.phase not in RESETTABLE:
        return f"no work was done on it yet, {status}", _LOOK
    return f"only merged or abandoned tasks can be retried, {status}", _LOOK


def _not_undone(command: str, task: TaskState) -> tuple[str, str]:
    """There is no reset or redo that could be undone, or work on it is under way."""
    if command == "reset":
        return "it was not reset, or has started since", _LOOK
    if task.redoes is None:
        return "no retry of merged work is open; once the redo is merged, it stays", _LOOK
    if task.phase in IN_MERGE:
        return "its redo is being merged", _LOOK
    return "work on it is under way", _WAIT


def _not_asked(command: str, state: RunState, task_id: str, status: str) -> tuple[str, str]:
    """The task does not wait for it, or its text has changed meanwhile."""
    if command == "approve" and state.is_stale(task_id):
        return "its text has changed since you looked", f"windlass status {state.plan.id}"
    asked = "it needs no approval" if command == "approve" else "it asks no question"
    return f"{asked}, {status}", _LOOK


def _how_to_take(state: RunState, task_id: str, status: str) -> str:
    """A cure that would not be refused as well."""
    task = state.tasks[task_id]
    if task.phase in UNDER_WAY:
        return _WAIT
    if state.specs[task_id].scenario:
        return _LOOK
    if task.phase in IN_TIP or (task.phase is Phase.PENDING and task not in state.free):
        return _not_taken(state, task_id, status)[1]
    return f"windlass take {state.plan.id}:{task_id}"


def _not_taken(state: RunState, task_id: str, status: str) -> tuple[str, str]:
    """It is taken or merged, or a dependency is not merged."""
    needed = [id_ for id_ in state.specs[task_id].depends_on if id_ not in state.in_tip]
    if state.tasks[task_id].phase is Phase.PENDING and needed:
        return f"it needs {', '.join(needed)}, not merged yet", f"take {needed[0]} first, or wait"
    if state.tasks[task_id].phase in IN_TIP:
        return "it is merged", f"windlass retry {state.plan.id}:{task_id}"
    return f"its turn is not over, {status}", _WAIT
