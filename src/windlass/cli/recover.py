"""`windlass recover [PLAN]`."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from msgspec.structs import replace

from windlass.cli.config import configure
from windlass.cli.finding import id_beside_others, plan_as_written
from windlass.cli.options import repo_option
from windlass.cli.wiring import Project, now, started
from windlass.cli.wiring.project import Base
from windlass.cli.wiring.recovering import Recovering, plans_in_git, recovering, why_lost
from windlass.errors import BadInput, JournalTooNew, PlanError
from windlass.events import model as e
from windlass.scheduler.recovery import recovered
from windlass.state import RunState, fold
from windlass.state.remains import Remains
from windlass.views.outcome import is_finished
from windlass.views.progress import progress
from windlass.views.words import one_line, plural


@click.command("recover", short_help="Rebuild a lost or damaged journal from git")
@click.argument("plan", required=False)
@click.option("--run", metavar="RUN", help="This run of the plan  [default: the newest]")
@click.option(
    "--force",
    is_flag=True,
    help="Also where the journal is good, or of a newer Windlass; it is kept aside",
)
@click.option("--dry-run", is_flag=True, help="Show what git has, and record nothing")
@repo_option
def command(plan: str | None, run: str | None, force: bool, dry_run: bool, repo: Path) -> int:  # noqa: FBT001
    """Rebuild the journal of PLAN from git: its tasks, turns, commits, verdicts and merges.

    For when .windlass/plans/PLAN/journal.db is gone, damaged or an old copy. What was found, and
    what is not known any more, is shown; the old journal is kept beside the new one. `windlass
    resume` goes on from there: nothing merged is done again, what was approved is proven again
    before it is merged, and what an agent left is given to the next. Without PLAN: the only plan
    whose journal is lost.
    """
    project = Project(repo.resolve(), dict(os.environ))
    known = plans_in_git(project)
    plan_id = _plan_meant(project, plan, known) if plan is not None else _only_lost(project, known)
    _refuse_good(project, plan_id, known, asked=force or dry_run)
    with recovering(project, plan_id) as place:
        # Another may have recovered it, or gone on, between the looks.
        why = _refuse_good(project, plan_id, known, asked=force or dry_run)
        remains = _chosen(place, plan_id, known[plan_id], run)
        began = remains.began or _begun_anew(project, plan or plan_id, plan_id, remains)
        facts = recovered(remains, began, now())
        _show(facts, known[plan_id], why)
        if dry_run:
            return 0
        aside = place.record(facts, remains, lambda text: click.echo(text, err=True))
    if aside is not None:
        click.echo(f"The old journal is kept: {aside.relative_to(project.root)}")
    click.echo(f"Recorded. Go on with: windlass resume {plan_id}")
    return 0


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
        state = project.last_run(plan_id)
        over = state is not None and is_finished(state)
        cure = "the run is over" if over else f"go on with: windlass resume {plan_id}"
        raise BadInput(
            f"the journal of {plan_id!r} is good",
            hint=f"{cure}; --force makes it anew all the same",
        )
    return why


def _plan_meant(project: Project, typed: str, known: Mapping[str, Sequence[str]]) -> str:
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


def _chosen(place: Recovering, plan_id: str, pinned: Sequence[str], run: str | None) -> Remains:
    if run is not None and run not in pinned:
        raise BadInput(f"git has no run {run!r} of {plan_id!r}: {', '.join(pinned)}")
    wanted = [run] if run is not None else pinned
    found = sorted((place.remains(each) for each in wanted), key=lambda remains: remains.age)
    newest = [each.run for each in found if each.age == found[-1].age]
    if len(newest) > 1:
        raise BadInput(
            f"git does not show which run of {plan_id!r} is the newest: {', '.join(newest)}",
            hint="name the run that you mean: --run RUN",
        )
    return found[-1]


def _begun_anew(project: Project, typed: str, plan_id: str, remains: Remains) -> e.RunStarted:
    """The first fact of a run that pinned none: by the plan and the settings as they are now."""
    try:
        plan = replace(plan_as_written(project, typed), id=plan_id)
    except PlanError as error:
        raise BadInput(
            f"the plan of run {remains.run} is not pinned, and cannot be read: {error.message}",
            hint="name the plan's file: windlass recover FILE",
        ) from error
    settings = configure(project.root, project.environment, {}).settings
    branch = project.base(settings.base, plan.id).branch
    base = Base(commit=remains.base, branch=branch, warnings=())
    level = project.level(settings)
    first = started(remains.run, plan, settings, base, level)
    return replace(first, at=remains.commits[remains.base].at)


def _show(facts: Sequence[e.Event], pinned: Sequence[str], why: str | None) -> None:
    state = fold(facts)
    if state is None:
        return
    plan = state.plan
    click.echo(f"{one_line(plan.title, 100)} ({plan.id}) · run {state.run} · as git shows it")
    if why is not None:
        click.echo(f"  the journal: {why}")
    click.echo(
        f"  {len(state.done)} of {plural(len(state.tasks), 'task')} merged onto"
        f" {state.base_branch or state.base[:10]} · tip {state.tip[:10]}"
    )
    for line in _lines(state):
        click.echo(f"  {line}".rstrip())
    for note in state.notes:
        click.echo(f"  note: {one_line(note, 300)}")
    others = [run for run in pinned if run != state.run]
    if others:
        click.echo(f"  other runs of it stay pinned: {', '.join(others)} (--run takes one)")


def _lines(state: RunState) -> list[str]:
    shown = progress(state, 0).tasks.items()
    return [
        f"{task.status:<12} {id_:<10} {plural(task.turns, 'turn') if task.turns else '':<8}"
        f" {(task.merged or (task.commits[-1] if task.commits else ''))[:10]}"
        for id_, task in shown
    ]
