"""`windlass adopt FILE`."""

import os
import sys
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from windlass.cli.config import configure
from windlass.cli.finding import read_plan
from windlass.cli.options import repo_option
from windlass.cli.wiring import Project, ended, newest, now, started
from windlass.cli.wiring.facts import new_run_id
from windlass.cli.wiring.project import Base
from windlass.dialects import claims as claims_of
from windlass.dialects.claims import Claim, Claims
from windlass.errors import BadInput, PlanError, Unanswered
from windlass.events import model as e
from windlass.plan import Plan
from windlass.views.outcome import is_finished, run_status
from windlass.views.words import one_line, plural

MAX_BYTES = 10_000_000
MAX_UNKNOWN = 20
"""Tasks that the plan does not have, and that are listed all the same."""


class Judged(Struct, frozen=True, kw_only=True):
    """A task, and whether another tool's word for it is taken."""

    id: str
    title: str
    taken: bool
    why: str
    commit: str | None = None


@click.command("adopt", short_help="Take over what another tool has done of a plan")
@click.argument("file")
@click.option("--plan", help="The plan it is about  [default: the one the file names]")
@click.option("--unverified", is_flag=True, help="Also take what is done but names no commit")
@click.option("--yes", is_flag=True, help="Do not ask")
@repo_option
def command(file: str, plan: str | None, unverified: bool, yes: bool, repo: Path) -> int:  # noqa: FBT001
    """Take over what another tool has done: FILE is its state file, or a plan that marks tasks.

    State files that are known: state/<milestone>_state.json, .specflow/execution/SPEC-…-state.json,
    execute-state.json of a folder of layers, a task file's frontmatter; and the marks in a plan
    itself, such as the ticked boxes of spec-kit's tasks.md or the statuses of a FEAT-*.yaml.

    Every commit it names is looked for in git: a task is taken as done only if the base holds its
    commits. What is taken and what is not, and why, is shown first; then it is recorded as a new
    run of the plan, which `windlass resume` goes on with.

    \b
    windlass adopt tasks/execute-state.json
    windlass adopt state/m3_state.json --plan docs/m3.md
    """  # noqa: D301
    project = Project(repo.resolve(), dict(os.environ))
    told, shown = _claims(project, file)
    understood = read_plan(project, plan or _plan_named(told, shown))
    settings = configure(project.root, project.environment, {}).settings
    base = project.base(settings.base, understood.id)
    judged = [
        _judge(project, base, task.id, task.title, told.tasks.get(task.id), unverified=unverified)
        for task in understood.tasks
    ]
    _show(understood, told, judged)
    taken = [each for each in judged if each.taken]
    if not taken:
        raise BadInput("there is nothing to adopt", hint=f"windlass run {understood.path}")
    _confirm(f"windlass adopt {file} --yes", yes=yes)
    with project.holding(understood.id) as journal:
        _refuse_unfinished(understood, list(journal.read()))
        level = project.level(settings)
        facts = [
            started(new_run_id(), understood, settings, base, level),
            *(
                e.TaskAdopted(at=now(), task=each.id, source=shown, commit=each.commit)
                for each in taken
            ),
            ended(e.RunEnd.STOPPED, f"{plural(len(taken), 'task')} adopted"),
        ]
        journal.append(facts, expected=journal.last)
    click.echo(f"Recorded. Go on with: windlass resume {understood.id}")
    return 0


def _claims(project: Project, file: str) -> tuple[Claims, str]:
    path = project.directory / file
    if not path.is_file():
        raise BadInput(f"{file}: no such file", hint="name a state file, or a plan's file")
    if path.stat().st_size > MAX_BYTES:
        raise BadInput(f"{file}: more than {MAX_BYTES // 1_000_000} MB", hint="it is no state file")
    whole = path.resolve()
    inside = whole.is_relative_to(project.root.resolve())
    shown = str(whole.relative_to(project.root.resolve()) if inside else whole)
    text = path.read_bytes().decode(errors="replace")
    if (told := claims_of(shown, text)) is not None:
        return told, shown
    _refuse_broken(file, text)
    return _marks(project, file), shown


def _refuse_broken(file: str, text: str) -> None:
    """What stands in a state file that was cut short nobody knows, whoever had written it."""
    if not file.lower().endswith(".json"):
        return
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadInput(
            f"{file} is not JSON: {error}", hint="name a state file that is whole"
        ) from None


def _marks(project: Project, file: str) -> Claims:
    """What a plan itself marks as done: ticked boxes, statuses."""
    try:
        plan = read_plan(project, file)
    except PlanError as error:
        raise BadInput(
            f"{file} is no state file that Windlass knows, and no plan: {error.message}",
            hint="`windlass adopt --help` names those it knows",
        ) from None
    marked = Claim(status="marked as done", done=True)
    return Claims(plan=file, tasks={t.id: marked for t in plan.tasks if t.marked_done})


def _plan_named(told: Claims, shown: str) -> str:
    if not told.plan:
        raise BadInput(f"{shown} does not name its plan", hint="say which: --plan PLAN")
    return told.plan


def _judge(
    project: Project, base: Base, id_: str, title: str, claim: Claim | None, *, unverified: bool
) -> Judged:
    def judged(why: str, *, taken: bool = False, commit: str | None = None) -> Judged:
        return Judged(id=id_, title=title, taken=taken, why=why, commit=commit)

    if claim is None:
        return judged("nothing is said of it")
    if not claim.done:
        return judged(f"said to be {one_line(claim.status, 40)}")
    if not claim.commits:
        why = f"said to be {one_line(claim.status, 40)}, and no commit is named"
        return judged(why if unverified else f"{why} (--unverified takes it)", taken=unverified)
    reasons = [project.why_not_in(base, commit) for commit in claim.commits]
    missing = next((reason for reason in reasons if reason is not None), None)
    if missing is not None:
        return judged(missing)
    commit = project.full_name(claim.commits[-1])
    return judged(f"{commit[:10]} is in {base.branch or 'the base'}", taken=True, commit=commit)


def _show(plan: Plan, told: Claims, judged: list[Judged]) -> None:
    click.echo(f"{one_line(plan.title, 100)} ({plan.id}): {plural(len(plan.tasks), 'task')}")
    for each in judged:
        word = "done" if each.taken else "to do"
        click.echo(f"  {word:<6} {each.id} {one_line(each.title, 50)} · {each.why}")
    known = {each.id for each in judged}
    unknown = [id_ for id_ in told.tasks if id_ not in known]
    for id_ in unknown[:MAX_UNKNOWN]:
        click.echo(f"  ?      {one_line(id_, 60)} · the plan has no such task")
    if len(unknown) > MAX_UNKNOWN:
        click.echo(f"  ?      and {plural(len(unknown) - MAX_UNKNOWN, 'task')} more like these")


def _confirm(command_line: str, *, yes: bool) -> None:
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Unanswered("nobody is there to confirm it", hint=f"`{command_line}`")
    click.confirm("Take these as done?", abort=True, err=True)


def _refuse_unfinished(plan: Plan, entries: list[e.Entry]) -> None:
    before = newest(entries)
    if before is not None and not is_finished(before):
        raise BadInput(
            f"run {before.run} of {plan.id!r} is {run_status(before)}",
            hint=f"go on with it: windlass resume {plan.id}; adopting begins a run of its own",
        )
