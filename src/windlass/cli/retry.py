"""`windlass retry TASK|STAGE`."""

from pathlib import Path

import click

from windlass.app.say import retry
from windlass.cli.options import json_option, print_result, project_at, repo_option, yes_option
from windlass.cli.person import person


@click.command("retry")
@click.argument("task", metavar="TASK|STAGE")
@click.option(
    "--undo", is_flag=True, help="Undo the retry of merged work, until the redo is merged"
)
@yes_option
@json_option
@repo_option
def command(task: str, undo: bool, yes: bool, as_json: bool, repo: Path) -> int:  # noqa: FBT001
    """Retry TASK if it was abandoned, or redo it if it was merged for an older text of the plan.

    An abandoned task continues from its kept work, with new turns. A merged task starts again from
    the tip; the merged work stays until new work replaces it, or for good if there is nothing to
    change. For a STAGE, every merged or abandoned task is redone. To redo merged work whose text is
    the same, Windlass asks first; until the new work is merged, --undo restores the earlier merge.
    A live run continues at once, a stopped one with `windlass resume`. TASK may be written
    PLAN:TASK.

    \b
    Examples:
      windlass retry 1.3
      windlass retry auth:1.3                # of the plan auth
      windlass retry auth:1.3 --undo         # the earlier merge counts again
    """  # noqa: D301
    done = retry(project_at(repo), task, undo=undo, confirmed=yes, person=person())
    return print_result(done, done.message, as_json=as_json)
