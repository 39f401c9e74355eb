"""`windlass approve` for a stale task: a person accepts the merged work for the plan's new text.

Law: a person accepts one text, the one that the plan's file has at that moment. It is recorded with
the person and the time. It makes no check green: checks that fail are listed.
"""

from windlass.app.plans import find_task, plan_of_run
from windlass.app.say import (
    Delivery,
    facts_for,
    record_facts,
    recorded,
    refuse_useless,
    say,
    send_or_record,
    sent,
)
from windlass.app.wiring import Project, ended, now, resumed_unchanged
from windlass.app.wiring.facts import revised
from windlass.core.engine import note
from windlass.core.events.model import Event, RunEnd
from windlass.core.exchange import Message
from windlass.core.plan import Plan, digest_of
from windlass.core.scheduler.late_edits import newly_stale
from windlass.core.scheduler.people import spoken
from windlass.core.state import RunState
from windlass.errors import Unanswered
from windlass.runner import Session
from windlass.views.outcome import check_lines, is_finished
from windlass.views.steps import how_to_settle

_NOT_GREEN = "the run is not complete before the tip passes it"


def approve(project: Project, subject: str) -> Delivery:
    """Let a complex task start, accept a stale one for its new text, or let a stage pass."""
    state, name = find_task(project, subject, stages=True)
    if is_stale(project, state, name):
        return accept(project, state, name)
    return say(project, subject, "approve", stages=True)


def is_stale(project: Project, state: RunState, task_id: str) -> bool:
    """Whether the task is stale, or becomes so by an edit that the run has not seen yet."""
    if task_id not in state.in_tip or state.given_up:
        return False
    plan = plan_of_run(project, state.plan)
    return state.is_stale(task_id) or task_id in newly_stale(state, plan)


def stale_now(project: Project, state: RunState) -> tuple[str, ...]:
    """The stale tasks of a run, and those that the plan's file as it is now makes stale."""
    if _is_elsewhere(project, state):
        return state.stale
    plan = plan_of_run(project, state.plan)
    return tuple(dict.fromkeys((*state.stale, *newly_stale(state, plan))))


def _is_elsewhere(project: Project, state: RunState) -> bool:
    """Whether the plan's file is from a checkout without the commit that the run started from.

    Such a file is no edit of this plan: another branch is checked out, or the branch was moved
    back.
    """
    path = project.root / state.plan.path
    asked = ("merge-base", "--is-ancestor", state.base, "HEAD")
    if not path.resolve().is_relative_to(project.root.resolve()):
        return False
    if not project.user_git.ask(*asked, ok=(0, 1)).code:
        return False
    tracked = project.git.ask("ls-files", "--", state.plan.path).strip()
    return (
        bool(tracked)
        and not project.git.ask("status", "--porcelain", "--", state.plan.path).strip()
    )


def refuse_stale(project: Project, state: RunState, what: str) -> None:
    """Raise if a task is stale: merged work must match the plan before it leaves Windlass."""
    if state.given_up or not (stale := stale_now(project, state)):
        return
    are = "is" if len(stale) == 1 else "are"
    why = f"{', '.join(stale)} {are} stale: merged for an older text of {state.plan.path}"
    hint = how_to_settle(state, stale)
    raise Unanswered(f"{what}: {why}", about=state.plan.path, hint=hint)


def accept(project: Project, state: RunState, task_id: str) -> Delivery:
    """Accept the task for its new text."""
    plan = plan_of_run(project, state.plan)
    spec = next((task for task in plan.tasks if task.id == task_id), state.specs[task_id])
    message = Message(
        command="approve", task=task_id, text=project.git.person(), meaning=digest_of(spec)
    )
    after: list[RunState] = []

    def facts_of(message: Message, state: RunState) -> tuple[Event, ...]:
        return _facts(message, state, plan)

    def do(project: Project, session: Session, message: Message) -> None:
        facts = facts_of(message, session.state)
        refuse_useless(message, session.state, facts)
        after.append(record_facts(project, session, facts))

    if send_or_record(project, state, message, do, facts_of=facts_of) is not None:
        return sent(state.plan.id)
    red = (f"  {line}; {_NOT_GREEN}." for line in check_lines(after[-1], task_id))
    accepted = f"Accepted {task_id} as merged, for its current text in {state.plan.path}."
    return recorded(state.plan.id, accepted, *red)


def _facts(message: Message, state: RunState, plan: Plan) -> tuple[Event, ...]:
    """The facts to record; if the run has not seen the edit yet, the edit is among them.

    A run takes up an edit while no effect is under way. So an unfinished run is taken over first,
    as a resume would, and stopped again afterwards.
    """
    if message.task not in newly_stale(state, plan):
        return facts_for(message, state)
    edit = revised(state, plan)
    before = () if is_finished(state) else (resumed_unchanged(state),)
    known = note(state, (*before, *edit)).states[-1]
    facts = spoken(message, known, now())
    stop = (ended(RunEnd.STOPPED, "for windlass approve"),) if before else ()
    return (*before, *edit, *facts, *stop) if facts else ()
