"""`adopt`: take over what another tool has done of a plan, as far as git confirms it."""

import msgspec
from msgspec import Struct

from windlass.app.plans import read_plan
from windlass.app.wiring import Project, ended, now, started
from windlass.app.wiring.configuration import configure
from windlass.app.wiring.facts import new_run_id
from windlass.app.wiring.project import Base
from windlass.core.events import model as e
from windlass.core.plan import Plan
from windlass.core.settings import Settings
from windlass.core.state import RunState
from windlass.errors import BadInput, PlanError
from windlass.formats import claims as claims_of
from windlass.formats.state_files import Claim, Claims
from windlass.views.outcome import is_finished, run_status
from windlass.views.words import one_line, plural

MAX_BYTES = 10_000_000


class Judged(Struct, frozen=True, kw_only=True):
    """A task, and whether the other tool's word for it is taken."""

    id: str
    title: str
    taken: bool
    why: str
    commit: str | None = None


class Proposal(Struct, frozen=True, kw_only=True):
    """What could be adopted, for a person to look at before it counts."""

    plan: Plan
    source: str
    """The file that says it, as shown."""
    settings: Settings
    base: Base
    tasks: tuple[Judged, ...]
    unknown: tuple[str, ...]
    """Tasks that the file names and the plan does not have."""

    @property
    def taken(self) -> tuple[Judged, ...]:
        """The tasks whose work git holds."""
        return tuple(each for each in self.tasks if each.taken)


def propose(project: Project, file: str, plan: str | None, *, unverified: bool) -> Proposal:
    """Judge every task of the plan by what the file claims and git holds; record nothing.

    With `unverified` a task that is said to be done without a commit is taken too.
    """
    told, source = _claims(project, file)
    meant = read_plan(project, plan or _plan_named(told, source))
    settings = configure(
        project.root, project.environment, {}, directory=project.directory
    ).settings
    base = project.git.base(settings.base, meant.id)
    judged = tuple(
        _judge(project, base, task.id, task.title, told.tasks.get(task.id), unverified=unverified)
        for task in meant.tasks
    )
    known = {each.id for each in judged}
    return Proposal(
        plan=meant,
        source=source,
        settings=settings,
        base=base,
        tasks=judged,
        unknown=tuple(id_ for id_ in told.tasks if id_ not in known),
    )


def adopt(project: Project, proposal: Proposal) -> RunState:
    """Record the proposal as a new run of the plan, for `resume` to go on with."""
    plan = proposal.plan
    if not proposal.taken:
        raise BadInput("there is nothing to adopt", hint=f"windlass run {plan.path}")
    with project.journals.session(plan.id) as session:
        _refuse_unfinished(plan, session.before)
        level = project.walls.level(proposal.settings)
        return session.note(
            started(new_run_id(), plan, proposal.settings, proposal.base, level),
            *(
                e.TaskAdopted(at=now(), task=each.id, source=proposal.source, commit=each.commit)
                for each in proposal.taken
            ),
            ended(e.RunEnd.STOPPED, f"{plural(len(proposal.taken), 'task')} adopted"),
        )


def _claims(project: Project, file: str) -> tuple[Claims, str]:
    path = project.path_of(file)
    if not path.is_file():
        raise BadInput(f"{file}: no such file", hint="name a state file, or a plan's file")
    if path.stat().st_size > MAX_BYTES:
        raise BadInput(f"{file}: more than {MAX_BYTES // 1_000_000} MB", hint="it is no state file")
    whole = path.resolve()
    inside = whole.is_relative_to(project.root.resolve())
    shown = str(whole.relative_to(project.root.resolve()) if inside else whole)
    text = path.read_bytes().decode(errors="replace")
    if (told := claims_of(shown, text)) is not None:
        return told, shown
    _refuse_broken(file, text)
    return _marks(project, file), shown


def _refuse_broken(file: str, text: str) -> None:
    """What stands in a state file that was cut short nobody knows, whoever had written it."""
    if not file.lower().endswith(".json"):
        return
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadInput(
            f"{file} is not JSON: {error}", hint="name a state file that is whole"
        ) from None


def _marks(project: Project, file: str) -> Claims:
    """What a plan itself marks as done: ticked boxes, statuses."""
    try:
        plan = read_plan(project, file)
    except PlanError as error:
        raise BadInput(
            f"{file} is no state file that Windlass knows, and no plan: {error.message}",
            hint="`windlass adopt --help` names those it knows",
        ) from None
    marked = Claim(status="marked as done", done=True)
    return Claims(plan=file, tasks={t.id: marked for t in plan.tasks if t.marked_done})


def _plan_named(told: Claims, shown: str) -> str:
    if not told.plan:
        raise BadInput(f"{shown} does not name its plan", hint="say which: --plan PLAN")
    return told.plan


def _judge(
    project: Project, base: Base, id_: str, title: str, claim: Claim | None, *, unverified: bool
) -> Judged:
    def judged(why: str, *, taken: bool = False, commit: str | None = None) -> Judged:
        return Judged(id=id_, title=title, taken=taken, why=why, commit=commit)

    if claim is None:
        return judged("nothing is said of it")
    if not claim.done:
        return judged(f"said to be {one_line(claim.status, 40)}")
    if not claim.commits:
        why = f"said to be {one_line(claim.status, 40)}, and no commit is named"
        return judged(why if unverified else f"{why} (--unverified takes it)", taken=unverified)
    reasons = [project.git.why_not_in(base, commit) for commit in claim.commits]
    missing = next((reason for reason in reasons if reason is not None), None)
    if missing is not None:
        return judged(missing)
    commit = project.git.full_name(claim.commits[-1])
    return judged(f"{commit[:10]} is in {base.branch or 'the base'}", taken=True, commit=commit)


def _refuse_unfinished(plan: Plan, before: RunState | None) -> None:
    if before is not None and not is_finished(before):
        raise BadInput(
            f"run {before.run} of {plan.id!r} is {run_status(before)}",
            hint=f"go on with it: windlass resume {plan.id}; adopting begins a run of its own",
        )
