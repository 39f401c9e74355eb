"""What to do with an unfinished run: as the options say, else as a person answers."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from windlass.app.consent import agree
from windlass.app.person import Person
from windlass.app.say import record
from windlass.app.wiring import Project
from windlass.core.exchange import Message
from windlass.core.nearest import did_you_mean
from windlass.core.plan import Plan
from windlass.core.state import RunState
from windlass.errors import BadInput, Unanswered
from windlass.runner import Session
from windlass.views.consequences import restarting
from windlass.views.outcome import run_status
from windlass.views.steps import (
    ABORT,
    RESTART,
    Choice,
    choices,
    how_to_go_on,
    unfinished,
    why_it_ended,
)


class Wanted(Struct, frozen=True, kw_only=True):
    """What a request says about an unfinished run."""

    typed: str
    """How the plan was named."""
    choice: Literal["resume", "restart"] | None = None
    mend: Literal["retry", "retry-stage", "go-on"] | None = None
    reset_tasks: tuple[str, ...] = ()
    yes: bool = False
    resuming: bool = False
    """Whether it is `resume`, which asks only if there is more than one way to continue."""


class Answer(Struct, frozen=True):
    """The choice, made by an option or at a terminal."""

    name: str
    words: tuple[tuple[str, str], ...] = ()


def decided(before: RunState, wanted: Wanted, person: Person | None) -> Answer:
    """What to do with the run: as the request says, else as the person chooses."""
    offered = choices(before)
    if wanted.mend is not None and wanted.choice == RESTART.name:
        raise BadInput(f"--{wanted.mend} and --restart exclude each other", hint="use one")
    if wanted.reset_tasks:
        return _reset(before, wanted)
    if wanted.choice == RESTART.name:
        act = restarting(before, wanted.typed)
        agree(act, confirmed=wanted.yes, person=person, by_name=True)
        return Answer(RESTART.name)
    if wanted.mend is not None:
        return _by_option(before, offered, wanted.mend)
    return Answer("resume") if wanted.yes else _chosen(before, offered, wanted, person)


def _chosen(
    before: RunState, offered: Sequence[Choice], wanted: Wanted, person: Person | None
) -> Answer:
    """As the person chooses; without one, a plain resume if that can help."""
    if person is None:
        # A run that a plain resume cannot help would only end the same way again.
        if wanted.choice == "resume" and offered[0].name == "resume":
            return Answer("resume")
        why = f" ({reason})" if (reason := why_it_ended(before)) else ""
        raise Unanswered(f"{unfinished(before)[0]}{why}", hint=how_to_go_on(before, wanted.typed))
    if wanted.choice == "resume" and len(offered) == 1:
        return Answer("resume")
    more = (ABORT,) if wanted.resuming else (RESTART, ABORT)
    chosen = person.choose(before, (*offered, *more))
    return Answer(chosen.name, chosen.words)


def asked_for(plan: Plan, tasks: tuple[str, ...], stage: str | None) -> tuple[str, ...]:
    """The tasks that the request names; empty for the whole plan."""
    known, cure = {task.id: task.stage for task in plan.tasks}, "`windlass plan` lists what it has"
    for id_ in tasks:
        if id_ not in known:
            raise BadInput(
                f"plan {plan.id!r} has no task {id_!r}", hint=did_you_mean(id_, known, cure)
            )
    inside = [id_ for id_, name in known.items() if stage is not None and name == stage]
    if stage is not None and not inside:
        stages = {name for name in known.values() if name is not None}
        raise BadInput(
            f"plan {plan.id!r} has no stage {stage!r}", hint=did_you_mean(stage, stages, cure)
        )
    return tuple(dict.fromkeys((*tasks, *inside)))


def record_commands(
    project: Project, session: Session, commands: Sequence[tuple[str, str]]
) -> RunState:
    """Record the commands to tasks and stages that a choice consists of; return the new state."""
    for command, subject in commands:
        record(project, session, Message(command=command, task=subject))
    return session.state


def _reset(before: RunState, wanted: Wanted) -> Answer:
    """Continue and start tasks again; each must be a task of the run."""
    if wanted.choice == RESTART.name or wanted.mend is not None:
        other = wanted.mend or RESTART.name
        raise BadInput(f"--reset-task and --{other} exclude each other", hint="use one")
    for task_id in wanted.reset_tasks:
        if task_id not in before.tasks:
            cure = did_you_mean(task_id, before.tasks, "`windlass status` lists them")
            raise BadInput(f"the run has no task {task_id!r}", hint=cure)
    return Answer("resume", tuple(("reset", task_id) for task_id in wanted.reset_tasks))


def _by_option(before: RunState, offered: Sequence[Choice], wanted: str) -> Answer:
    for each in offered:
        if each.name == wanted:
            return Answer(each.name, each.words)
    raise BadInput(
        f"--{wanted} does not fit: run {before.run} is {run_status(before)}",
        hint=f"use one of: {', '.join(each.name for each in offered)}",
    )
