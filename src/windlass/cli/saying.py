"""What a person says to a task or a stage: into a live run's inbox, or a stopped one's journal."""

from collections.abc import Callable
from pathlib import Path

import click
from msgspec.structs import replace

from windlass.cli.finding import find_task
from windlass.cli.wiring import Project, WritableJournal, ended, newest, now, resumed, tell
from windlass.errors import BadInput, Busy
from windlass.events.model import Event, RunEnd
from windlass.ports import Message
from windlass.scheduler.people import spoken
from windlass.state import RunState, apply
from windlass.state.transitions import UNDER_WAY
from windlass.views.refusals import refusal


def say(project: Project, typed: str, command: str, text: str = "", *, stages: bool = False) -> int:
    """Pass it on, or record it; refuse what nothing has a use for."""
    state, subject = find_task(project, typed, stages=stages)
    click.echo(passed_on(project, state, Message(command=command, task=subject, text=text)))
    return 0


def passed_on(project: Project, state: RunState, message: Message) -> str:
    """What became of it, in a sentence."""
    plan_id = state.plan.id
    if send_or_record(project, state, message, record) is None:
        return f"Recorded. Go on with: windlass resume {plan_id}"
    return f"Told the run of {plan_id}."


Words = Callable[[Message, RunState], tuple[Event, ...]]
Record = Callable[[Project, WritableJournal, RunState, Message], object]
"""What is done with words for a run that nobody hauls, under its lock."""


def send_or_record(
    project: Project,
    state: RunState,
    message: Message,
    do: Record,
    *,
    words: Words | None = None,
) -> Path | None:
    """The message in a live run's inbox; None where there was no live run and it is recorded.

    `words` are the facts that it is for a run at rest, where they are not the usual ones.
    """
    plan_id = state.plan.id
    if project.live_pid(plan_id) is None:
        refuse_useless(message, state, (words or words_for)(message, state))
        try:
            with project.holding(plan_id) as journal:
                before = newest(list(journal.read())) or state
                do(project, journal, before, message)
                return None
        except Busy:  # it came to life between the two looks
            pass
    refuse_useless(message, state, spoken(message, state, now()))
    return project.send(plan_id, replace(message, run=state.run))


def record(
    project: Project, journal: WritableJournal, before: RunState, message: Message
) -> RunState:
    """Record it under the lock, and let the state files say so."""
    facts = words_for(message, before)
    refuse_useless(message, before, facts)
    return record_facts(project, journal, before, facts)


def record_facts(
    project: Project, journal: WritableJournal, before: RunState, facts: tuple[Event, ...]
) -> RunState:
    """Record these under the lock, and let the state files say so."""
    state = before
    for entry in journal.append(facts, expected=journal.last):
        state = apply(state, entry.event)
    tell(project, state, journal.last, lambda text: click.echo(text, err=True))
    return state


def words_for(message: Message, state: RunState) -> tuple[Event, ...]:
    """The facts that it is for a run that nobody hauls.

    Where its last process left the task in the middle of something, the run is taken over first,
    as a resume would, and laid to rest again.
    """
    if heard := spoken(message, state, now()):
        return heard
    task = state.tasks.get(message.task)
    if task is None or task.phase not in UNDER_WAY or state.given_up:
        return ()
    over = resumed(
        state.settings,
        state.sandbox,
        state.base_moved_to,
        metered=state.metered,
        coach_commands=state.coach_commands,
    )
    heard = spoken(message, apply(state, over), now())
    rest = ended(RunEnd.STOPPED, f"for windlass {message.command}")
    return (over, *heard, rest) if heard else ()


def refuse_useless(message: Message, state: RunState, heard: tuple[Event, ...]) -> None:
    """Raise where nothing has a use for what was said, with the cure."""
    if heard:
        return
    if state.given_up:
        raise BadInput(
            f"the run of {state.plan.id!r} was given up, and nothing that is said can wake it",
            hint=f"start another: windlass run {state.plan.id}",
        )
    if message.task not in state.tasks:
        raise BadInput(
            f"stage {message.task!r} does not wait for that",
            hint="`windlass status` shows how it stands",
        )
    undo = message.command == "reset" and message.text == "undo"
    said, cure = refusal(message.command, state, message.task, undo=undo)
    raise BadInput(said, hint=cure)
