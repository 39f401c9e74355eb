"""`windlass clean [PLAN]`."""

import sys
from functools import partial
from pathlib import Path

import click

from windlass.app.clean import CleanRequest, Found, clean
from windlass.cli.options import project_at, repo_option
from windlass.cli.person import confirm
from windlass.core.plan.names import escaped
from windlass.views.words import plural


@click.command("clean")
@click.argument("plan", required=False)
@click.option("--ignored", is_flag=True, help="Also delete workspaces with files that git ignores")
@click.option(
    "--runs", "logs", is_flag=True, help="Also delete the logs of finished runs, except the last"
)
@click.option(
    "--pins", is_flag=True, help="Also delete pins of finished runs that your branches contain"
)
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
    """Show what of PLAN can be deleted, what stays, and why; ask, then delete it.

    Windlass deletes checkouts, caches, and workspaces whose task is merged or whose run is
    finished. It commits and pins unsaved work in a workspace first; where that fails, the workspace
    stays. It never deletes the journal, the integration branch, or work that no branch of yours
    contains. Without PLAN: every plan that was run here.
    """
    request = CleanRequest(plan=plan, ignored=ignored, runs=logs, pins=pins)
    done = clean(project_at(repo), request, confirm=partial(_confirm, yes=yes))
    for each in done:
        if each.busy is not None:
            click.echo(f"windlass: {each.busy}", err=True)
        for item in each.failed:
            click.echo(escaped(f"  kept    {item.name}: {item.why}"), err=True)
    return max((each.exit_code for each in done), default=0)


def _confirm(found: Found, *, yes: bool) -> bool:
    click.echo(f"{found.plan}: {plural(found.going, 'item')} to delete")
    for item in sorted(found.items, key=lambda item: not item.goes):
        word = "delete" if item.goes else "keep"
        click.echo(escaped(f"  {word:<6}  {item.name} · {item.why}"))
    if not found.items:
        click.echo("  the journal, branches and pins stay; --runs and --pins delete more")
    if found.going and not yes:
        again = " ".join(["windlass", *sys.argv[1:], "--yes"])
        confirm(f"Delete {plural(found.going, 'item')}?", command=again, about=found.plan)
    return True
