"""`windlass feature-build TASK-ID`."""

from pathlib import Path
from typing import Any

import click

from windlass.app.task_files import task_plan
from windlass.cli.options import again_options, choice_of, mend_options, project_at, run_options
from windlass.cli.running import request_of, run_plan


@click.command("feature-build")
@click.argument("task_id", metavar="TASK-ID")
@again_options
@mend_options
@run_options
def command(task_id: str, resumes: bool, restarts: bool, repo: Path, **options: Any) -> int:  # noqa: FBT001
    """Run the task with that id: a Markdown file below tasks/ whose frontmatter has the id.

    The same as `windlass run` with that file. Windlass also records progress in the file's
    frontmatter: `status` (in_progress, in_review, blocked) and `feature_build`, with every turn.
    It changes nothing else in the file.

    \b
    Examples:
      windlass feature-build TASK-042
      windlass feature-build TASK-042 --max-turns 3 --verbose
      windlass feature-build TASK-042 --resume
    """  # noqa: D301
    choice = choice_of(resumes=resumes, restarts=restarts)
    project = project_at(repo)
    plan = task_plan(project, task_id, resuming=choice == "resume")
    return run_plan(project, plan, request_of(plan.id, options, choice), options)
