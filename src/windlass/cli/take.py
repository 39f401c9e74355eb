"""`windlass take TASK`."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import click

from windlass.cli.finding import find_task, last_run
from windlass.cli.hauling import forget_secrets
from windlass.cli.options import repo_option
from windlass.cli.saying import record, send_or_record
from windlass.cli.wiring import Project, World, WritableJournal
from windlass.cli.wiring.facts import refuse_short_journal
from windlass.errors import BadInput, Unanswered
from windlass.ports import Message
from windlass.state import Phase, RunState, TaskState
from windlass.views.outcome import task_statuses

_LOOK_SECONDS = 0.1
_ANSWER_SECONDS = 30.0
"""How long a live run may take to look into its inbox."""
_SETUP_SECONDS = 1800.0
"""How long the project's setup may take."""


@click.command("take", short_help="Work on a task yourself, in its workspace")
@click.argument("task")
@repo_option
def command(task: str, repo: Path) -> int:
    """Work on TASK yourself, in a Player's place.

    Prints the folder of its workspace, with all that was done for it so far. Edit there, commit as
    you like, and hand it back with `windlass give`: it is then checked, reviewed and merged like a
    Player's work, with your commits as you made them. What an agent is at work on must come to its
    end first, or be stopped. TASK may be written PLAN:TASK.

    \b
    cd "$(windlass take 1.2)"
    """  # noqa: D301
    project = Project(repo.resolve(), dict(os.environ))
    state, task_id = find_task(project, task)
    message = Message(command="take", task=task_id, text=project.person())
    if state.tasks[task_id].phase is Phase.TAKEN and not state.given_up:
        workspace = _again(project, state, message)
    elif (sent := send_or_record(project, state, message, _take)) is None:
        workspace = _lent(project, state.plan.id, task_id)
    else:
        workspace = _awaited(project, state.plan.id, message, sent)
    _tell(project, state.plan.id, task_id, workspace)
    return 0


def _take(project: Project, journal: WritableJournal, before: RunState, message: Message) -> None:
    """Record it, then make the workspace; what is cut short between is made by the next `take`."""
    refuse_short_journal(project, before.plan.id, journal.last, before.run)

    def take() -> TaskState:
        return record(project, journal, before, message).tasks[message.task]

    _lend(project, journal, before, take)


def _lend(
    project: Project, journal: WritableJournal, before: RunState, take: Callable[[], TaskState]
) -> None:
    world = World(project, before.plan.id, before.run, before.settings, journal)
    forget_secrets()
    anyio.run(world.lend, before, take)


def _again(project: Project, state: RunState, message: Message) -> Path:
    """Somebody has it: here it is; made now, where whoever recorded that was killed right after."""
    plan_id, attempt = state.plan.id, state.tasks[message.task].last
    click.echo(f"{message.task} is with {attempt.by} already.", err=True)
    if project.live_pid(plan_id) is not None:
        return _ready(project, state, message.task)
    workspace = project.lent(plan_id, state.run, message.task, attempt.n)
    if workspace is None:
        with project.holding(plan_id) as journal:
            _lend(project, journal, state, lambda: state.tasks[message.task])
        workspace = _lent(project, plan_id, message.task)
    return workspace


def _lent(project: Project, plan_id: str, task_id: str) -> Path:
    state = last_run(project, plan_id)
    workspace = project.lent(plan_id, state.run, task_id, state.tasks[task_id].last.n)
    if workspace is None:
        raise BadInput(f"the workspace of {task_id} is not there", hint="try it once more")
    return workspace


def _awaited(project: Project, plan_id: str, message: Message, sent: Path) -> Path:
    """The workspace, once the live run has let the task go and prepared it."""
    deadline = time.monotonic() + _ANSWER_SECONDS
    while sent.exists():
        if time.monotonic() > deadline or project.live_pid(plan_id) is None:
            sent.unlink(missing_ok=True)
            raise Unanswered(f"the run of {plan_id} did not answer", hint="try it once more")
        time.sleep(_LOOK_SECONDS)
    state = last_run(project, plan_id)
    task = state.tasks[message.task]
    if task.phase is not Phase.TAKEN:
        status = task_statuses(state)[message.task]
        raise BadInput(
            f"task {message.task!r} was not taken: it is {status} by now",
            hint="wait for its turn to end, or `windlass stop` first",
        )
    return _ready(project, state, message.task)


def _ready(project: Project, state: RunState, task_id: str) -> Path:
    """The workspace, once the live run has prepared it."""
    plan_id, n = state.plan.id, state.tasks[task_id].last.n
    deadline = time.monotonic() + _SETUP_SECONDS
    while (there := project.lent(plan_id, state.run, task_id, n)) is None:
        if time.monotonic() > deadline or project.live_pid(plan_id) is None:
            raise Unanswered(
                f"the run of {plan_id} has not prepared the workspace",
                hint=f"`windlass stop {plan_id}`, then `windlass take {plan_id}:{task_id}`",
            )
        time.sleep(_LOOK_SECONDS)
    return there


def _tell(project: Project, plan_id: str, task_id: str, workspace: Path) -> None:
    """The folder for programs, the rest for people."""
    click.echo(str(workspace))
    told = f"""{task_id} is yours. Work in that folder, and commit there as you like. Then:
  windlass give {plan_id}:{task_id}            hand it back, to be checked, reviewed and merged
  windlass reset {plan_id}:{task_id}           have it begin anew instead"""
    if project.live_pid(plan_id) is None:
        told += f"\nand go on with: windlass resume {plan_id}"
    click.echo(told, err=True)
