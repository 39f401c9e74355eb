"""How a run comes to rest at a person's word: told to a live one, recorded for one that is not."""

import os
from pathlib import Path

import click
from msgspec import Struct

from windlass.cli.finding import plan_id_of
from windlass.cli.wiring import Project, WritableJournal, ended, newest, tell
from windlass.cli.wiring.landings import settle_landings
from windlass.errors import BadInput, Busy
from windlass.events.model import RunEnd
from windlass.ports import Message
from windlass.state import RunState, apply
from windlass.views.outcome import is_finished

_COMES_TO = {RunEnd.STOPPED: "stopped", RunEnd.PAUSED: "paused", RunEnd.ABORTED: "aborted"}


class Rest(Struct, frozen=True, kw_only=True):
    """One way to come to rest, in the words of its command."""

    message: str
    """What a live run is told."""
    end: RunEnd
    name: str
    """The command, as the reason that is recorded."""
    asked: str
    """What is said once a live run was told."""
    recorded: str
    """What is said once it is recorded."""
    any_unfinished: bool = False
    """Whether a run that rests already may still come to this end."""


def bring_to_rest(repo: Path, plan: str | None, rest: Rest) -> int:
    """Tell the live run, or record the end of one that has no process."""
    project = Project(repo.resolve(), dict(os.environ))
    click.echo(brought_to_rest(project, plan_id_of(project, plan), rest))
    return 0


def brought_to_rest(project: Project, plan_id: str, rest: Rest) -> str:
    """The same, with what became of it in a sentence."""
    if project.live_pid(plan_id) is not None:
        return _tell(project, plan_id, rest)
    _refuse(project.last_run(plan_id), plan_id, rest)
    try:
        with project.holding(plan_id) as journal:
            settle_landings(project, plan_id)
            before = newest(list(journal.read()))
            _refuse(before, plan_id, rest)
            if before is not None:
                record_end(project, journal, before, rest)
    except Busy:  # it came to life between the two looks
        return _tell(project, plan_id, rest)
    return f"{_was(before)} of {plan_id}: {rest.recorded}"


def record_end(
    project: Project, journal: WritableJournal, before: RunState, rest: Rest
) -> RunState:
    """Record it under the lock, and let the state files say so."""
    end = ended(rest.end, f"{_COMES_TO[rest.end]} by windlass {rest.name}")
    state = apply(before, journal.append([end], expected=journal.last)[-1].event)
    tell(project, state, journal.last, lambda text: click.echo(text, err=True))
    return state


def _was(before: RunState | None) -> str:
    died = before is not None and before.ended is None
    return "The run that had died" if died else "The run"


def _refuse(state: RunState | None, plan_id: str, rest: Rest) -> None:
    resting = rest.any_unfinished and state is not None and not is_finished(state)
    if not resting and (state is None or state.ended is not None):
        raise BadInput(f"no run of {plan_id!r} is going on", hint="`windlass status`")


def _tell(project: Project, plan_id: str, rest: Rest) -> str:
    project.send(plan_id, Message(command=rest.message))
    return f"Asked the run of {plan_id} to {rest.asked}"
