"""`windlass pr [PLAN]`, and the pull request at the end of a run."""

from pathlib import Path

import click

from windlass.app.pull_request import (
    PullRequestPreview,
    PullRequestRequest,
    PullRequestResult,
    is_publishable,
    is_worth_offering,
    preview,
    publish,
    pull_request,
)
from windlass.app.wiring import Project
from windlass.cli.options import json_option, print_json, project_at, repo_option, yes_option
from windlass.cli.person import AtTerminal, is_attended, person
from windlass.cli.problems import Errors
from windlass.core.state import RunState
from windlass.errors import WindlassError
from windlass.views.consequences import pushing
from windlass.views.outcome import Exit
from windlass.views.problems import Problem
from windlass.views.words import one_line


@click.command("pr")
@click.argument("plan", required=False)
@click.option("--base", metavar="BRANCH", help="Merge into this branch  [default: the run's base]")
@click.option("--remote", metavar="NAME", help="Push to this remote  [default: as `git push` does]")
@click.option("--title", metavar="TEXT", help="Use this title  [default: the plan's]")
@click.option("--draft", is_flag=True, help="Open a draft; works for an incomplete run too")
@click.option("--squash", is_flag=True, help="Push one commit for each task, and no merges")
@click.option(
    "--by-agent", is_flag=True, help="Let an agent write the title and summary; costs money"
)
@click.option("--dry-run", is_flag=True, help="Show the title and text, and push nothing")
@yes_option
@json_option
@repo_option
def command(
    plan: str | None,
    base: str | None,
    remote: str | None,
    title: str | None,
    draft: bool,  # noqa: FBT001
    squash: bool,  # noqa: FBT001
    by_agent: bool,  # noqa: FBT001
    dry_run: bool,  # noqa: FBT001
    yes: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
    repo: Path,
) -> int:
    """Push the merged work of PLAN, and open a pull request for it or update the open one.

    The text lists tasks, criteria with their evidence, checks and cost. With --by-agent, an agent
    writes a title and a summary on the run's budget. Windlass pushes with your own git, login and
    pre-push hook, and opens the pull request with `gh`. It pushes only the branch
    windlass/PLAN/integration, and never overwrites commits that no run made. On a terminal it asks
    first.

    With --squash the branch on the remote has one commit for each task instead of the merges, and
    the same files. `windlass land --squash` then lands the very same commits.

    Without gh, or if the remote is not GitHub, Windlass pushes the branch, prints the steps that
    are left, and exits with 3. While a task is stale, that is, merged for an older text of the
    plan, only --draft works. Prints the address. Without PLAN: the only run here with something to
    land.

    \b
    Examples:
      windlass pr --dry-run                  # show the text, and push nothing
      windlass pr docs/plan.md --draft
    """  # noqa: D301
    project = project_at(repo)
    request = PullRequestRequest(
        plan=plan,
        base=base,
        remote=remote,
        title=title,
        draft=draft,
        squash=squash,
        by_agent=by_agent,
        attended=is_attended(),
        confirmed=yes,
    )
    if dry_run:
        shown = preview(project, request)
        if as_json:
            print_json(shown)
            return 0
        return _print_preview(shown)
    done = pull_request(project, request, person=person(), notice=_print_note)
    if as_json:
        print_json(done)
    return _print_result(done, url_to_stderr=as_json)


def offer(project: Project, state: RunState, *, wish: bool | None) -> int:
    """At the end of a run: open a pull request if --pr was given, or if a person agrees."""
    try:
        if wish is None and is_attended() and is_worth_offering(project, state):
            wish = AtTerminal().allow(pushing(state), "Create PR for this milestone?")
        if not wish or not is_publishable(state):
            return 0
        result = publish(project, state, PullRequestRequest(attended=is_attended()))
        # stdout may hold the JSON lines of the run.
        return _print_result(result, url_to_stderr=True)
    except WindlassError as error:
        # The run itself is complete; only the pull request needs a person.
        why = one_line(str(error), 2000)
        cure = f"try again: windlass pr {state.plan.id}"
        click.echo(f"windlass: {why}; {cure}", err=True)
        place, code = error.where or state.plan.id, int(Exit.NEEDS_HUMAN)
        Errors.of_command().report(Problem(what=why, where=place, cure=cure, exit=code))
        return code


def _print_result(result: PullRequestResult, *, url_to_stderr: bool = False) -> int:
    branch = f"{result.branch} ({result.tip[:10]})"
    had = f"{result.remote} already has {branch}."
    click.echo(f"Pushed {branch} to {result.remote}." if result.pushed else had, err=True)
    for note in result.notes:
        _print_note(note)
    if result.by_hand:
        click.echo("Open the pull request yourself:", err=True)
        for line in result.by_hand:
            click.echo(f"  {line}", err=True)
        return Exit.NEEDS_HUMAN
    done = "Updated the pull request:" if result.updated else "Opened a pull request:"
    click.echo(done, err=True)
    click.echo(result.url, err=url_to_stderr)
    return 0


def _print_note(text: str) -> None:
    click.echo(f"Note: {text}", err=True)


def _print_preview(shown: PullRequestPreview) -> int:
    base = shown.base or "(use --base BRANCH)"
    click.echo(f"{shown.branch} at {shown.tip[:10]} into {base}", err=True)
    click.echo(shown.title)
    click.echo(f"\n{shown.body}")
    return 0
