"""What a person says to a task or a stage: into a live run's inbox, or a stopped one's journal."""

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from windlass.app.plans import find_task
from windlass.app.wiring import Project, ended, now, taken_over, tell
from windlass.core.engine import note
from windlass.core.events.model import Event, RunEnd
from windlass.core.exchange import Message
from windlass.core.scheduler.people import spoken
from windlass.core.state import RunState
from windlass.core.state.transitions import UNDER_WAY
from windlass.errors import BadInput, Busy
from windlass.runner import Session
from windlass.views.steps import refusal


def say(project: Project, typed: str, command: str, text: str = "", *, stages: bool = False) -> str:
    """Pass it on, or record it, and return what became of it; refuse what nothing has a use for."""
    state, subject = find_task(project, typed, stages=stages)
    return passed_on(project, state, Message(command=command, task=subject, text=text))


def answer(project: Project, task: str, text: str) -> str:
    """Answer what a task asks; every later agent of the task is told."""
    return say(project, task, "answer", text)


def retry(project: Project, subject: str) -> str:
    """Retry an abandoned task, redo one whose text has changed, or redo a stage."""
    return say(project, subject, "retry", stages=True)


def reset(project: Project, task: str, *, undo: bool = False) -> str:
    """Start a task again from the tip, or take that back."""
    return say(project, task, "reset", "undo" if undo else "")


def give(project: Project, task: str, summary: str = "") -> str:
    """Hand back a task that a person had taken."""
    return say(project, task, "give", summary)


def passed_on(project: Project, state: RunState, message: Message) -> str:
    """What became of it, in a sentence."""
    plan_id = state.plan.id
    if send_or_record(project, state, message, record) is None:
        return f"Recorded. Go on with: windlass resume {plan_id}"
    return f"Told the run of {plan_id}."


Words = Callable[[Message, RunState], tuple[Event, ...]]
Record = Callable[[Project, Session, Message], object]
"""What is done with words for a run at rest, under its lock."""


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
    if project.journals.live_pid(plan_id) is None:
        refuse_useless(message, state, (words or words_for)(message, state))
        try:
            with project.journals.session(plan_id) as session:
                do(project, session, message)
                return None
        except Busy:  # it came to life between the two looks
            pass
    refuse_useless(message, state, spoken(message, state, now()))
    return project.journals.send(plan_id, replace(message, run=state.run))


def record(project: Project, session: Session, message: Message) -> RunState:
    """Record it under the lock, and let the state files say so."""
    facts = words_for(message, session.state)
    refuse_useless(message, session.state, facts)
    return record_facts(project, session, facts)


def record_facts(project: Project, session: Session, facts: tuple[Event, ...]) -> RunState:
    """Record these under the lock, and let the state files say so."""
    state = session.note(*facts)
    tell(project, state, session.seq, project.notice)
    return state


def words_for(message: Message, state: RunState) -> tuple[Event, ...]:
    """The facts that it is for a run at rest.

    Where its last process left the task in the middle of something, the run is taken over first,
    as a resume would, and laid to rest again.
    """
    if heard := spoken(message, state, now()):
        return heard
    task = state.tasks.get(message.task)
    if task is None or task.phase not in UNDER_WAY or state.given_up:
        return ()
    over = taken_over(state)
    heard = spoken(message, note(state, (over,)).states[-1], now())
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
