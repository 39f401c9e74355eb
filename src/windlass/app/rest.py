"""`pause`, `stop` and `abort`: sent to a live run, recorded for one whose process has died."""

from msgspec import Struct
from msgspec.structs import replace

from windlass.app.consent import agree
from windlass.app.person import Person
from windlass.app.plans import plan_id_of
from windlass.app.say import Delivery
from windlass.app.wiring import Project, ended, write_state_files
from windlass.app.wiring.landings import settle_landings
from windlass.core.events.model import RunEnd
from windlass.core.exchange import Message
from windlass.core.state import RunState
from windlass.errors import BadInput, Busy
from windlass.runner import Session
from windlass.views.consequences import aborting
from windlass.views.outcome import is_finished


class Rest(Struct, frozen=True, kw_only=True):
    """One way to end a run, in the words of its command."""

    message: str
    """The command that a live run receives."""
    end: RunEnd
    reason: str
    """The reason that is recorded."""
    asked: str
    """The message after a live run was asked."""
    recorded: str
    """The message after the end was recorded."""
    any_unfinished: bool = False
    """Whether a run that is paused or stopped can still end this way."""


STOP = Rest(
    message="stop",
    end=RunEnd.STOPPED,
    reason="stopped by windlass stop",
    asked="stop; `windlass resume` continues it.",
    recorded="it is recorded as stopped.",
)

PAUSE = Rest(
    message="pause",
    end=RunEnd.PAUSED,
    reason="paused by windlass pause",
    asked="pause: turns that have started finish first (--now stops them).\n"
    "It then writes its state to continue-here; `windlass resume` continues it.",
    recorded="it is recorded as paused; `windlass resume` continues it.",
)

PAUSE_NOW = replace(
    PAUSE, message="pause_now", asked="pause at once; `windlass resume` continues it."
)

ABORT = Rest(
    message="abort",
    end=RunEnd.ABORTED,
    reason="aborted by windlass abort",
    asked="abort; its work stays pinned, and workspaces stay until `windlass clean`.",
    recorded="it is aborted; its work stays pinned, and workspaces stay until `windlass clean`.",
    any_unfinished=True,
)


def pause(project: Project, plan: str | None = None, *, now: bool = False) -> Delivery:
    """Pause a run at the end of the turns that have started, or at once."""
    return end_run(project, plan_id_of(project, plan), PAUSE_NOW if now else PAUSE)


def stop(project: Project, plan: str | None = None) -> Delivery:
    """Stop a run; the agents' work so far is kept, and the run can be resumed."""
    return end_run(project, plan_id_of(project, plan), STOP)


def abort(
    project: Project,
    plan: str | None = None,
    *,
    confirmed: bool = False,
    person: Person | None = None,
) -> Delivery:
    """Abort a run for good, if that is confirmed; all its work stays pinned."""
    plan_id = plan_id_of(project, plan)
    state, live = project.journals.last_run(plan_id), project.journals.live_pid(plan_id) is not None
    if not live:
        _refuse(state, plan_id, ABORT)
    if state is not None:
        agree(aborting(state, live=live), confirmed=confirmed, person=person)
    return end_run(project, plan_id, ABORT)


def end_run(project: Project, plan_id: str, rest: Rest) -> Delivery:
    """Ask the live run to end, or record its end if it has no process."""
    if project.journals.live_pid(plan_id) is not None:
        return _ask(project, plan_id, rest)
    _refuse(project.journals.last_run(plan_id), plan_id, rest)
    try:
        with project.journals.session(plan_id) as session:
            settle_landings(project, plan_id)
            before = session.before
            _refuse(before, plan_id, rest)
            if before is not None:
                record_end(project, session, rest)
    except Busy:  # a process has resumed it since we looked
        return _ask(project, plan_id, rest)
    died = before is not None and before.ended is None
    message = f"The {'dead ' if died else ''}run of {plan_id}: {rest.recorded}"
    return Delivery(plan=plan_id, live=False, message=message)


def record_end(project: Project, session: Session, rest: Rest) -> None:
    """Record the end under the lock, and update the state files."""
    state = session.note(ended(rest.end, rest.reason))
    write_state_files(project, state, session.seq, project.notice)


def _refuse(state: RunState | None, plan_id: str, rest: Rest) -> None:
    can_end = rest.any_unfinished and state is not None and not is_finished(state)
    if not can_end and (state is None or state.ended is not None):
        raise BadInput(f"no run of {plan_id!r} is in progress", hint="`windlass status`")


def _ask(project: Project, plan_id: str, rest: Rest) -> Delivery:
    project.journals.send(plan_id, Message(command=rest.message))
    message = f"Asked the run of {plan_id} to {rest.asked}"
    return Delivery(plan=plan_id, live=True, message=message)
