"""`windlass land [PLAN]`."""

from pathlib import Path

import click

from windlass.app.land import Landed, land
from windlass.cli.options import project_at, repo_option
from windlass.cli.process import forget_secrets
from windlass.cli.screens.choice import screen_for
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
    project = project_at(repo)
    options = {"quiet": quiet, "display": "plain"}
    screen = screen_for(options, project.environment, left=lambda: None)
    forget_secrets()
    landed = land(project, plan, anyway=yes, screen=screen)
    _print(landed)
    return landed.exit_code


def _print(landed: Landed) -> None:
    """Say the last word."""
    state, landing = landed.state, landed.state.landing
    if landing is None:
        return
    if landing.landed is not None:
        verb = "holds all of it already, at" if landing.relation == "holds" else "stands at"
        click.echo(f"{landing.branch} {verb} {landing.landed[:10]}.")
        left = len(state.tasks) - len(state.done)
        if left:
            rest = f"{plural(left, 'task')} of {state.plan.id} not merged yet"
            click.echo(f"{rest}: windlass status {state.plan.id}", err=True)
    elif landing.refused:
        branch, told = landing.branch or "the base", cure(state, state.plan.id).told
        refused = one_line(landing.refused, 2000)
        why = f"{refused}; {told}" if told else refused
        click.echo(f"windlass: {branch} was not moved: {why}", err=True)
