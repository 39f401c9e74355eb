"""How a run comes to rest at a person's word: told to a live one, recorded for one that is not."""

from msgspec import Struct
from msgspec.structs import replace

from windlass.app.plans import plan_id_of
from windlass.app.wiring import Project, ended, tell
from windlass.app.wiring.landings import settle_landings
from windlass.core.events.model import RunEnd
from windlass.core.exchange import Message
from windlass.core.state import RunState
from windlass.errors import BadInput, Busy
from windlass.runner import Session
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


STOP = Rest(
    message="stop",
    end=RunEnd.STOPPED,
    name="stop",
    asked="stop; `windlass resume` goes on with it.",
    recorded="it is recorded as stopped.",
)

PAUSE = Rest(
    message="pause",
    end=RunEnd.PAUSED,
    name="pause",
    asked="pause: turns that have begun come to their end first (--now ends them).\n"
    "Where it stands is then written to continue-here; `windlass resume` goes on.",
    recorded="it is recorded as paused; `windlass resume` goes on.",
)

PAUSE_NOW = replace(
    PAUSE, message="pause_now", asked="pause at once; `windlass resume` goes on with it."
)

ABORT = Rest(
    message="abort",
    end=RunEnd.ABORTED,
    name="abort",
    asked="end for good; what was done stays pinned, and workspaces stay until `windlass clean`.",
    recorded="it is given up; what was done stays pinned, and workspaces until `windlass clean`.",
    any_unfinished=True,
)


def pause(project: Project, plan: str | None = None, *, now: bool = False) -> str:
    """Pause a run at the end of the turns that have begun, or at once."""
    return bring_to_rest(project, plan_id_of(project, plan), PAUSE_NOW if now else PAUSE)


def stop(project: Project, plan: str | None = None) -> str:
    """Stop a run; what agents have done so far is kept, and it can be resumed."""
    return bring_to_rest(project, plan_id_of(project, plan), STOP)


def abort(project: Project, plan: str | None = None) -> str:
    """Give a run up for good; all that was done stays pinned."""
    return bring_to_rest(project, plan_id_of(project, plan), ABORT)


def bring_to_rest(project: Project, plan_id: str, rest: Rest) -> str:
    """Tell the live run, or record the end of one that has no process; say what became of it."""
    if project.journals.live_pid(plan_id) is not None:
        return _tell(project, plan_id, rest)
    _refuse(project.journals.last_run(plan_id), plan_id, rest)
    try:
        with project.journals.session(plan_id) as session:
            settle_landings(project, plan_id)
            before = session.before
            _refuse(before, plan_id, rest)
            if before is not None:
                record_end(project, session, rest)
    except Busy:  # it came to life between the two looks
        return _tell(project, plan_id, rest)
    return f"{_was(before)} of {plan_id}: {rest.recorded}"


def record_end(project: Project, session: Session, rest: Rest) -> None:
    """Record it under the lock, and let the state files say so."""
    state = session.note(ended(rest.end, f"{_COMES_TO[rest.end]} by windlass {rest.name}"))
    tell(project, state, session.seq, project.notice)


def _was(before: RunState | None) -> str:
    died = before is not None and before.ended is None
    return "The run that had died" if died else "The run"


def _refuse(state: RunState | None, plan_id: str, rest: Rest) -> None:
    resting = rest.any_unfinished and state is not None and not is_finished(state)
    if not resting and (state is None or state.ended is not None):
        raise BadInput(f"no run of {plan_id!r} is going on", hint="`windlass status`")


def _tell(project: Project, plan_id: str, rest: Rest) -> str:
    project.journals.send(plan_id, Message(command=rest.message))
    return f"Asked the run of {plan_id} to {rest.asked}"
