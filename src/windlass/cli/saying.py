"""What a person says to a task: into a live run's inbox, or into a stopped one's journal."""

import click

from windlass.cli.finding import find_task
from windlass.cli.wiring import Project, newest, now
from windlass.errors import BadInput, Busy
from windlass.ports import Message
from windlass.scheduler.people import spoken
from windlass.state import RunState
from windlass.views.outcome import task_statuses


def say(project: Project, typed: str, command: str, text: str = "") -> int:
    """Pass it on, or record it; refuse what the task has no use for."""
    state, task_id = find_task(project, typed)
    message = Message(command=command, task=task_id, text=text)
    _refuse_useless(message, state)
    plan_id = state.plan.id
    if project.live_pid(plan_id) is None:
        try:
            return _record(project, plan_id, message)
        except Busy:  # it came to life between the two looks
            pass
    project.send(plan_id, message)
    click.echo(f"Told the run of {plan_id}.")
    return 0


def _record(project: Project, plan_id: str, message: Message) -> int:
    with project.holding(plan_id) as journal:
        state = newest(list(journal.read()))
        fact = spoken(message, state, now()) if state is not None else None
        if fact is None:
            raise BadInput(f"task {message.task!r} does not wait for that any more")
        journal.append([fact], expected=journal.last)
    click.echo(f"Recorded. Go on with: windlass resume {plan_id}")
    return 0


def _refuse_useless(message: Message, state: RunState) -> None:
    if spoken(message, state, now()) is None:
        status = task_statuses(state)[message.task]
        raise BadInput(
            f"task {message.task!r} does not wait for that: it is {status}",
            hint="`windlass status` shows what waits for you",
        )
