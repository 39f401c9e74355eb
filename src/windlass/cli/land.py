"""`windlass land [PLAN]`."""

import os
from pathlib import Path

import anyio
import click

from windlass.cli.acceptance import refuse_stale
from windlass.cli.finding import last_run, to_land
from windlass.cli.hauling import forget_secrets
from windlass.cli.options import repo_option
from windlass.cli.showing import screens
from windlass.cli.wiring import Project, World, newest, now
from windlass.cli.wiring.facts import refuse_short_journal
from windlass.dialects import continue_here_path, writes
from windlass.errors import BadInput, GitFailed, Interrupted, JournalUnwritable
from windlass.events.model import LandRequested, RunEnd
from windlass.state import RunState
from windlass.views.outcome import EXIT_CODES
from windlass.views.progress import integration_branch
from windlass.views.steps import cure
from windlass.views.words import one_line, plural


@click.command("land", short_help="Move your branch to what was merged")
@click.argument("plan", required=False)
@click.option("--yes", is_flag=True, help="Do not ask: land whatever you were asked about")
@click.option("--quiet", is_flag=True, help="Show only the end")
@repo_option
def command(plan: str | None, yes: bool, quiet: bool, repo: Path) -> int:  # noqa: FBT001
    """Move the branch that the run of PLAN began from to all that was merged.

    Where it is checked out, your files follow as with `git merge --ff-only`: a file in the way
    that you have changed stops it, all else you have changed stays as it is. A branch that has
    moved meanwhile is merged with first, and what comes of that must pass every merged task's
    checks. Where a stage did not verify, or the branch was put back behind the commit that the run
    began from, nothing is moved without your word. While a task is stale, that is, merged for an
    older text of the plan, nothing is moved at all. Without PLAN: the only run here with something
    to land.
    """
    project = Project(repo.resolve(), dict(os.environ))
    plan_id = to_land(project, plan)
    _refuse_unfit(last_run(project, plan_id))
    options = {"quiet": quiet, "display": "plain"}
    screen, _ = screens(options, project.environment, left=lambda: None)
    with project.holding(plan_id) as journal:
        before = newest(list(journal.read()))
        if before is None:
            raise BadInput(f"plan {plan_id!r} was never run here")
        refuse_short_journal(project, plan_id, journal.last, before.run)
        _refuse_unfit(before)
        refuse_stale(project, before, f"{before.base_branch} was not moved")
        world = World(
            project,
            plan_id,
            before.run,
            before.settings,
            journal,
            writes=(*writes(before.plan), continue_here_path(before.plan)),
            notice=lambda text: screen.say("EDITED", text),
        )
        first = LandRequested(at=now(), by="windlass land", anyway=yes)
        forget_secrets()
        try:
            state = anyio.run(
                lambda: world.haul((first,), before, observe=screen.entry, watch=screen.activity)
            )
        except (OSError, GitFailed, JournalUnwritable) as error:
            raise _interrupted(project, plan_id, error) from error
    return _told(state)


def _interrupted(project: Project, plan_id: str, error: Exception) -> Interrupted:
    """What a person is told when the world did not let the landing go on."""
    trouble = project.trouble(error)
    cure = f"{trouble.cure}, then go on with `windlass land {plan_id}`; nothing recorded is lost"
    return Interrupted(trouble.what, hint=cure)


def _refuse_unfit(state: RunState) -> None:
    if not state.merges:
        raise BadInput(
            f"there is nothing to land: nothing of {state.plan.id!r} was merged",
            hint=f"windlass status {state.plan.id}",
        )
    if state.base_branch is None:
        raise BadInput(
            f"the run of {state.plan.id!r} began from a commit that no branch stood at",
            hint=f"take it into a branch of yours: git merge {integration_branch(state)}",
        )


def _told(state: RunState) -> int:
    """The last word, and the exit code: the landing's own, however the run itself had ended."""
    landing = state.landing
    if landing is not None and landing.landed is not None:
        verb = "holds all of it already, at" if landing.relation == "holds" else "stands at"
        click.echo(f"{landing.branch} {verb} {landing.landed[:10]}.")
        left = len(state.tasks) - len(state.done)
        if left:
            rest = f"{plural(left, 'task')} of {state.plan.id} not merged yet"
            click.echo(f"{rest}: windlass status {state.plan.id}", err=True)
        return 0
    if landing is not None and landing.refused:
        branch, told = landing.branch or "the base", cure(state, state.plan.id).told
        refused = one_line(landing.refused, 2000)
        why = f"{refused}; {told}" if told else refused
        click.echo(f"windlass: {branch} was not moved: {why}", err=True)
        return EXIT_CODES[RunEnd.NEEDS_HUMAN]
    return EXIT_CODES[RunEnd.STOPPED]
