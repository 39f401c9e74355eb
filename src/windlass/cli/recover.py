"""`windlass recover [PLAN]`."""

from pathlib import Path

import click

from windlass.app.recover import Recovered, RecoverRequest, recover
from windlass.cli.options import json_option, print_json, project_at, repo_option, yes_option
from windlass.cli.person import person
from windlass.core.plan.names import escaped
from windlass.core.state import RunState
from windlass.views.progress import progress
from windlass.views.steps import listed
from windlass.views.words import one_line, plural


@click.command("recover")
@click.argument("plan", required=False)
@click.option("--run", metavar="RUN", help="Recover this run of the plan  [default: the newest]")
@click.option(
    "--force",
    is_flag=True,
    help="Replace a good or newer journal too; the old one is kept",
)
@click.option("--dry-run", is_flag=True, help="Show what git has, and write nothing")
@yes_option
@json_option
@repo_option
def command(
    plan: str | None,
    run: str | None,
    force: bool,  # noqa: FBT001
    dry_run: bool,  # noqa: FBT001
    yes: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
    repo: Path,
) -> int:
    """Restore the journal of PLAN from its mirror in git.

    Use it if .windlass/plans/PLAN/journal.db is missing, damaged or an old copy. The mirror has
    everything: tasks, turns, verdicts, answers and costs. Windlass shows what it found and what is
    lost, and keeps the old journal next to the new one. `windlass resume` continues from there:
    nothing merged is done again, and no finished step is paid for again. Without PLAN: the only
    plan whose journal is lost.

    \b
    Examples:
      windlass recover --dry-run             # only show what git has
      windlass recover docs/plan.md
    """  # noqa: D301
    project = project_at(repo)
    plan = project.here.plan if plan is None and project.here is not None else plan
    request = RecoverRequest(plan=plan, run=run, force=force, dry_run=dry_run, confirmed=yes)
    found = recover(
        project, request, person=person(), notice=lambda text: click.echo(text, err=True)
    )
    if as_json:
        print_json(_values(found))
        return 0
    _show(found)
    if found.aside is not None:
        click.echo(f"Kept the old journal: {found.aside.relative_to(project.root)}")
    if found.recorded:
        click.echo("Recorded.")
        for line in listed(list(found.steps)):
            click.echo(f"  next   {escaped(line)}")
    return 0


def _values(found: Recovered) -> dict[str, object]:
    state = found.state
    return {
        "plan": state.plan.id,
        "run": state.run,
        "tip": state.tip,
        "recorded": found.recorded,
        "records": found.records,
        "why": found.why,
        "notes": found.notes,
        "others": found.others,
        "aside": found.aside,
        "tasks": progress(state, 0).tasks,
        "steps": found.steps,
    }


def _show(found: Recovered) -> None:
    state = found.state
    plan = state.plan
    click.echo(f"{one_line(plan.title, 100)} ({plan.id}) · run {state.run} · from git")
    if found.why is not None:
        click.echo(f"  the journal: {found.why}")
    if found.records:
        click.echo(f"  its mirror: {plural(found.records, 'record')}")
    click.echo(
        f"  {len(state.done)} of {plural(len(state.tasks), 'task')} merged onto"
        f" {state.base_branch or state.base[:10]} · tip {state.tip[:10]}"
    )
    for line in _lines(state):
        click.echo(f"  {line}".rstrip())
    for note in found.notes:
        click.echo(f"  note: {one_line(note, 300)}")
    if found.others:
        click.echo(f"  other runs stay pinned: {', '.join(found.others)} (use --run)")


def _lines(state: RunState) -> list[str]:
    shown = progress(state, 0).tasks.items()
    return [
        f"{task.status:<12} {id_:<10} {plural(task.turns, 'turn') if task.turns else '':<8}"
        f" {(task.merged or (task.commits[-1] if task.commits else ''))[:10]}"
        for id_, task in shown
    ]
