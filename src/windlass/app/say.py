"""Commands to a task or a stage: sent to a live run, or recorded in the journal of another."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from windlass.app.consent import agree
from windlass.app.person import Person
from windlass.app.plans import find_task, last_run, plan_now, task_here
from windlass.app.wiring import Project, ended, now, resumed_unchanged, write_state_files
from windlass.core.engine import note
from windlass.core.events.model import Event, RunEnd
from windlass.core.exchange import Message
from windlass.core.plan import Plan
from windlass.core.scheduler.late_edits import newly_stale
from windlass.core.scheduler.people import UNDO, spoken
from windlass.core.state import RunState
from windlass.core.state.transitions import UNDER_WAY
from windlass.errors import BadInput, Busy
from windlass.runner import Session
from windlass.views.consequences import merged_in, redoing
from windlass.views.steps import refusal


class Delivery(Struct, frozen=True, kw_only=True):
    """What became of a command to a run."""

    plan: str
    live: bool
    """Whether a live run received it; else it is recorded, and a resume acts on it."""
    message: str
    """The same in a sentence or two, for a person."""


def say(
    project: Project, typed: str, command: str, text: str = "", *, stages: bool = False
) -> Delivery:
    """Send or record a command. Raise if it has no effect."""
    state, subject = find_task(project, typed, stages=stages)
    return deliver(project, state, Message(command=command, task=subject, text=text))


def answer(project: Project, task: str, text: str) -> Delivery:
    """Answer a task's question; every later agent of the task reads the answer."""
    if not text.strip():
        raise BadInput("the answer is empty", hint='run `windlass answer TASK "…"`')
    return say(project, task, "answer", text)


def retry(
    project: Project,
    subject: str,
    *,
    undo: bool = False,
    confirmed: bool = False,
    person: Person | None = None,
) -> Delivery:
    """Retry an abandoned task, redo a merged one or a stage; or undo that until it is merged.

    To redo a merged task whose text has not changed must be confirmed.
    """
    if undo:
        return say(project, subject, "retry", UNDO, stages=True)
    state, name = find_task(project, subject, stages=True)
    message = Message(command="retry", task=name)
    if not state.given_up:
        plan = plan_now(project, state.plan)
        edited = newly_stale(state, plan) if isinstance(plan, Plan) else ()
        if merged := merged_in(state, name, edited):
            agree(redoing(state, name, merged), confirmed=confirmed, person=person)
    return deliver(project, state, message)


def accept_base(project: Project, plan: str) -> Delivery:
    """Let a live run continue that waits because its base does not pass."""
    state = last_run(project, plan)
    if project.journals.live_pid(plan) is None:
        cure = f"windlass resume {plan} --red-base go"
        raise BadInput(f"no run of {plan!r} waits for that", hint=cure)
    return deliver(project, state, Message(command="accept_base"))


def reset(project: Project, task: str, *, undo: bool = False) -> Delivery:
    """Start a task again from the tip, or undo that."""
    return say(project, task, "reset", UNDO if undo else "")


def give(project: Project, task: str | None = None, summary: str = "") -> Delivery:
    """Hand back a task that a person took; without a name, the one whose workspace this is."""
    return say(project, task or task_here(project, "give"), "give", summary)


def deliver(project: Project, state: RunState, message: Message) -> Delivery:
    """Send or record the message, in the name of the person whom git knows."""
    plan_id, message = state.plan.id, replace(message, by=project.git.person())
    if send_or_record(project, state, message, record) is None:
        return recorded(plan_id)
    return sent(plan_id)


def recorded(plan_id: str, *before: str) -> Delivery:
    """The command waits in the journal; `before` are sentences to put first."""
    lines = (*before, f"Recorded. To continue: windlass resume {plan_id}")
    return Delivery(plan=plan_id, live=False, message="\n".join(lines))


def sent(plan_id: str) -> Delivery:
    """A live run has the command in its inbox."""
    return Delivery(plan=plan_id, live=True, message=f"Sent to the run of {plan_id}.")


ToFacts = Callable[[Message, RunState], tuple[Event, ...]]
Record = Callable[[Project, Session, Message], object]
"""Records a message in a run that is not live, under its lock."""


def facts_for(message: Message, state: RunState) -> tuple[Event, ...]:
    """The facts that a message becomes in a run that is not live.

    If its last process died in the middle of the task's turn, the run is taken over first, as a
    resume would, and stopped again afterwards.
    """
    if facts := spoken(message, state, now()):
        return facts
    task = state.tasks.get(message.task)
    if task is None or task.phase not in UNDER_WAY or state.given_up:
        return ()
    over = resumed_unchanged(state)
    facts = spoken(message, note(state, (over,)).states[-1], now())
    stop = ended(RunEnd.STOPPED, f"for windlass {message.command}")
    return (over, *facts, stop) if facts else ()


def send_or_record(
    project: Project,
    state: RunState,
    message: Message,
    do: Record,
    *,
    facts_of: ToFacts = facts_for,
) -> Path | None:
    """Send the message to a live run and return its path in the inbox; else record it with `do`.

    `facts_of` gives the facts that the message becomes in a run that is not live.
    """
    plan_id = state.plan.id
    if project.journals.live_pid(plan_id) is None:
        refuse_useless(message, state, facts_of(message, state))
        try:
            with project.journals.session(plan_id) as session:
                do(project, session, message)
                return None
        except Busy:  # a process has resumed it since we looked
            pass
    refuse_useless(message, state, spoken(message, state, now()))
    return project.journals.send(plan_id, replace(message, run=state.run))


def record(project: Project, session: Session, message: Message) -> RunState:
    """Record the message under the lock, and update the state files."""
    facts = facts_for(message, session.state)
    refuse_useless(message, session.state, facts)
    return record_facts(project, session, facts)


def record_facts(project: Project, session: Session, facts: tuple[Event, ...]) -> RunState:
    """Record the facts under the lock, and update the state files."""
    state = session.note(*facts)
    write_state_files(project, state, session.seq, project.notice)
    return state


def refuse_useless(message: Message, state: RunState, facts: tuple[Event, ...]) -> None:
    """Raise if the message has no effect on the run, with the cure."""
    if facts:
        return
    if state.given_up:
        raise BadInput(
            f"run {state.run} of {state.plan.id!r} was {state.ended}, and cannot be continued",
            about=state.plan.id,
            hint=f"start a new one: windlass run {state.plan.id}",
        )
    if message.task not in state.tasks:
        raise BadInput(
            f"stage {message.task!r} does not wait for that",
            about=f"{state.plan.id}:{message.task}",
            hint="`windlass status` shows its state",
        )
    undo = message.command in {"reset", "retry"} and message.text == UNDO
    why, cure = refusal(message.command, state, message.task, undo=undo)
    raise BadInput(why, about=f"{state.plan.id}:{message.task}", hint=cure)
