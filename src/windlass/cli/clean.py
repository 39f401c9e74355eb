"""`windlass clean [PLAN]`."""

import os
import sys
from pathlib import Path

import anyio
import click

from windlass.cli.finding import never_run, plan_id_of
from windlass.cli.options import repo_option
from windlass.cli.wiring import Project
from windlass.cli.wiring.cleaning import Cleanup, Doomed, Wanted
from windlass.cli.wiring.landings import settle_landings
from windlass.errors import BadInput, Busy, Unanswered, WindlassError
from windlass.plan.names import told
from windlass.state import runs
from windlass.views.words import plural


@click.command("clean", short_help="Let go of what is merged or pinned")
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
    """Show what of PLAN can go and why, and what stays and why; then let it go.

    Checkouts and caches go, and workspaces whose task is merged or whose run is finished. What a
    workspace holds that no pin has is committed and pinned first; where that cannot be, it stays.
    The journal, the integration branch, and whatever no branch of yours holds are never removed.
    Without PLAN: every plan that was run here.
    """
    project = Project(repo.resolve(), dict(os.environ))
    plans = [plan_id_of(project, plan)] if plan is not None else project.plans()
    if not plans:
        raise never_run(project)
    wanted = Wanted(ignored=ignored, runs=logs, pins=pins)
    code = 0
    for plan_id in plans:
        try:
            code = max(code, _clean(project, plan_id, wanted, yes=yes))
        except Busy as busy:
            if plan is not None:
                raise
            click.echo(f"windlass: {busy}", err=True)
            code = max(code, busy.exit_code)
    return code


def _clean(project: Project, plan_id: str, wanted: Wanted, *, yes: bool) -> int:
    with project.holding(plan_id) as journal:
        settle_landings(project, plan_id)
        states = runs(entry.event for entry in journal.read())
        if not states:
            raise BadInput(f"plan {plan_id!r} was never run here", hint="`windlass status`")
        return anyio.run(_let_go, Cleanup(project, states, wanted), plan_id, yes)


async def _let_go(cleanup: Cleanup, plan_id: str, yes: bool) -> int:  # noqa: FBT001
    try:
        found = await cleanup.look()
        _show(plan_id, found)
        doomed = [each for each in found if each.act is not None]
        if not doomed:
            return 0
        _confirm(plan_id, len(doomed), yes=yes)
        cleanup.end_leftovers()
        return max([await _one(each) for each in doomed])
    finally:
        await cleanup.close()


async def _one(doomed: Doomed) -> int:
    try:
        if doomed.act is not None:
            await doomed.act()
    except (WindlassError, OSError) as error:
        click.echo(told(f"  stays  {doomed.item.name}: {error}"), err=True)
        return 1
    return 0


def _show(plan_id: str, found: list[Doomed]) -> None:
    click.echo(f"{plan_id}: {plural(sum(each.item.goes for each in found), 'thing')} to let go")
    for each in sorted(found, key=lambda doomed: not doomed.item.goes):
        word = "goes" if each.item.goes else "stays"
        click.echo(told(f"  {word:<5}  {each.item.name} · {each.item.why}"))
    if not found:
        click.echo("  the journal, branches and pins stay; --runs and --pins let more go")


def _confirm(plan_id: str, count: int, *, yes: bool) -> None:
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        again = " ".join(["windlass", *sys.argv[1:], "--yes"])
        raise Unanswered(f"{plan_id}: nobody is there to confirm it", hint=f"`{again}`")
    click.confirm(f"Let {plural(count, 'thing')} go?", abort=True, err=True)
