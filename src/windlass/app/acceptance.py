"""`windlass approve` for a stale task: a person accepts what is merged for the plan's new text.

Law: what is accepted is one text, the one that the plan's file has when the person says so. It is
recorded with the person and the time. It makes no check green: what is red is said.
"""

from windlass.app.plans import find_task, plan_of_run
from windlass.app.say import record_facts, refuse_useless, say, send_or_record, words_for
from windlass.app.wiring import Project, ended, now, taken_over
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


def approve(project: Project, subject: str) -> str:
    """Let a complex task start, accept a stale one for its new text, or let a stage pass."""
    state, name = find_task(project, subject, stages=True)
    if is_stale(project, state, name):
        return accept(project, state, name)
    return say(project, subject, "approve", stages=True)


def is_stale(project: Project, state: RunState, task_id: str) -> bool:
    """Whether the task is stale, or is made so by an edit that the run has not seen yet."""
    if task_id not in state.in_tip or state.given_up:
        return False
    plan = plan_of_run(project, state.plan)
    return state.is_stale(task_id) or task_id in newly_stale(state, plan)


def stale_now(project: Project, state: RunState) -> tuple[str, ...]:
    """The stale tasks of a run, and those that the plan's file makes stale by what it says now."""
    if _is_elsewhere(project, state):
        return state.stale
    plan = plan_of_run(project, state.plan)
    return tuple(dict.fromkeys((*state.stale, *newly_stale(state, plan))))


def _is_elsewhere(project: Project, state: RunState) -> bool:
    """Whether the plan's file is that of a checkout without the commit the run began from.

    Such a file is no edit of this plan: another branch is checked out, or the branch was put back.
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
    """Raise where a task is stale: nothing is handed on that is not what the plan says."""
    if state.given_up or not (stale := stale_now(project, state)):
        return
    are = "is" if len(stale) == 1 else "are"
    said = f"{', '.join(stale)} {are} stale: merged for an older text of {state.plan.path}"
    raise Unanswered(f"{what}: {said}", hint=how_to_settle(state, stale))


def accept(project: Project, state: RunState, task_id: str) -> str:
    """Accept it, and say what that comes to."""
    plan = plan_of_run(project, state.plan)
    spec = next((task for task in plan.tasks if task.id == task_id), state.specs[task_id])
    message = Message(
        command="approve", task=task_id, text=project.git.person(), meaning=digest_of(spec)
    )
    after: list[RunState] = []

    def words(message: Message, state: RunState) -> tuple[Event, ...]:
        return _words(message, state, plan)

    def do(project: Project, session: Session, message: Message) -> None:
        facts = words(message, session.state)
        refuse_useless(message, session.state, facts)
        after.append(record_facts(project, session, facts))

    if send_or_record(project, state, message, do, words=words) is not None:
        return f"Told the run of {state.plan.id}."
    red = (f"  {line}; {_NOT_GREEN}." for line in check_lines(after[-1], task_id))
    told = f"Accepted: {task_id} as it is merged, for what {state.plan.path} says of it now."
    return "\n".join((told, *red, f"Recorded. Go on with: windlass resume {state.plan.id}"))


def _words(message: Message, state: RunState, plan: Plan) -> tuple[Event, ...]:
    """The facts: where the run has not seen the edit yet, it is recorded with the word.

    An edit is taken up where nothing is under way, so a run that is not over is taken over for it,
    as a resume would, and laid to rest again.
    """
    if message.task not in newly_stale(state, plan):
        return words_for(message, state)
    edit = revised(state, plan)
    before = () if is_finished(state) else (taken_over(state),)
    known = note(state, (*before, *edit)).states[-1]
    heard = spoken(message, known, now())
    rest = (ended(RunEnd.STOPPED, "for windlass approve"),) if before else ()
    return (*before, *edit, *heard, *rest) if heard else ()
