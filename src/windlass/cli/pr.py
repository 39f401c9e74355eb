"""`windlass pr [PLAN]`, and the pull request at the end of a run."""

from pathlib import Path

import click

from windlass.app.acceptance import refuse_stale
from windlass.app.plans import last_run, to_land
from windlass.app.wiring import Project
from windlass.app.wiring.publishing import Wanted, publish, refuse_unready, title_for
from windlass.cli.options import project_at, repo_option
from windlass.cli.person import is_attended
from windlass.core.events.model import RunEnd
from windlass.core.state import RunState
from windlass.errors import BadInput, WindlassError
from windlass.views.outcome import Exit
from windlass.views.progress import integration_branch
from windlass.views.pull_request import Draft, body_of
from windlass.views.steps import landed_at
from windlass.views.words import one_line


@click.command("pr")
@click.argument("plan", required=False)
@click.option("--base", metavar="BRANCH", help="Merge into this branch  [default: the run's base]")
@click.option("--remote", metavar="NAME", help="Push to this remote  [default: as `git push` does]")
@click.option("--title", metavar="TEXT", help="Use this title  [default: the plan's]")
@click.option("--draft", is_flag=True, help="Open a draft; works for an incomplete run too")
@click.option(
    "--by-agent", is_flag=True, help="Let an agent write the title and summary; costs money"
)
@click.option("--dry-run", is_flag=True, help="Show the title and text, and push nothing")
@repo_option
def command(
    plan: str | None,
    base: str | None,
    remote: str | None,
    title: str | None,
    draft: bool,  # noqa: FBT001
    by_agent: bool,  # noqa: FBT001
    dry_run: bool,  # noqa: FBT001
    repo: Path,
) -> int:
    """Push the merged work of PLAN, and open a pull request for it or update the open one.

    The text lists tasks, criteria with their evidence, checks and cost. With --by-agent, an agent
    writes a title and a summary on the run's budget. Windlass pushes with your own git, login and
    pre-push hook, and opens the pull request with `gh`. It pushes only the branch
    windlass/PLAN/integration, and never overwrites commits that no run made.

    Without gh, or if the remote is not GitHub, Windlass pushes the branch, prints the steps that
    are left, and exits with 3. While a task is stale, that is, merged for an older text of the
    plan, only --draft works. Prints the address. Without PLAN: the only run here with something to
    land.
    """
    if title is not None and not title.strip():
        raise BadInput("the title is empty", hint="leave out --title to use the plan's")
    project = project_at(repo)
    state = last_run(project, to_land(project, plan))
    wanted = Wanted(base=base, remote=remote, title=title, draft=draft, attended=is_attended())
    if not draft:
        refuse_stale(project, state, "no pull request is opened")
    if dry_run:
        return _shown(project, state, wanted)
    return _published(project, state, wanted, by_agent=by_agent)


def offer(project: Project, state: RunState, *, wish: bool | None) -> int:
    """At the end of a run: open a pull request if --pr was given, or if a person agrees."""
    if state.ended is not RunEnd.COMPLETED or not state.merges:
        return 0
    if wish is None and (not is_attended() or landed_at(state) is not None):
        return 0
    try:
        if wish is None:
            question = "Create PR for this milestone?"
            wish = project.git.has_remote() and click.confirm(question, default=True, err=True)
        if not wish:
            return 0
        # stdout may hold the JSON lines of the run.
        return _published(project, state, Wanted(attended=is_attended()), aside=True)
    except WindlassError as error:
        # The run itself is complete; only the pull request needs a person.
        why = one_line(str(error), 2000)
        click.echo(f"windlass: {why}; try again: windlass pr {state.plan.id}", err=True)
        return Exit.NEEDS_HUMAN


def _published(
    project: Project,
    state: RunState,
    wanted: Wanted,
    *,
    aside: bool = False,
    by_agent: bool = False,
) -> int:
    def written() -> Draft | None:
        from windlass.app.wiring.drafting import drafted

        return drafted(project, state.plan.id, lambda text: click.echo(f"Note: {text}", err=True))

    done = publish(project, state, wanted, written if by_agent else lambda: None)
    where = f"{done.branch} ({done.tip[:10]})"
    had = f"{done.remote} already has {where}."
    click.echo(f"Pushed {where} to {done.remote}." if done.pushed else had, err=True)
    for note in done.notes:
        click.echo(f"Note: {note}", err=True)
    if done.by_hand:
        click.echo("Open the pull request yourself:", err=True)
        for line in done.by_hand:
            click.echo(f"  {line}", err=True)
        return Exit.NEEDS_HUMAN
    click.echo("Updated the pull request:" if done.updated else "Opened a pull request:", err=True)
    click.echo(done.url, err=aside)
    return 0


def _shown(project: Project, state: RunState, wanted: Wanted) -> int:
    refuse_unready(state, draft=wanted.draft)
    base = wanted.base or state.base_branch or "(use --base BRANCH)"
    click.echo(f"{integration_branch(state)} at {state.tip[:10]} into {base}", err=True)
    click.echo(title_for(project, state, wanted))
    click.echo(f"\n{project.redactor.text(body_of(state))}")
    return 0
