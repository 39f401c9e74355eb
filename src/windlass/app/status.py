"""`status`: the state of each plan's last run. Changes nothing; safe during a live run."""

from contextlib import suppress

from msgspec import UNSET, Struct, UnsetType

from windlass.app.plans import plan_and_task, selected_plans
from windlass.app.wiring import Project, last_run_state
from windlass.app.wiring.recovering import refuse_behind, why_git_is_older
from windlass.core.state import RunState
from windlass.core.state.budget import written_off
from windlass.core.state.transitions import HELPLESS
from windlass.errors import BadInput, JournalError, WindlassError
from windlass.views.closing import asks
from windlass.views.outcome import task_statuses
from windlass.views.progress import Progress, progress
from windlass.views.steps import Step, next_steps
from windlass.views.tree import unverified_stage


class RunStatus(Struct, frozen=True, kw_only=True):
    """The state of a plan's last run."""

    progress: Progress
    state: RunState | None
    """None if the journal cannot be read; then the progress comes from state.json."""
    pid: int | None
    """The process that runs it now, if any."""
    note: str = ""
    """Why this may be incomplete, if so."""
    steps: tuple[Step, ...] = ()
    """The next commands; empty while it is live."""


class Need(Struct, frozen=True, kw_only=True):
    """A task or a stage that waits for a person."""

    task: str | UnsetType = UNSET
    stage: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    asks: str


def status(project: Project, plan: str | None = None) -> tuple[RunStatus, ...]:
    """The last run of a plan; without a name, of every plan that was run here."""
    return tuple(status_of(project, plan_id) for plan_id in selected_plans(project, plan))


def task_named(project: Project, typed: str | None) -> tuple[str, str] | None:
    """The plan and the task that TASK or PLAN:TASK names; None if it names a plan, or nothing."""
    plan_id, task = plan_and_task(project, typed) if typed is not None else ("", None)
    return (plan_id, task) if task is not None else None


def status_of(project: Project, plan_id: str) -> RunStatus:
    """The last run of the plan of this id, from its journal, or else from its state file."""
    # Asked before reading: a process that has ended by now has written everything.
    pid = project.journals.live_pid(plan_id)
    try:
        entries = project.journals.entries(plan_id)
        state = last_run_state(entries)
        if state is not None and pid is None:
            refuse_behind(project, plan_id, entries[-1].seq)
    except JournalError as error:
        recorded = project.journals.state_file(plan_id)
        if recorded is None:
            raise
        note = f"from state.json, because {error}"
        return RunStatus(progress=recorded, state=None, pid=pid, note=note)
    if state is None:
        raise BadInput(f"plan {plan_id!r} was never run here", hint="start it: windlass run PLAN")
    if pid is not None:
        return RunStatus(progress=progress(state, entries[-1].seq), state=state, pid=pid)
    state = written_off(state)
    note = ""
    with suppress(WindlassError):
        note = why_git_is_older(project, state) or ""
    steps = tuple(next_steps(state, plan=plan_id, ground=project.git.ground(state)))
    shown = progress(state, entries[-1].seq)
    return RunStatus(progress=shown, state=state, pid=None, note=note, steps=steps)


def needs_of(state: RunState) -> tuple[Need, ...]:
    """What waits for a person in a run."""
    words = task_statuses(state)
    tasks = [
        Need(task=task.id, status=words[task.id], asks=asks(task))
        for task in state.tasks.values()
        if task.phase in HELPLESS
    ]
    stage = unverified_stage(state)
    return (*tasks, *((Need(stage=stage, asks="it did not verify"),) if stage else ()))
