"""`windlass clean [PLAN]`."""

import sys
from functools import partial
from pathlib import Path

import click

from windlass.app.clean import Cleaned, CleanRequest, Found, clean
from windlass.cli.options import json_option, print_json, project_at, repo_option, yes_option
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
@yes_option
@json_option
@repo_option
def command(
    plan: str | None,
    ignored: bool,  # noqa: FBT001
    logs: bool,  # noqa: FBT001
    pins: bool,  # noqa: FBT001
    yes: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
    repo: Path,
) -> int:
    """Delete what is no longer needed: workspaces and refs that are merged or pinned.

    Windlass shows what of PLAN it would delete, what stays and why, and asks. It deletes
    checkouts, caches, and workspaces whose task is merged or whose run is finished. It commits and
    pins unsaved work in a workspace first; where that fails, the workspace stays. It never deletes
    the journal, the integration branch, or work that no branch of yours contains. Without PLAN:
    every plan that was run here.

    \b
    Examples:
      windlass clean
      windlass clean docs/plan.md --runs --pins
    """  # noqa: D301
    request = CleanRequest(plan=plan, ignored=ignored, runs=logs, pins=pins)
    done = clean(project_at(repo), request, confirm=partial(_confirm, yes=yes, as_json=as_json))
    if as_json:
        print_json([_values(each) for each in done])
    for each in done:
        if each.busy is not None:
            click.echo(f"windlass: {each.busy}", err=True)
        for item in each.failed:
            click.echo(escaped(f"  kept    {item.name}: {item.why}"), err=True)
    return max((each.exit_code for each in done), default=0)


def _values(done: Cleaned) -> dict[str, object]:
    return {
        "plan": done.plan,
        "deleted": done.deleted,
        "failed": done.failed,
        "busy": done.busy and str(done.busy),
        "exit": done.exit_code,
    }


def _confirm(found: Found, *, yes: bool, as_json: bool) -> bool:
    say = partial(click.echo, err=as_json)
    say(f"{found.plan}: {plural(found.going, 'item')} to delete")
    for item in sorted(found.items, key=lambda item: not item.goes):
        word = "delete" if item.goes else "keep"
        say(escaped(f"  {word:<6}  {item.name} · {item.why}"))
    if not found.items:
        say("  the journal, branches and pins stay; --runs and --pins delete more")
    if found.going:
        again = " ".join(["windlass", *sys.argv[1:], "--yes"])
        what = f"{found.plan}: {plural(found.going, 'item')} to delete."
        confirm(what, f"Delete {plural(found.going, 'item')}?", command=again, yes=yes)
    return True
