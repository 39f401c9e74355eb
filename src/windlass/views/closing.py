"""The end of a run, worst first, and always the next command."""

from windlass.events.model import Outcome, RunEnd
from windlass.state import Phase, RunState, TaskState
from windlass.state.budget import used_up
from windlass.state.transitions import HELPLESS
from windlass.views.cost import run_cost
from windlass.views.outcome import task_statuses
from windlass.views.progress import integration_branch, progress
from windlass.views.story import UNCHECKED, Line, is_unchecked
from windlass.views.words import duration, money, one_line, plural, tokens

_WORST = ("ABANDONED", "NEEDS YOU", "BLOCKED", "STALE")


def closing(state: RunState, *, plan: str, workspaces: str) -> list[Line]:
    """The last lines; `plan` is how to name the plan on the command line."""
    troubles = sorted(_troubles(state, workspaces), key=lambda line: _WORST.index(line.word))
    return [*troubles, _summary(state), _branch(state), _next(state, plan)]


def _troubles(state: RunState, workspaces: str) -> list[Line]:
    lines: list[Line] = []
    words = task_statuses(state)
    for task in state.tasks.values():
        name = f"{task.id} {one_line(state.specs[task.id].title, 60)}"
        kept = f"kept: {workspaces}/{task.id}"
        if task.phase is Phase.ABANDONED:
            lines.append(Line("ABANDONED", f"{name} · {plural(task.last.turn, 'turn')}", (kept,)))
        elif task.phase in HELPLESS:
            asked = one_line(task.question or "", 160)
            lines.append(Line("NEEDS YOU", name, (asked, kept, *_how_to_help(task, state))))
        elif state.is_stale(task.id):
            again = f"windlass retry {state.plan.id}:{task.id}"
            told = "merged for what the plan said then; to have it done as it says now:"
            lines.append(Line("STALE", name, (told, again)))
        elif words[task.id] == "blocked":
            lines.append(Line("BLOCKED", name))
    return lines


def _how_to_help(task: TaskState, state: RunState) -> tuple[str, ...]:
    where = f"{state.plan.id}:{task.id}"
    if task.phase is Phase.HELP_TO_START:
        return (f"windlass approve {where}",)
    if task.phase is Phase.ASKED:
        return (f'windlass answer {where} "…"',)
    return ()


def _summary(state: RunState) -> Line:
    words = task_statuses(state)
    counted = {word: list(words.values()).count(word) for word in dict.fromkeys(words.values())}
    told = ", ".join(f"{count} {word}" for word, count in counted.items())
    metrics = progress(state, 0).metrics
    cost = run_cost(state)
    checks = " ".join(f"{metrics.checks[o]} {o}" for o in Outcome if metrics.checks[o])
    read, written = tokens(cost.input_tokens + cost.cached_tokens), tokens(cost.output_tokens)
    spent = money(cost.usd, known=cost.known)
    details = [
        f"{plural(metrics.turns, 'turn')}, {metrics.returned} returned · checks {checks or 'none'}",
        f"{spent} of {money(state.settings.max_cost)} · tokens {read} in, {written} out",
    ]
    if not cost.known:
        details.append("+ what agents that were killed had spent is not known")
    if is_unchecked(state):
        details.append(UNCHECKED)
    if state.resumes:
        details.append(f"resumed {plural(state.resumes, 'time')}")
    elapsed = duration(metrics.elapsed_seconds)
    return Line("Summary", f"{plural(len(words), 'task')}: {told} · {elapsed}", tuple(details))


def _branch(state: RunState) -> Line:
    base = f"{state.base_branch or 'commit'}@{state.base[:10]}"
    told = (*state.notes, _base_line(state))
    if not state.merged:
        return Line("Branch", f"nothing was merged onto {base}", told)
    merges = plural(len(state.merged), "merge")
    return Line("Branch", f"{integration_branch(state)}: {merges} on {base}", told)


def _base_line(state: RunState) -> str:
    base = state.base_branch or "the base"
    if state.base_moved_to is not None:
        return f"{base} has moved to {state.base_moved_to[:10]}, which these merges do not hold yet"
    return f"{base} itself has not moved"


def _more(state: RunState) -> str:
    """The option that lets a run go on whose budget is used up."""
    if state.spent_usd >= state.settings.max_cost:
        return f"--max-cost {2 * state.settings.max_cost:g}"
    return f"--max-tokens {2 * (state.settings.max_tokens or 0)}"


def _next(state: RunState, plan: str) -> Line:
    branch = integration_branch(state)
    match state.ended:
        case RunEnd.COMPLETED:
            base = state.base_branch or state.base[:10]
            return Line("Next", f"git log --graph {base}..{branch}", (f"git merge {branch}",))
        case RunEnd.FAILED:
            return Line("Next", f"windlass log {plan}", (f"windlass run {plan} --restart",))
        case RunEnd.ABANDONED:
            return Line("Next", f"windlass run {plan}")
        case RunEnd.NEEDS_HUMAN if state.red_base and not state.merged:
            return Line(
                "Next",
                f"windlass resume {plan} --red-base go",
                ("or mend the base, then: " + f"windlass run {plan} --restart", state.reason),
            )
        case RunEnd.LIMIT:
            more = f" {_more(state)}" if used_up(state) is not None else ""
            return Line("Next", f"windlass resume {plan}{more}", (state.reason,))
        case _:
            return Line("Next", f"windlass resume {plan}", (state.reason,) if state.reason else ())
