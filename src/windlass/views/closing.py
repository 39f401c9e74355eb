"""The end of a run, worst first, and always the next command."""

import shlex
from itertools import islice

from msgspec import Struct

from windlass.events.model import Outcome, RunEnd
from windlass.state import Phase, RunState, TaskState
from windlass.state.budget import used_up
from windlass.state.reach import blocked
from windlass.state.stretches import task_seconds
from windlass.state.transitions import HELPLESS
from windlass.views.continue_here import commits_done
from windlass.views.cost import run_cost, task_cost
from windlass.views.lines import UNCHECKED, Line, is_unchecked, not_passed
from windlass.views.outcome import task_statuses
from windlass.views.progress import integration_branch, merges, progress, turns_allowed, turns_used
from windlass.views.tree import failed_stage, position, stage_name, unverified_stage
from windlass.views.words import money, one_line, plural, tokens

_SOME_WORDS = 3
_WORST = ("ABANDONED", "STAGE", "NEEDS YOU", "BLOCKED", "STALE")


class Ground(Struct, frozen=True, kw_only=True):
    """Where the branch stands now that the run began from; only git can say."""

    commit: str | None
    """None where the branch is gone."""
    holds_tip: bool = False
    """Whether all that was merged is in it."""


def closing(
    state: RunState,
    *,
    plan: str,
    workspaces: str,
    continue_here: str = "",
    ground: Ground | None = None,
) -> list[Line]:
    """The last lines; `plan` is how to name the plan on the command line."""
    steps = next_steps(state, plan=plan, ground=ground)
    why = (one_line(state.reason, 400),) if state.reason else ()
    over = state.ended in {RunEnd.COMPLETED, RunEnd.FAILED}
    tells = (f"windlass report {plan} --open",) if over else ()
    return [
        *troubles(state, workspaces),
        *_rests(state, continue_here),
        _summary(state),
        branch_line(state, ground),
        Line("Next", steps[0], (*steps[1:], *tells, *why)),
    ]


def troubles(state: RunState, workspaces: str) -> list[Line]:
    """What stands in the way, worst first."""
    return sorted(_troubles(state, workspaces), key=lambda line: _WORST.index(line.word))


def _troubles(state: RunState, workspaces: str) -> list[Line]:
    lines: list[Line] = []
    words = task_statuses(state)
    for task in state.tasks.values():
        name = f"{task.id} {one_line(state.specs[task.id].title, 60)}"
        kept = (f"kept: {workspaces}/{task.id}",) if task.attempts else ()
        if task.phase is Phase.ABANDONED:
            lines.append(_abandoned(state, task, name, kept))
        elif task.phase in HELPLESS:
            asked, *ways = what_it_needs(task, state)
            lines.append(Line("NEEDS YOU", name, (asked, *kept, *ways)))
        elif state.is_stale(task.id):
            again = f"windlass retry {state.plan.id}:{task.id}"
            told = "merged for what the plan said then; to have it done as it says now:"
            lines.append(Line("STALE", name, (told, again)))
        elif words[task.id] == "blocked":
            lines.append(Line("BLOCKED", f"{name} · needs {blocked(state)[task.id]}"))
    return lines + _stage_trouble(state)


def _abandoned(state: RunState, task: TaskState, name: str, kept: tuple[str, ...]) -> Line:
    cost = task_cost(task)
    spent = money(cost.usd, known=cost.known)
    told = f"{name} · {turns_used(task)}/{turns_allowed(state, task)} turns · {spent}"
    why = " · ".join((*not_passed(task.last.results)[:2], *_must_fix(task)[:2]))
    again = f"reopen it: windlass retry {state.plan.id}:{task.id}"
    details = (*((why,) if why else ()), *kept, again)
    return Line("ABANDONED", told, details, task_seconds(state, task))


def _must_fix(task: TaskState) -> list[str]:
    """What the last Coach that looked at the last attempt would not let pass."""
    reviews = [each.review for each in task.last.coachings if each.review is not None]
    issues = [issue for review in reviews[-1:] for issue in review.issues]
    found = [issue for issue in issues if issue.severity == "must_fix"]
    return [f"must_fix {one_line(issue.file or issue.description, 60)}" for issue in found]


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
    """What a task waits for that a person must give, and the commands that give it, if any."""
    if task.phase not in HELPLESS:
        return ()
    return (one_line(asks(task), 160), *_how_to_help(task, state))


def asks(task: TaskState) -> str:
    """What it waits for."""
    return f"{task.last.by} works on it" if task.phase is Phase.TAKEN else task.question or ""


def _how_to_help(task: TaskState, state: RunState) -> tuple[str, ...]:
    where = f"{state.plan.id}:{task.id}"
    if task.phase is Phase.HELP_TO_START:
        return (f"windlass approve {where}",)
    if task.phase is Phase.ASKED:
        return (f'windlass answer {where} "…"',)
    if task.phase is Phase.TAKEN:
        return (f"windlass give {where}",)
    return ()


def _summary(state: RunState) -> Line:
    words = task_statuses(state)
    counted = {word: list(words.values()).count(word) for word in dict.fromkeys(words.values())}
    told = ", ".join(f"{count} {word}" for word, count in counted.items())
    metrics = progress(state, 0).metrics
    cost = run_cost(state)
    checks = " ".join(f"{metrics.checks[o]} {o}" for o in Outcome if metrics.checks[o])
    read, written = cost.input_tokens + cost.cached_tokens, tokens(cost.output_tokens)
    cached = f" ({round(100 * cost.cached_tokens / read)}% cached)" if cost.cached_tokens else ""
    spent = f"{money(cost.usd, known=cost.known)} of {money(state.settings.max_cost)}"
    details = [
        f"{plural(metrics.turns, 'turn')}, {metrics.returned} returned · checks {checks or 'none'}",
        f"{spent} · tokens {tokens(read)} in{cached}, {written} out",
    ]
    if not cost.known:
        details.append("+ what agents that were killed had spent is not known")
    if is_unchecked(state):
        details.append(UNCHECKED)
    details += _flaky(state)
    if state.resumes:
        details.append(f"resumed {plural(state.resumes, 'time')}")
    text, took = f"{plural(len(words), 'task')}: {told}", metrics.elapsed_seconds
    return Line("Summary", text, tuple(details), took)


def _flaky(state: RunState) -> list[str]:
    """A line for each check that said two things of one tree, however the run went on."""
    said = (result for told in state.evidence.values() for result in told.values())
    commands = dict.fromkeys(result.command for result in said if result.wavers)
    return [f"flaky: `{one_line(each, 80)}` said two things of the same files" for each in commands]


def branch_line(state: RunState, ground: Ground | None) -> Line:
    """What was merged, onto what, and what became of the branch the run began from."""
    base = f"{state.base_branch or 'commit'}@{state.base[:10]}"
    told = (*state.notes, *_base_line(state, ground))
    if not (count := merges(state)):
        return Line("Branch", f"nothing was merged onto {base}", told)
    return Line("Branch", f"{integration_branch(state)}: {plural(count, 'merge')} on {base}", told)


def _base_line(state: RunState, ground: Ground | None) -> tuple[str, ...]:
    """What became of the branch the run began from; nothing where nobody has looked."""
    base = state.base_branch
    if base is None:
        return ("the run began from a commit that no branch stood at",)
    if (landed := landed_at(state)) is not None:
        return (f"landed: {base} was moved to {landed[:10]}, which holds all of it",)
    if ground is None:
        return ()
    if ground.commit is None:
        return (f"{base} is gone",)
    if ground.commit == state.base:
        return (f"{base} itself has not moved",)
    where = f"{base} has moved to {ground.commit[:10]}"
    if ground.holds_tip:
        return (f"{where}, which holds all of it",)
    return (f"{where}, which these merges do not hold yet; `windlass land` merges with it",)


def landed_at(state: RunState) -> str | None:
    """Where the base branch was moved to, if it was."""
    return state.landing.landed if state.landing is not None else None


def _more(state: RunState) -> str:
    """The option that lets a run go on whose budget is used up."""
    if state.spent_usd >= state.settings.max_cost:
        return f"--max-cost {2 * state.settings.max_cost:g}"
    return f"--max-tokens {2 * (state.settings.max_tokens or 0)}"


def next_steps(state: RunState, *, plan: str, ground: Ground | None) -> list[str]:
    """The commands that make sense now, the usual one first, each with what it does."""
    match state.ended:
        case RunEnd.COMPLETED:
            return _take_it(state, plan, ground) or [f"windlass clean {plan}"]
        case RunEnd.FAILED:
            anew = f"windlass run {plan} --restart"
            return [*_mend(state, plan), f"windlass log {plan}", anew]
        case RunEnd.ABORTED:
            return [
                f"windlass run {plan}",
                *_take_it(state, plan, ground),
                f"windlass clean {plan}",
            ]
        case RunEnd.ABANDONED:
            return [f"windlass run {plan}"]
        case RunEnd.NEEDS_HUMAN if state.red_base and not state.merged:
            mended = f"or mend the base, then: windlass run {plan} --restart"
            return [f"windlass resume {plan} --red-base go", mended]
        case RunEnd.NEEDS_HUMAN:
            return _help(state, plan)
        case RunEnd.LIMIT:
            more = f" {_more(state)}" if used_up(state) is not None else ""
            return [f"windlass resume {plan}{more}"]
        case _:
            return [f"windlass resume {plan}"]


def _take_it(state: RunState, plan: str, ground: Ground | None) -> list[str]:
    """How the user's branch gets what was merged, unless it has it, or there is nothing."""
    branch = integration_branch(state)
    has_it = landed_at(state) is not None or (ground is not None and ground.holds_tip)
    if has_it or not merges(state):
        return []
    look = f"git log --graph {state.base_branch or state.base[:10]}..{branch}"
    return [f"windlass land {plan}", look] if state.base_branch else [look, f"git merge {branch}"]


def _mend(state: RunState, plan: str) -> list[str]:
    again = [f"windlass resume {plan} --retry"] if state.index.abandoned else []
    stage = [f"windlass resume {plan} --retry-stage"] if failed_stage(state) is not None else []
    return [*again, *stage]


def _help(state: RunState, plan: str) -> list[str]:
    if state.landing is not None and state.landing.refused:
        # A run that no branch began cannot land however often it is told to.
        return [f"windlass land {plan}"] if state.base_branch else _take_it(state, plan, None)
    if unverified_stage(state) is not None:
        ways = ("--retry-stage", "--go-on")
        return [*(f"windlass resume {plan} {way}" for way in ways), f"windlass abort {plan}"]
    # What waits for a word is not helped by going on alone.
    words = (word for task in state.live for word in _how_to_help(task, state))
    return [*islice(words, _SOME_WORDS), f"windlass resume {plan}"]
