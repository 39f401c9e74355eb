"""What a person may choose for a run that is not finished, each with what is said to the run.

The first is what most people would want.
"""

from msgspec import Struct

from windlass.events.model import RunEnd
from windlass.plan.names import some
from windlass.state import RunState
from windlass.views.outcome import run_status
from windlass.views.steps import resuming
from windlass.views.tree import failed_stage, position, stage_name, tree, unverified_stage
from windlass.views.words import plural


class Choice(Struct, frozen=True, kw_only=True):
    """One way to go on, or not to."""

    name: str
    """As it is typed, and as the option is called."""
    text: str
    words: tuple[tuple[str, str], ...] = ()
    """What is said first: a command, and the task or stage it is for."""


_NAMED = 5
"""How many tasks a choice names."""

RESTART = Choice(name="restart", text="leave it as it is, pinned, and begin a new run")
ABORT = Choice(name="abort", text="give the run up; what was done stays pinned")


def choices(state: RunState) -> tuple[Choice, ...]:
    """How the run may go on, the usual way first."""
    found = [_plain(state)]
    if given_up := state.index.abandoned:
        those, turns = some(given_up, _NAMED), state.settings.max_turns
        again = Choice(
            name="retry",
            text=f"give {those} another {turns} turns, and go on",
            words=tuple(("retry", id_) for id_ in given_up),
        )
        # Where a run failed there is nothing that it could do without them.
        found.insert(0 if state.ended is RunEnd.FAILED else 1, again)
    if (stage := failed_stage(state)) is not None:
        text = f"do all of {stage_name(state, stage)} once more, and go on"
        found.append(Choice(name="retry-stage", text=text, words=(("retry", stage),)))
    if (stage := unverified_stage(state)) is not None:
        text = f"go on although {stage_name(state, stage)} did not verify"
        found.append(Choice(name="go-on", text=text, words=(("approve", stage),)))
    return tuple(found)


def unfinished(state: RunState) -> list[str]:
    """What there is to choose for: the run, how it stands, and why."""
    merged = f"{len(state.done)} of {plural(len(state.tasks), 'task')} merged"
    first = f"Run {state.run} of {state.plan.id} is {run_status(state)}: {merged}"
    return [first, "", "Progress:", *tree(state)]


def how_to_go_on(state: RunState, plan: str) -> str:
    """The commands for whoever cannot be asked, the usual one first; `plan` as they named it."""
    first, *_ = offered = choices(state)
    anew = f"`windlass run {plan} --restart` begins anew"
    if first.name == "resume":
        return f"go on with `{resuming(state, plan).command}`; {anew}"
    ways = [f"`windlass resume {plan} --{each.name}`" for each in offered if each.words]
    without = f"--yes goes on without {some(state.index.abandoned, _NAMED)}"
    return f"say how: {' or '.join(ways)}; {without}; {anew}"


def _plain(state: RunState) -> Choice:
    stage = unverified_stage(state)
    if stage is not None:
        text = f"look at {stage_name(state, stage)} once more, and go on if it holds"
    elif state.index.abandoned:
        text = f"go on without {some(state.index.abandoned, _NAMED)}"
    else:
        text = f"go on at {position(state)}"
    return Choice(name="resume", text=text)
