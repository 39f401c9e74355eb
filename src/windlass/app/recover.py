"""`recover`: restore a lost or damaged journal from its mirror in git."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from windlass.app.consent import agree
from windlass.app.person import Person
from windlass.app.plans import id_beside_others, plan_as_written
from windlass.app.wiring import Project, now, started
from windlass.app.wiring.configuration import configure
from windlass.app.wiring.project import Base
from windlass.app.wiring.recovering import Recovery, open_recovery, plans_in_git, why_lost
from windlass.core import engine
from windlass.core.events import model as e
from windlass.core.scheduler.recovery import adopted, put_back
from windlass.core.state import RunState
from windlass.core.state.remains import Remains
from windlass.errors import BadInput, JournalTooNew, PlanError
from windlass.views.consequences import replacing_journal
from windlass.views.outcome import is_finished
from windlass.views.steps import Step, next_steps

_OLDER = "an older Windlass made this run, and kept no mirror of its journal"


class RecoverRequest(Struct, frozen=True, kw_only=True):
    """What to recover."""

    plan: str | None = None
    """An id or a file; None: the only plan whose journal is lost."""
    run: str | None = None
    """A run of the plan; None: the newest."""
    force: bool = False
    """Replace also a good journal, or one of a newer Windlass."""
    dry_run: bool = False
    """Only show what git has."""
    confirmed: bool = False
    """Do not ask before a journal is replaced that is not lost."""


class Recovered(Struct, frozen=True, kw_only=True):
    """What git has of a run, and whether its journal was written."""

    state: RunState
    why: str | None
    """Why the journal is lost; None if it was good."""
    records: int
    """How many records came from the mirror, byte for byte."""
    notes: tuple[str, ...]
    """Problems, assumptions, and what is lost."""
    others: tuple[str, ...]
    """Other runs of the plan that are pinned."""
    recorded: bool
    """Whether the journal was written; not in a dry run."""
    aside: Path | None = None
    """Where the old journal is kept, if there was one."""
    steps: tuple[Step, ...] = ()
    """The next commands, once the journal is written."""


def recover(
    project: Project,
    request: RecoverRequest,
    *,
    person: Person | None = None,
    notice: Callable[[str], None] = lambda _text: None,
) -> Recovered:
    """Restore the journal of a run, and add what git has beyond its mirror.

    `notice` is called for state files that were edited by hand.
    """
    known = plans_in_git(project)
    plan_id = (
        _plan_named(project, request.plan, known)
        if request.plan is not None
        else _only_lost(project, known)
    )
    asked = request.force or request.dry_run
    if _refuse_good(project, plan_id, known, asked=asked) is None and not request.dry_run:
        act = replacing_journal(plan_id)
        agree(act, confirmed=request.confirmed, person=person, by_name=True)
    with open_recovery(project, plan_id) as place:
        # Another process may have recovered it, or resumed the run, since the first look.
        why = _refuse_good(project, plan_id, known, asked=asked)
        run = _chosen(place, plan_id, known[plan_id], request.run)
        found = place.recorded(run)
        facts = list(found.facts)
        began = next((fact for fact in reversed(facts) if isinstance(fact, e.RunStarted)), None)
        remains = place.remains(run, began.base if began is not None else None)
        notes = [*found.notes, *remains.notes]
        if not found.payloads:
            notes.append(_OLDER)
            if began is None:
                facts = [_first_fact(project, request.plan or plan_id, plan_id, remains)]
        state = engine.replay(facts)
        if state is None or state.run != run:
            raise BadInput(f"the journal that git has for run {run} is of another run")
        added = adopted(state, remains, now())
        state = engine.replay((*facts, *added)) or state
        notes += [note for note in _of_tip(state, remains) if note not in notes]
        notes += [note for note in state.notes if added and note not in notes]
        result = Recovered(
            state=state,
            why=why,
            records=len(found.payloads),
            notes=tuple(notes),
            others=tuple(other for other in known[plan_id] if other != run),
            recorded=not request.dry_run,
        )
        if request.dry_run:
            return result
        fresh = (*(() if found.payloads else facts), *added)
        aside = place.record(found.payloads, fresh, remains, notice)
        steps = next_steps(state, plan=plan_id, ground=project.git.ground(state))
        return replace(result, aside=aside, steps=tuple(steps))


def _of_tip(state: RunState, remains: Remains) -> list[str]:
    """A note if the pin of the tip is not where the run left it."""
    if not remains.tip_is_pinned and state.tip != state.base:
        return [f"the tip's pin was lost; it is at {state.tip[:10]} again"]
    if put_back(state, remains):
        was = (remains.tip or "")[:10]
        return [f"the tip's pin was moved back to {was}; it is at {state.tip[:10]} again"]
    return []


def _refuse_good(
    project: Project, plan_id: str, known: Mapping[str, Sequence[str]], *, asked: bool
) -> str | None:
    try:
        why = why_lost(project, plan_id, known[plan_id])
    except JournalTooNew as error:
        if not asked:
            raise
        why = error.message
    if why is None and not asked:
        state = project.journals.last_run(plan_id)
        over = state is not None and is_finished(state)
        cure = "the run is finished" if over else f"to continue: windlass resume {plan_id}"
        raise BadInput(
            f"the journal of {plan_id!r} is good",
            hint=f"{cure}; --force restores it anyway",
        )
    return why


def _plan_named(project: Project, typed: str, known: Mapping[str, Sequence[str]]) -> str:
    if typed in known:
        return typed
    plan = plan_as_written(project, typed)
    for plan_id in (id_beside_others(plan), plan.id):
        if plan_id in known:
            return plan_id
    pinned = f"; plans that have: {', '.join(known)}" if known else ""
    raise BadInput(
        f"git has nothing of a run of plan {plan.id!r}{pinned}",
        hint=f"start one: windlass run {typed}",
    )


def _only_lost(project: Project, known: Mapping[str, Sequence[str]]) -> str:
    lost = [plan_id for plan_id, pinned in known.items() if why_lost(project, plan_id, pinned)]
    if len(lost) == 1:
        return lost[0]
    if lost:
        raise BadInput(f"several journals are lost: {', '.join(lost)}", hint="name the plan")
    if known:
        raise BadInput("no journal is lost here", hint="`windlass status` shows every plan")
    raise BadInput("git has nothing of any run here", hint="start one: windlass run PLAN")


def _chosen(place: Recovery, plan_id: str, pinned: Sequence[str], run: str | None) -> str:
    """The named run, else the newest: by its number, else by the time it started."""
    if run is not None:
        if run not in pinned:
            raise BadInput(f"git has no run {run!r} of {plan_id!r}: {', '.join(pinned)}")
        return run
    counted = place.places()
    ages = {each: (float(counted.get(each, 0)), _began_at(place, each, counted)) for each in pinned}
    newest = [each for each in pinned if ages[each] == max(ages.values())]
    if len(newest) > 1:
        raise BadInput(
            f"git does not show which run of {plan_id!r} is the newest: {', '.join(newest)}",
            hint="name it: --run RUN",
        )
    return newest[0]


def _began_at(place: Recovery, run: str, counted: Mapping[str, int]) -> float:
    """When a run of an older Windlass started, which has no number; 0 for a run with a number."""
    if run in counted:
        return 0.0
    began = [fact for fact in place.recorded(run).facts if isinstance(fact, e.RunStarted)]
    if began:
        return began[-1].at.timestamp()
    remains = place.remains(run, None)
    return max(made.at for made in remains.commits.values()).timestamp()


def _first_fact(project: Project, typed: str, plan_id: str, remains: Remains) -> e.RunStarted:
    """The first fact of a run without a mirror, from the plan and the settings as they are now."""
    try:
        plan = replace(plan_as_written(project, typed), id=plan_id)
    except PlanError as error:
        raise BadInput(
            f"the plan of run {remains.run} is not pinned, and cannot be read: {error.message}",
            hint="name the plan's file: windlass recover FILE",
        ) from error
    configuration = configure(project.root, project.environment, {}, directory=project.directory)
    settings = configuration.settings
    branch = project.git.base(settings.base, plan.id).branch
    base = Base(commit=remains.base, branch=branch, warnings=())
    level = project.walls.level(settings)
    first = started(remains.run, plan, settings, base, level, configured=configuration.configured)
    return replace(first, at=remains.commits[remains.base].at)
