"""`windlass clean [PLAN]`."""

import sys
from functools import partial
from pathlib import Path

import click

from windlass.app.clean import CleanRequest, Found, clean
from windlass.cli.options import project_at, repo_option
from windlass.cli.person import is_attended
from windlass.core.plan.names import told
from windlass.errors import Unanswered
from windlass.views.words import plural


@click.command("clean", short_help="Delete workspaces and refs that are merged or pinned")
@click.argument("plan", required=False)
@click.option("--ignored", is_flag=True, help="Also workspaces with files that git ignores")
@click.option("--runs", "logs", is_flag=True, help="Also the logs of finished runs but the last")
@click.option("--pins", is_flag=True, help="Also pins of finished runs that your branches hold")
@click.option("--yes", is_flag=True, help="Do not ask")
@repo_option
def command(
    plan: str | None,
    ignored: bool,  # noqa: FBT001
    logs: bool,  # noqa: FBT001
    pins: bool,  # noqa: FBT001
    yes: bool,  # noqa: FBT001
    repo: Path,
) -> int:
    """Show what of PLAN can go and why, and what stays and why; then delete what can go.

    Checkouts and caches go, and workspaces whose task is merged or whose run is finished. What a
    workspace holds that no pin has is committed and pinned first; where that cannot be, it stays.
    The journal, the integration branch, and whatever no branch of yours holds are never removed.
    Without PLAN: every plan that was run here.
    """
    request = CleanRequest(plan=plan, ignored=ignored, runs=logs, pins=pins)
    done = clean(project_at(repo), request, confirm=partial(_confirm, yes=yes))
    for each in done:
        if each.busy is not None:
            click.echo(f"windlass: {each.busy}", err=True)
        for item in each.failed:
            click.echo(told(f"  stays  {item.name}: {item.why}"), err=True)
    return max((each.exit_code for each in done), default=0)


def _confirm(found: Found, *, yes: bool) -> bool:
    """Show what goes and what stays, and ask."""
    click.echo(f"{found.plan}: {plural(found.going, 'thing')} to let go")
    for item in sorted(found.items, key=lambda item: not item.goes):
        word = "goes" if item.goes else "stays"
        click.echo(told(f"  {word:<5}  {item.name} · {item.why}"))
    if not found.items:
        click.echo("  the journal, branches and pins stay; --runs and --pins let more go")
    if yes or not found.going:
        return True
    if not is_attended():
        again = " ".join(["windlass", *sys.argv[1:], "--yes"])
        raise Unanswered(f"{found.plan}: nobody is there to confirm it", hint=f"`{again}`")
    return click.confirm(f"Let {plural(found.going, 'thing')} go?", abort=True, err=True)
