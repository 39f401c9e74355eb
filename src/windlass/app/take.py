"""`take`: a person works on a task in its workspace, in place of a Player."""

import time
from collections.abc import Callable
from pathlib import Path

import anyio
from msgspec import Struct

from windlass.app.plans import find_task, last_run
from windlass.app.say import record, send_or_record
from windlass.app.wiring import Project, World
from windlass.app.wiring.facts import refuse_short_journal
from windlass.core.exchange import Message
from windlass.core.state import Phase, RunState, TaskState
from windlass.errors import BadInput, Unanswered
from windlass.runner import Session
from windlass.views.outcome import task_statuses

_LOOK_SECONDS = 0.1
_ANSWER_SECONDS = 30.0
"""How long a live run may take to read its inbox."""
_SETUP_SECONDS = 1800.0
"""How long the project's setup may take."""


class Taken(Struct, frozen=True, kw_only=True):
    """A task that a person has taken."""

    plan: str
    task: str
    workspace: Path


def take(project: Project, typed: str) -> Taken:
    """Take the task, written TASK or PLAN:TASK, and return its workspace once it is ready.

    If an agent works on the task, its turn must end or the run be stopped first.
    """
    state, task_id = find_task(project, typed)
    message = Message(command="take", task=task_id, text=project.git.person())
    if state.tasks[task_id].phase is Phase.TAKEN and not state.given_up:
        workspace = _again(project, state, message)
    elif (sent := send_or_record(project, state, message, _take)) is None:
        workspace = _lent(project, state.plan.id, task_id)
    else:
        workspace = _awaited(project, state.plan.id, message, sent)
    return Taken(plan=state.plan.id, task=task_id, workspace=workspace)


def _take(project: Project, session: Session, message: Message) -> None:
    """Record it, then make the workspace; after a kill in between, the next `take` makes it."""
    refuse_short_journal(project, session.state.plan.id, session)

    def recorded() -> TaskState:
        return record(project, session, message).tasks[message.task]

    _lend(project, session, recorded)


def _lend(project: Project, session: Session, recorded: Callable[[], TaskState]) -> None:
    before = session.state
    world = World(project, before.plan.id, before.run, before.settings, session)
    anyio.run(world.make_taken_workspace, before, recorded)


def _again(project: Project, state: RunState, message: Message) -> Path:
    """The workspace of a taken task; made now if the first `take` was killed before that."""
    plan_id, attempt = state.plan.id, state.tasks[message.task].last
    project.notice(f"{attempt.by} has taken {message.task} already.")
    if project.journals.live_pid(plan_id) is not None:
        return _ready(project, state, message.task)
    workspace = project.ready_workspace(plan_id, state.run, message.task, attempt.n)
    if workspace is None:
        with project.journals.session(plan_id) as session:
            _lend(project, session, lambda: session.state.tasks[message.task])
        workspace = _lent(project, plan_id, message.task)
    return workspace


def _lent(project: Project, plan_id: str, task_id: str) -> Path:
    state = last_run(project, plan_id)
    workspace = project.ready_workspace(plan_id, state.run, task_id, state.tasks[task_id].last.n)
    if workspace is None:
        raise BadInput(f"the workspace of {task_id} is missing", hint="try again")
    return workspace


def _awaited(project: Project, plan_id: str, message: Message, sent: Path) -> Path:
    """The workspace, once the live run has handed over the task and prepared it."""
    deadline = time.monotonic() + _ANSWER_SECONDS
    while sent.exists():
        if time.monotonic() > deadline or project.journals.live_pid(plan_id) is None:
            sent.unlink(missing_ok=True)
            raise Unanswered(f"the run of {plan_id} did not answer", hint="try again")
        time.sleep(_LOOK_SECONDS)
    state = last_run(project, plan_id)
    task = state.tasks[message.task]
    if task.phase is not Phase.TAKEN:
        status = task_statuses(state)[message.task]
        raise BadInput(
            f"task {message.task!r} was not taken: it is {status}",
            hint="wait for its turn to end, or `windlass stop` first",
        )
    return _ready(project, state, message.task)


def _ready(project: Project, state: RunState, task_id: str) -> Path:
    """The workspace, once the live run has prepared it."""
    plan_id, n = state.plan.id, state.tasks[task_id].last.n
    deadline = time.monotonic() + _SETUP_SECONDS
    while (there := project.ready_workspace(plan_id, state.run, task_id, n)) is None:
        if time.monotonic() > deadline or project.journals.live_pid(plan_id) is None:
            raise Unanswered(
                f"the run of {plan_id} has not prepared the workspace",
                hint=f"`windlass stop {plan_id}`, then `windlass take {plan_id}:{task_id}`",
            )
        time.sleep(_LOOK_SECONDS)
    return there
