"""`windlass adopt FILE`."""

from pathlib import Path

import click

from windlass.app.adopt import Proposal, adopt, propose
from windlass.cli.options import project_at, repo_option
from windlass.cli.person import is_attended
from windlass.errors import BadInput, Unanswered
from windlass.views.words import one_line, plural

MAX_UNKNOWN = 20
"""Tasks that the plan does not have, and that are listed all the same."""


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
    project = project_at(repo)
    proposal = propose(project, file, plan, unverified=unverified)
    _show(proposal)
    if not proposal.taken:
        raise BadInput("there is nothing to adopt", hint=f"windlass run {proposal.plan.path}")
    _confirm(f"windlass adopt {file} --yes", yes=yes)
    adopt(project, proposal)
    click.echo(f"Recorded. Go on with: windlass resume {proposal.plan.id}")
    return 0


def _show(proposal: Proposal) -> None:
    plan = proposal.plan
    click.echo(f"{one_line(plan.title, 100)} ({plan.id}): {plural(len(plan.tasks), 'task')}")
    for each in proposal.tasks:
        word = "done" if each.taken else "to do"
        click.echo(f"  {word:<6} {each.id} {one_line(each.title, 50)} · {each.why}")
    for id_ in proposal.unknown[:MAX_UNKNOWN]:
        click.echo(f"  ?      {one_line(id_, 60)} · the plan has no such task")
    if len(proposal.unknown) > MAX_UNKNOWN:
        more = plural(len(proposal.unknown) - MAX_UNKNOWN, "task")
        click.echo(f"  ?      and {more} more like these")


def _confirm(command_line: str, *, yes: bool) -> None:
    if yes:
        return
    if not is_attended():
        raise Unanswered("nobody is there to confirm it", hint=f"`{command_line}`")
    click.confirm("Take these as done?", abort=True, err=True)
