"""`windlass status [PLAN]`."""

import os
from pathlib import Path

import click
import msgspec

from windlass.cli.finding import plan_id_of
from windlass.cli.options import json_option, repo_option
from windlass.cli.wiring import Project, newest, now
from windlass.errors import BadInput, JournalError
from windlass.views.progress import Progress, TaskProgress, progress
from windlass.views.waiting import wait_line
from windlass.views.words import duration, money, one_line, plural


@click.command("status", short_help="Show how a run stands")
@click.argument("plan", required=False)
@json_option
@repo_option
def command(plan: str | None, as_json: bool, repo: Path) -> int:  # noqa: FBT001
    """Show how the last run of PLAN stands; without PLAN, every plan that was run here.

    Only looks: safe at any time, beside a live run too.
    """
    project = Project(repo.resolve(), dict(os.environ))
    plans = [plan_id_of(project, plan)] if plan is not None else project.plans()
    if not plans:
        raise BadInput("no plan was run here yet", hint="start one: windlass run PLAN")
    shown = [_progress(project, plan_id) for plan_id in plans]
    if as_json:
        told = shown[0][0] if len(shown) == 1 else [progress for progress, _ in shown]
        click.echo(msgspec.json.format(msgspec.json.encode(told), indent=2))
        return 0
    for told, note in shown:
        _people(project, told, note)
    return 0


def _progress(project: Project, plan_id: str) -> tuple[Progress, str]:
    """From the journal, or from the state file where the journal cannot be read."""
    try:
        entries = project.entries(plan_id)
        state = newest(entries)
    except JournalError as error:
        told = project.state_file(plan_id)
        if told is None:
            raise
        return told, f"from state.json, because {error}"
    if state is None:
        raise BadInput(f"plan {plan_id!r} was never run here", hint="start it: windlass run PLAN")
    return progress(state, entries[-1].seq), ""


def _people(project: Project, told: Progress, note: str) -> None:
    pid = project.live_pid(told.plan)
    status = told.status
    if status == "in_progress":
        status = f"running (PID {pid})" if pid else "interrupted; `windlass resume` goes on"
    metrics = told.metrics
    click.echo(
        f"{told.plan} · run {told.run} · {status} · {metrics.completed}/{metrics.tasks} done"
        f" · {duration(metrics.elapsed_seconds)}"
        f" · {money(metrics.cost_usd, known=metrics.cost_known)}"
    )
    if told.reason:
        click.echo(f"  {one_line(told.reason, 200)}")
    if note:
        click.echo(f"  {note}")
    for task_id, task in told.tasks.items():
        turns = plural(task.turns, "turn") if task.turns else ""
        commit = (task.merged or "")[:10]
        line = f"  {task.status:<12} {task_id:<10} {turns:<8} {commit:<10} {_waiting(task)}"
        click.echo(line.rstrip())
    click.echo(f"  branch {told.integration} on {told.base_branch or told.base[:10]}\n")


def _waiting(task: TaskProgress) -> str:
    at = now()
    if task.waits_for is None or task.waits_until is None or task.waits_until <= at:
        return ""
    return f"waits {wait_line(task.waits_for, task.waits_until, at)}"
