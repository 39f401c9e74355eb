"""The commands that make sense now, each with what it does.

Law: what a person is told to do next is said here, for the end of a run, `status`, the report and
whoever asks by program; the usual way comes first.
"""

import shlex
from collections.abc import Sequence
from itertools import islice

from msgspec import Struct

from windlass.events.model import RunEnd
from windlass.state import Phase, RunState, TaskState
from windlass.state.budget import used_up
from windlass.views.progress import integration_branch
from windlass.views.tree import failed_stage, unverified_stage
from windlass.views.words import plural

_SOME_WORDS = 3
_BROAD = 36
"""Columns of the longest command beside which others are padded."""


class Ground(Struct, frozen=True, kw_only=True):
    """Where the branch stands now that the run began from; only git can say."""

    commit: str | None
    """None where the branch is gone."""
    holds_tip: bool = False
    """Whether all that was merged is in it."""
    has_remote: bool = False
    """Whether there is a place to push to."""


class Step(Struct, frozen=True):
    """A command, and what it does."""

    command: str
    does: str


def listed(steps: list[Step]) -> list[str]:
    """A line for each, what they do in one column."""
    broad = max((len(s.command) for s in steps if len(s.command) <= _BROAD), default=0)
    return [f"{step.command:<{broad}}  {step.does}" for step in steps]


def resuming(state: RunState, plan: str) -> Step:
    """Going on, with more of a budget that is used up."""
    if used_up(state) is None:
        return Step(f"windlass resume {plan}", "go on where it was")
    if state.spent_usd >= state.settings.max_cost:
        more = f"--max-cost {2 * state.settings.max_cost:g}"
    else:
        more = f"--max-tokens {2 * (state.settings.max_tokens or 0)}"
    return Step(f"windlass resume {plan} {more}", "go on with more")


def next_steps(state: RunState, *, plan: str, ground: Ground | None) -> list[Step]:
    """What to do now; `plan` is how to name the plan on the command line."""
    match state.ended:
        case RunEnd.COMPLETED:
            return _take_it(state, plan, ground) or [_clean(plan)]
        case RunEnd.FAILED:
            look = Step(f"windlass log {plan}", "see what happened")
            return [*_mend(state, plan), look, _anew(plan)]
        case RunEnd.ABORTED:
            again = Step(f"windlass run {plan}", "begin a new run")
            return [again, *_take_it(state, plan, ground), _clean(plan)]
        case RunEnd.ABANDONED:
            return [Step(f"windlass run {plan}", "begin a new run")]
        case RunEnd.NEEDS_HUMAN if state.red_base and not state.merged:
            go = Step(f"windlass resume {plan} --red-base go", "go on all the same")
            return [go, Step(_anew(plan).command, "once the base is mended")]
        case RunEnd.NEEDS_HUMAN:
            return _help(state, plan)
        case _:
            return _words(state, plan)


def _clean(plan: str) -> Step:
    return Step(f"windlass clean {plan}", "remove what it left")


def _anew(plan: str) -> Step:
    return Step(f"windlass run {plan} --restart", "begin anew")


def landed_at(state: RunState) -> str | None:
    """Where the base branch was moved to, if it was."""
    return state.landing.landed if state.landing is not None else None


def _take_it(state: RunState, plan: str, ground: Ground | None) -> list[Step]:
    """How the user's branch gets what was merged, unless it has it, or there is nothing."""
    branch = integration_branch(state)
    has_it = landed_at(state) is not None or (ground is not None and ground.holds_tip)
    if has_it or not state.merges:
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
    """The branch that the run began from, where it is gone."""
    return Step(f"git branch {shlex.quote(base)} {branch}", "make it again")


def _mend(state: RunState, plan: str) -> list[Step]:
    ways: list[Step] = []
    if given_up := state.index.abandoned:
        what = given_up[0] if len(given_up) == 1 else plural(len(given_up), "task")
        ways.append(Step(f"windlass resume {plan} --retry", f"reopen {what}, and go on"))
    if failed_stage(state) is not None:
        ways.append(Step(f"windlass resume {plan} --retry-stage", "do the stage once more"))
    return ways


def _help(state: RunState, plan: str) -> list[Step]:
    if state.landing is not None and state.landing.refused:
        return list(cure(state, plan).steps)
    if unverified_stage(state) is not None:
        return [
            Step(f"windlass resume {plan} --retry-stage", "do the stage once more"),
            Step(f"windlass resume {plan} --go-on", "go on all the same"),
            Step(f"windlass abort {plan}", "give it up"),
        ]
    return _words(state, plan)


def _words(state: RunState, plan: str) -> list[Step]:
    """What waits for a word is not helped by going on alone."""
    words = (word for task in state.live for word in ways_to_help(task, state))
    return [*islice(words, _SOME_WORDS), resuming(state, plan)]


def ways_to_help(task: TaskState, state: RunState) -> tuple[Step, ...]:
    """The commands that give a task what it waits for, if any do."""
    where = shlex.quote(f"{state.plan.id}:{task.id}")
    if task.phase is Phase.STALE:
        return (
            Step(f"windlass retry {where}", "do it again for the new text"),
            Step(f"windlass approve {where}", "accept what is merged for the new text"),
        )
    if task.phase is Phase.HELP_TO_START:
        return (Step(f"windlass approve {where}", "let it start"),)
    if task.phase is Phase.ASKED:
        return (Step(f'windlass answer {where} "…"', "answer it"),)
    if task.phase is Phase.TAKEN:
        return (Step(f"windlass give {where}", "hand it back"),)
    if task.phase is Phase.HELP_TO_PLAY and task.feedback is not None:
        return (Step(f'windlass answer {where} "…"', "say what helps"),)
    return ()


def how_to_settle(state: RunState, stale: Sequence[str]) -> str:
    """The three cures of stale tasks, in a sentence."""
    where = shlex.quote(f"{state.plan.id}:{stale[0]}")
    each = "" if len(stale) == 1 else " (and so for each)"
    return (
        f"`windlass retry {where}` does it again, `windlass approve {where}` accepts what is "
        f"merged{each}; or put the old text back into {state.plan.path}, or take the task out of "
        f"it; then `windlass resume {state.plan.id}`"
    )


class Cure(Struct, frozen=True, kw_only=True):
    """What lets a landing come about that was refused."""

    told: str = ""
    """In a sentence; empty where the refusal says it itself."""
    steps: tuple[Step, ...]


def cure(state: RunState, plan: str) -> Cure:
    """What a person can do about a landing that was refused; `plan` as they named it."""
    again = Step(f"windlass land {plan}", "try once more")
    anyway = Step(f"windlass land {plan} --yes", "land it all the same")
    if state.stale:
        steps = ways_to_help(state.tasks[state.stale[0]], state)
        return Cure(told=how_to_settle(state, state.stale), steps=(*steps, resuming(state, plan)))
    if (stage := unverified_stage(state)) is not None:
        where = shlex.quote(f"{state.plan.id}:{stage}")
        passed = Step(f"windlass approve {where}", "let the stage pass")
        retried = Step(f"windlass retry {where}", "do the stage once more")
        told = f"`{passed.command}` lets it pass, `{retried.command}` has it done once more"
        told = f"{told}; `{anyway.command}` lands it all the same"
        return Cure(told=told, steps=(passed, retried, anyway))
    branch, landing = integration_branch(state), state.landing
    merging = Step(f"git merge {branch}", "take it by hand")
    if state.base_branch is None:
        return Cure(steps=(merging,))
    if landing is not None and landing.relation == "gone":
        made = _made_again(state.base_branch, branch)
        told = f"`{made.command}` makes it again, with all of it; or take it into another:"
        return Cure(told=f"{told} `{merging.command}`", steps=(made, merging))
    if landing is not None and landing.rewound and not landing.anyway:
        return Cure(told=f"`{anyway.command}` lands it all the same", steps=(anyway,))
    if landing is not None and landing.conflicted:
        told = f"merge it by hand on {state.base_branch}: `{merging.command}`"
        return Cure(told=f"{told}, then `{again.command}`", steps=(merging, again))
    return Cure(steps=(again,))
