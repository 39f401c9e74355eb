"""`windlass adopt FILE`."""

from functools import partial
from pathlib import Path

import click

from windlass.app.adopt import Proposal, adopt, propose
from windlass.cli.options import json_option, print_result, project_at, repo_option, yes_option
from windlass.cli.person import confirm
from windlass.errors import BadInput
from windlass.views.words import one_line, plural

MAX_UNKNOWN = 20
"""Tasks to list that the plan does not have."""


@click.command("adopt")
@click.argument("file")
@click.option("--plan", help="Adopt it for this plan  [default: the one the file names]")
@click.option("--unverified", is_flag=True, help="Also adopt finished tasks that name no commit")
@yes_option
@json_option
@repo_option
def command(
    file: str,
    plan: str | None,
    unverified: bool,  # noqa: FBT001
    yes: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
    repo: Path,
) -> int:
    """Import the progress that another tool made. FILE is its state file, or a plan with marks.

    Windlass reads state/<milestone>_state.json, .specflow/execution/SPEC-…-state.json,
    execute-state.json in a folder of layers, the frontmatter of task files, and marks in a plan,
    such as the ticked boxes of spec-kit's tasks.md or the statuses in a FEAT-*.yaml.

    A task counts as done only if the base contains the commits that FILE names for it. Windlass
    shows each task with the reason and asks; then it records a new run of the plan, which
    `windlass resume` continues.

    \b
    Examples:
      windlass adopt tasks/execute-state.json
      windlass adopt state/m3_state.json --plan docs/m3.md
    """  # noqa: D301
    project = project_at(repo)
    proposal = propose(project, file, plan, unverified=unverified)
    _show(proposal, err=as_json)
    if not proposal.taken:
        raise BadInput("there is nothing to adopt", hint=f"run `windlass run {proposal.plan.path}`")
    what = f"{plural(len(proposal.taken), 'task')} of {proposal.plan.id} would count as done."
    confirm(what, "Record these as done?", command=f"windlass adopt {file} --yes", yes=yes)
    state = adopt(project, proposal)
    values = {
        "plan": proposal.plan.id,
        "run": state.run,
        "source": proposal.source,
        "tasks": proposal.tasks,
        "unknown": proposal.unknown,
    }
    text = f"Recorded. To continue: windlass resume {proposal.plan.id}"
    return print_result(values, text, as_json=as_json)


def _show(proposal: Proposal, *, err: bool) -> None:
    plan, say = proposal.plan, partial(click.echo, err=err)
    say(f"{one_line(plan.title, 100)} ({plan.id}): {plural(len(plan.tasks), 'task')}")
    for each in proposal.tasks:
        word = "done" if each.taken else "to do"
        say(f"  {word:<6} {each.id} {one_line(each.title, 50)} · {each.why}")
    for id_ in proposal.unknown[:MAX_UNKNOWN]:
        say(f"  ?      {one_line(id_, 60)} · the plan has no such task")
    if len(proposal.unknown) > MAX_UNKNOWN:
        more = plural(len(proposal.unknown) - MAX_UNKNOWN, "task")
        say(f"  ?      and {more} more like these")
