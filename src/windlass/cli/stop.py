"""`windlass stop [PLAN]`."""

import os
from pathlib import Path

import click

from windlass.cli.finding import plan_id_of
from windlass.cli.options import repo_option
from windlass.cli.wiring import Project, ended, newest
from windlass.errors import BadInput, Busy
from windlass.events.model import RunEnd
from windlass.ports import Message
from windlass.state import RunState


@click.command("stop", short_help="Stop a live run; it can be resumed")
@click.argument("plan", required=False)
@repo_option
def command(plan: str | None, repo: Path) -> int:
    """Stop the run of PLAN: agents are ended, what they did so far is kept, resume goes on.

    Of a run whose process is gone already, it records that it was stopped.
    """
    project = Project(repo.resolve(), dict(os.environ))
    plan_id = plan_id_of(project, plan)
    if project.live_pid(plan_id) is not None:
        return _tell(project, plan_id)
    _refuse_ended(newest(project.entries(plan_id)), plan_id)
    try:
        with project.holding(plan_id) as journal:
            _refuse_ended(newest(list(journal.read())), plan_id)
            journal.append([ended(RunEnd.STOPPED, "windlass stop")], expected=journal.last)
    except Busy:  # it came to life between the two looks
        return _tell(project, plan_id)
    click.echo(f"The run of {plan_id} had died; it is recorded as stopped.")
    return 0


def _refuse_ended(state: RunState | None, plan_id: str) -> None:
    if state is None or state.ended is not None:
        raise BadInput(f"no run of {plan_id!r} is going on", hint="`windlass status`")


def _tell(project: Project, plan_id: str) -> int:
    project.send(plan_id, Message(command="stop"))
    click.echo(f"Asked the run of {plan_id} to stop; `windlass resume` goes on with it.")
    return 0
