"""`adopt`: import the progress that another tool made on a plan, as far as git confirms it."""

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
    """A task, and whether the other tool's claim is accepted."""

    id: str
    title: str
    taken: bool
    why: str
    commit: str | None = None


class Proposal(Struct, frozen=True, kw_only=True):
    """What could be adopted, for a person to confirm."""

    plan: Plan
    source: str
    """The other tool's file, as shown."""
    settings: Settings
    configured: tuple[e.Configured, ...]
    """What the file and the variables set."""
    base: Base
    tasks: tuple[Judged, ...]
    unknown: tuple[str, ...]
    """Tasks that the file names and the plan does not have."""

    @property
    def taken(self) -> tuple[Judged, ...]:
        """The tasks whose work git holds."""
        return tuple(each for each in self.tasks if each.taken)


def propose(project: Project, file: str, plan: str | None, *, unverified: bool) -> Proposal:
    """Compare the file's claim for every task of the plan with git; record nothing.

    With `unverified`, a finished task that names no commit is accepted too.
    """
    claims, source = _claims(project, file)
    read = read_plan(project, plan or _plan_named(claims, source))
    configuration = configure(project.root, project.environment, {}, directory=project.directory)
    settings = configuration.settings
    base = project.git.base(settings.base, read.id)
    judged = tuple(
        _judge(project, base, task.id, task.title, claims.tasks.get(task.id), unverified=unverified)
        for task in read.tasks
    )
    known = {each.id for each in judged}
    return Proposal(
        plan=read,
        source=source,
        settings=settings,
        configured=configuration.configured,
        base=base,
        tasks=judged,
        unknown=tuple(id_ for id_ in claims.tasks if id_ not in known),
    )


def adopt(project: Project, proposal: Proposal) -> RunState:
    """Record the proposal as a new run of the plan, which `resume` continues."""
    plan = proposal.plan
    if not proposal.taken:
        raise BadInput("there is nothing to adopt", hint=f"windlass run {plan.path}")
    with project.journals.session(plan.id) as session:
        _refuse_unfinished(plan, session.before)
        level = project.walls.level(proposal.settings)
        first = started(
            new_run_id(),
            plan,
            proposal.settings,
            proposal.base,
            level,
            configured=proposal.configured,
        )
        return session.note(
            first,
            *(
                e.TaskAdopted(at=now(), task=each.id, source=proposal.source, commit=each.commit)
                for each in proposal.taken
            ),
            ended(e.RunEnd.STOPPED, f"{plural(len(proposal.taken), 'task')} adopted"),
        )


def _claims(project: Project, file: str) -> tuple[Claims, str]:
    path = project.path_of(file)
    if not path.is_file():
        raise BadInput("no such file", where=file, hint="name a state file, or a plan's file")
    if path.stat().st_size > MAX_BYTES:
        size = f"more than {MAX_BYTES // 1_000_000} MB"
        raise BadInput(size, where=file, hint="it is no state file")
    resolved = path.resolve()
    inside = resolved.is_relative_to(project.root.resolve())
    shown = str(resolved.relative_to(project.root.resolve()) if inside else resolved)
    text = path.read_bytes().decode(errors="replace")
    if (claims := claims_of(shown, text)) is not None:
        return claims, shown
    _refuse_broken(file, text)
    return _marks(project, file), shown


def _refuse_broken(file: str, text: str) -> None:
    """A JSON file that was cut off is refused: its claims are not complete."""
    if not file.lower().endswith(".json"):
        return
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        why, hint = f"{file} is not JSON: {error}", "name a complete state file"
        raise BadInput(why, about=file, hint=hint) from None


def _marks(project: Project, file: str) -> Claims:
    """The tasks that a plan itself marks as done: ticked boxes, statuses."""
    try:
        plan = read_plan(project, file)
    except PlanError as error:
        raise BadInput(
            f"{file} is neither a state file that Windlass can read nor a plan: {error.message}",
            about=error.where,
            hint="`windlass adopt --help` lists the state files",
        ) from None
    marked = Claim(status="marked as done", done=True)
    return Claims(plan=file, tasks={t.id: marked for t in plan.tasks if t.marked_done})


def _plan_named(claims: Claims, shown: str) -> str:
    if not claims.plan:
        raise BadInput(f"{shown} does not name its plan", hint="name it: --plan PLAN")
    return claims.plan


def _judge(
    project: Project, base: Base, id_: str, title: str, claim: Claim | None, *, unverified: bool
) -> Judged:
    def judged(why: str, *, taken: bool = False, commit: str | None = None) -> Judged:
        return Judged(id=id_, title=title, taken=taken, why=why, commit=commit)

    if claim is None:
        return judged("not in the file")
    if not claim.done:
        return judged(f"the file says {one_line(claim.status, 40)}")
    if not claim.commits:
        why = f"the file says {one_line(claim.status, 40)}, and names no commit"
        return judged(why if unverified else f"{why} (--unverified adopts it)", taken=unverified)
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
            hint=f"continue it: windlass resume {plan.id}; adopt starts a run of its own",
        )
