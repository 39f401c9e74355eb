"""`windlass approve TASK|STAGE`."""

from pathlib import Path

import click

from windlass.app.acceptance import approve
from windlass.cli.options import json_option, print_result, project_at, repo_option


@click.command("approve")
@click.argument("task", metavar="TASK|STAGE")
@json_option
@repo_option
def command(task: str, as_json: bool, repo: Path) -> int:  # noqa: FBT001
    """Let TASK start, accept a stale TASK, or pass a STAGE.

    A TASK of complexity 7 or more waits for your approval before its first turn.

    A stale TASK was merged for an older text of the plan. Approving it accepts the merged work
    for the current text. Windlass records your name and that text; after another edit the task is
    stale again. The checks of the new text must still pass on the tip before the run is complete,
    and approve lists those that do not.

    A STAGE that did not verify passes, so that the next one starts.

    A live run continues at once, a stopped one with `windlass resume`. TASK may be written
    PLAN:TASK.

    \b
    Example:
      windlass approve 1.3
    """  # noqa: D301
    done = approve(project_at(repo), task)
    return print_result(done, done.message, as_json=as_json)
