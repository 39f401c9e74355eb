"""`windlass pr [PLAN]`, and the same at the end of a run."""

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
from windlass.views.outcome import EXIT_CODES
from windlass.views.progress import integration_branch
from windlass.views.pull_request import Draft, body_of
from windlass.views.steps import landed_at
from windlass.views.words import one_line


@click.command("pr", short_help="Open or update a pull request of what was merged")
@click.argument("plan", required=False)
@click.option("--base", metavar="BRANCH", help="Merge into this one  [default: the run's base]")
@click.option("--remote", metavar="NAME", help="Push to this remote  [default: as git push would]")
@click.option("--title", metavar="TEXT", help="Give it this title  [default: the plan's]")
@click.option("--draft", is_flag=True, help="Open a draft; also of a run that is not complete")
@click.option("--by-agent", is_flag=True, help="Have an agent write title and summary; costs money")
@click.option("--dry-run", is_flag=True, help="Show title and text, and reach nobody")
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
    """Push what the run of PLAN merged, and open a pull request for it, or update the open one.

    The text tells tasks, criteria with their evidence, checks and cost; with --by-agent an agent
    puts a title and a summary before it, on the run's own budget. The push is your own git's,
    with your login and your pre-push hook; the pull request is opened by `gh`. Only the branch
    windlass/PLAN/integration is pushed, and never over commits that no run made. Without gh, or
    where the remote is no GitHub, the branch is pushed and you are told what is left to do: exit
    code 3. While a task is stale, that is, merged for an older text of the plan, only a --draft is
    opened. Prints the address. Without PLAN: the only run here with something to land.
    """
    if title is not None and not title.strip():
        raise BadInput("the title is empty", hint="leave --title out for the plan's own")
    project = project_at(repo)
    state = last_run(project, to_land(project, plan))
    wanted = Wanted(base=base, remote=remote, title=title, draft=draft, attended=is_attended())
    if not draft:
        refuse_stale(project, state, "no pull request is opened")
    if dry_run:
        return _shown(project, state, wanted)
    return _published(project, state, wanted, by_agent=by_agent)


def offer(project: Project, state: RunState, *, wish: bool | None) -> int:
    """At the end of a run: what `--pr` asks for, or what a person who sits there says."""
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
        # What a run prints is its own: JSON lines, perhaps.
        return _published(project, state, Wanted(attended=is_attended()), aside=True)
    except WindlassError as error:
        # The run itself is complete; what could not be shown of it needs a person.
        told = one_line(str(error), 2000)
        click.echo(f"windlass: {told}; try again: windlass pr {state.plan.id}", err=True)
        return EXIT_CODES[RunEnd.NEEDS_HUMAN]


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
    had = f"{done.remote} has {where} already."
    click.echo(f"Pushed {where} to {done.remote}." if done.pushed else had, err=True)
    for note in done.notes:
        click.echo(f"Note: {note}", err=True)
    if done.by_hand:
        click.echo("No program here opens the pull request, so that is left to you:", err=True)
        for line in done.by_hand:
            click.echo(f"  {line}", err=True)
        return EXIT_CODES[RunEnd.NEEDS_HUMAN]
    click.echo("Updated the pull request:" if done.updated else "Opened a pull request:", err=True)
    click.echo(done.url, err=aside)
    return 0


def _shown(project: Project, state: RunState, wanted: Wanted) -> int:
    refuse_unready(state, draft=wanted.draft)
    base = wanted.base or state.base_branch or "(say --base BRANCH)"
    click.echo(f"{integration_branch(state)} at {state.tip[:10]} into {base}", err=True)
    click.echo(title_for(project, state, wanted))
    click.echo(f"\n{project.redactor.text(body_of(state))}")
    return 0
