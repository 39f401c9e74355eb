"""`windlass land [PLAN]`."""

from pathlib import Path

import click

from windlass.app.land import Landed, land
from windlass.cli.options import project_at, repo_option
from windlass.cli.process import forget_secrets
from windlass.cli.screens.choice import screen_for
from windlass.views.steps import cure
from windlass.views.words import one_line, plural


@click.command("land")
@click.argument("plan", required=False)
@click.option(
    "--yes", is_flag=True, help="Land although a stage did not verify, or the branch was moved back"
)
@click.option("--quiet", is_flag=True, help="Show only the end")
@repo_option
def command(plan: str | None, yes: bool, quiet: bool, repo: Path) -> int:  # noqa: FBT001
    """Move the branch that the run of PLAN started from to the merged work.

    If the branch is checked out, your files follow as with `git merge --ff-only`: your uncommitted
    changes stay, and Windlass refuses if a changed file is in the way. If the branch has moved,
    Windlass merges with it first, and the result must pass the checks of every merged task.

    Windlass refuses without --yes if a stage did not verify, or if the branch was moved back behind
    the commit that the run started from. It always refuses while a task is stale, that is, merged
    for an older text of the plan. Without PLAN: the only run here with something to land.
    """
    project = project_at(repo)
    options = {"quiet": quiet, "display": "plain"}
    screen = screen_for(options, project.environment, left=lambda: None)
    forget_secrets()
    landed = land(project, plan, anyway=yes, screen=screen)
    _print(landed)
    return landed.exit_code


def _print(landed: Landed) -> None:
    state, landing = landed.state, landed.state.landing
    if landing is None:
        return
    if landing.landed is not None:
        verb = "already has all of it, at" if landing.relation == "holds" else "is now at"
        click.echo(f"{landing.branch} {verb} {landing.landed[:10]}.")
        left = len(state.tasks) - len(state.done)
        if left:
            rest = f"{plural(left, 'task')} of {state.plan.id} not merged yet"
            click.echo(f"{rest}: windlass status {state.plan.id}", err=True)
    elif landing.refused:
        branch, hint = landing.branch or "the base", cure(state, state.plan.id).hint
        refused = one_line(landing.refused, 2000)
        why = f"{refused}; {hint}" if hint else refused
        click.echo(f"windlass: {branch} was not moved: {why}", err=True)
