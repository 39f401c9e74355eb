"""`windlass feature-build TASK-ID`."""

from pathlib import Path
from typing import Any

import click

from windlass.app.plans import plan_to_resume, read_plan
from windlass.app.wiring import Project
from windlass.cli.options import again_options, choice_of, mend_options, project_at, run_options
from windlass.cli.running import request_of, run_plan
from windlass.core.plan import Plan
from windlass.errors import BadInput
from windlass.formats.taskfile import TASKFILE, declared_id, is_meant


@click.command("feature-build")
@click.argument("task_id", metavar="TASK-ID")
@again_options
@mend_options
@run_options
def command(task_id: str, resumes: bool, restarts: bool, repo: Path, **options: Any) -> int:  # noqa: FBT001
    """Run the task with that id: a Markdown file below tasks/ whose frontmatter has the id.

    The same as `windlass run` with that file. Windlass also records progress in the file's
    frontmatter: `status` (in_progress, in_review, blocked) and `feature_build`, with every turn. It
    changes nothing else in the file.

    \b
    windlass feature-build TASK-042
    windlass feature-build TASK-042 --max-turns 3 --verbose
    windlass feature-build TASK-042 --resume
    """  # noqa: D301
    choice = choice_of(resumes=resumes, restarts=restarts)
    project = project_at(repo)
    plan = _plan(project, task_id, resuming=choice == "resume")
    return run_plan(project, plan, request_of(plan.id, options, choice), options)


def _plan(project: Project, task_id: str, *, resuming: bool) -> Plan:
    files = _files(project, task_id)
    if not files and resuming and task_id in project.journals.plans():
        return plan_to_resume(project, task_id)  # the file is gone; the journal has its text
    if not files:
        raise BadInput(
            f"no task {task_id!r}: there is no file tasks/**/{task_id}*.md",
            hint=f"look in {project.root}/tasks",
        )
    if len(files) > 1:
        named = ", ".join(str(path.relative_to(project.root)) for path in files)
        cure = "choose one: `windlass run FILE`"
        raise BadInput(f"several files match task {task_id!r}: {named}", hint=cure)
    # Its own steps may be called tasks too; that does not make the file a plan.
    own = is_meant(str(files[0]), _text(files[0]))
    return read_plan(project, str(files[0]), dialect=TASKFILE.name if own else None)


def _files(project: Project, task_id: str) -> list[Path]:
    """The files with exactly that id, else all whose name begins with it.

    A report about a task has the task's name too; it counts only if no other file does.
    """
    paths = sorted(project.root.glob("tasks/**/*.md"))
    named = [path for path in paths if path.name.startswith(task_id) and path.is_file()]
    ids = {path: _id(path) for path in named}
    exact = [path for path in named if ids[path] == task_id]
    return exact or [path for path in named if ids[path] is not None] or named


def _id(path: Path) -> str | None:
    text = _text(path)
    # If the frontmatter is broken, the file name counts.
    return declared_id(str(path), text) or (path.stem if text.startswith("---") else None)


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="surrogateescape")
