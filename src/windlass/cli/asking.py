"""What to do with a run that is not finished: asked where somebody is there, else by options."""

import sys
from collections.abc import Sequence
from typing import Any

import click
from msgspec import Struct

from windlass.cli.saying import record
from windlass.cli.wiring import Project, WritableJournal
from windlass.errors import BadInput, Unanswered
from windlass.plan import Plan
from windlass.ports import Message
from windlass.state import RunState
from windlass.views.choices import ABORT, RESTART, Choice, choices, how_to_go_on, unfinished
from windlass.views.outcome import run_status
from windlass.views.words import one_line


class Answer(Struct, frozen=True):
    """What was chosen, on a terminal or by an option."""

    name: str
    words: tuple[tuple[str, str], ...] = ()


def decided(
    before: RunState, *, choice: str | None, options: dict[str, Any], typed: str, resuming: bool
) -> Answer:
    """The person's choice for the run; `typed` is how they named its plan.

    `resuming` is `windlass resume`, which asks only where there is more than one way to go on.
    """
    offered = choices(before)
    mend: str | None = options.get("mend")
    if mend is not None and choice == RESTART.name:
        raise BadInput(f"--{mend} goes on with the run, and --restart does not", hint="take one")
    resets = tuple(("reset", id_) for id_ in options.get("reset_tasks") or ())
    if resets:
        return _anew(before, choice, mend, resets)
    wanted = mend or (choice if choice != "resume" else None)
    if wanted is not None:
        return _optional(before, offered, wanted)
    if options.get("yes"):
        return Answer("resume")
    if not _is_attended():
        # To go on alone where that can come to nothing would only look like an answer.
        if choice == "resume" and offered[0].name == "resume":
            return Answer("resume")
        raise Unanswered(unfinished(before)[0], hint=how_to_go_on(before, typed))
    if choice == "resume" and len(offered) == 1:
        return Answer("resume")
    return _asked(before, offered if resuming else (*offered, RESTART))


def asked_for(plan: Plan, options: dict[str, Any]) -> tuple[str, ...]:
    """The tasks that `--task` and `--stage` name; none where all of the plan is wanted."""
    tasks: tuple[str, ...] = options.get("only_tasks") or ()
    stage: str | None = options.get("only_stage")
    known, cure = {task.id: task.stage for task in plan.tasks}, "`windlass plan` lists what it has"
    for id_ in tasks:
        if id_ not in known:
            raise BadInput(f"plan {plan.id!r} has no task {id_!r}", hint=cure)
    inside = [id_ for id_, name in known.items() if stage is not None and name == stage]
    if stage is not None and not inside:
        raise BadInput(f"plan {plan.id!r} has no stage {stage!r}", hint=cure)
    return tuple(dict.fromkeys((*tasks, *inside)))


def said(
    project: Project,
    journal: WritableJournal,
    before: RunState,
    words: Sequence[tuple[str, str]],
) -> RunState:
    """Record what the choice says to tasks and stages; the state once it is said."""
    for command, subject in words:
        before = record(project, journal, before, Message(command=command, task=subject))
    return before


def _is_attended() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _anew(
    before: RunState, choice: str | None, mend: str | None, resets: tuple[tuple[str, str], ...]
) -> Answer:
    """Go on with tasks that begin anew; each of them must be one of the run's."""
    if choice == RESTART.name or mend is not None:
        other = mend or RESTART.name
        raise BadInput(f"--reset-task and --{other} are two ways to go on", hint="take one")
    for _, task_id in resets:
        if task_id not in before.tasks:
            raise BadInput(f"the run has no task {task_id!r}", hint="`windlass status`")
    return Answer("resume", resets)


def _optional(before: RunState, offered: Sequence[Choice], wanted: str) -> Answer:
    if wanted == RESTART.name:
        return Answer(wanted)
    for each in offered:
        if each.name == wanted:
            return Answer(each.name, each.words)
    raise BadInput(
        f"--{wanted} does not fit: run {before.run} is {run_status(before)}",
        hint=f"here there is: {', '.join(each.name for each in offered)}",
    )


def _asked(before: RunState, offered: Sequence[Choice]) -> Answer:
    every = (*offered, ABORT)
    wide = max(len(each.name) for each in every)
    lines = [*unfinished(before), ""]
    lines += [f"  {each.name:<{wide}}  {one_line(each.text, 200)}" for each in every]
    click.echo("\n".join(lines), err=True)
    names = click.Choice([each.name for each in every])
    chosen = click.prompt("What now?", type=names, default=every[0].name, err=True)
    return next(Answer(each.name, each.words) for each in every if each.name == chosen)
