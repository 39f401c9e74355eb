"""`windlass land [PLAN]`."""

from pathlib import Path

import click

from windlass.app.land import Landed, land
from windlass.cli.options import json_option, print_json, project_at, repo_option
from windlass.cli.person import person
from windlass.cli.process import forget_secrets
from windlass.cli.screens.choice import screen_for
from windlass.errors import Unanswered
from windlass.views.steps import cure
from windlass.views.words import one_line, plural


@click.command("land")
@click.argument("plan", required=False)
@click.option(
    "--yes",
    is_flag=True,
    help="Do not ask, and land although a stage did not verify or the branch was moved back",
)
@click.option("--squash", is_flag=True, help="Land one commit for each task, and no merges")
@click.option("--quiet", is_flag=True, help="Show only the end")
@json_option
@repo_option
def command(
    plan: str | None,
    yes: bool,  # noqa: FBT001
    squash: bool,  # noqa: FBT001
    quiet: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
    repo: Path,
) -> int:
    """Move your branch to the merged work: the branch that the run of PLAN started from.

    If the branch is checked out, your files follow as with `git merge --ff-only`: your uncommitted
    changes stay, and Windlass refuses if a changed file is in the way. On a terminal it asks first
    if there are any. If the branch has moved, Windlass merges with it first, and the result must
    pass the checks of every merged task.

    With --squash the branch gets one commit for each task, in the order of the merges, with what
    the agent said and your name as the author; the files are the same. The merges and every turn
    stay pinned. What is merged later lands squashed as well.

    Windlass refuses without --yes if a stage did not verify, or if the branch was moved back behind
    the commit that the run started from. It always refuses while a task is stale, that is, merged
    for an older text of the plan. Without PLAN: the only run here with something to land.

    \b
    Examples:
      windlass land
      windlass land --squash
    """  # noqa: D301
    project = project_at(repo)
    options = {"quiet": quiet, "display": "plain"}
    screen = screen_for(options, project.environment, left=lambda: None)
    forget_secrets()
    landed = land(project, plan, anyway=yes, squash=squash, screen=screen, person=person())
    _refuse(landed)
    if as_json:
        print_json(_values(landed))
    else:
        _print(landed)
    return landed.exit_code


def _refuse(landed: Landed) -> None:
    """Raise if the branch was not moved because a person must do something first."""
    state, landing = landed.state, landed.state.landing
    if landing is not None and landing.landed is None and landing.refused:
        branch = landing.branch or "the base"
        why = f"{branch} was not moved: {one_line(landing.refused, 2000)}"
        raise Unanswered(why, about=branch, hint=cure(state, state.plan.id).hint)


def _values(landed: Landed) -> dict[str, object]:
    state, landing = landed.state, landed.state.landing
    return {
        "plan": state.plan.id,
        "run": state.run,
        "branch": landing and landing.branch,
        "landed": landing and landing.landed,
        "tasks_left": len(state.tasks) - len(state.done),
    }


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
