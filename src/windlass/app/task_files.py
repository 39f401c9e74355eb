"""Find the task file with an id below tasks/, as `windlass feature-build` does."""

from pathlib import Path

from windlass.app.plans import plan_to_resume, read_plan
from windlass.app.wiring import Project
from windlass.core.nearest import did_you_mean
from windlass.core.plan import Plan
from windlass.errors import BadInput
from windlass.formats.taskfile import TASKFILE, declared_id, has_task_head


def task_plan(project: Project, task_id: str, *, resuming: bool = False) -> Plan:
    """The plan of the task file with that id; its journal's, if the file is gone."""
    files = _files(project, task_id)
    if not files and resuming and task_id in project.journals.plans():
        return plan_to_resume(project, task_id)  # the file is gone; the journal has its text
    if not files:
        names = (path.stem for path in project.root.glob("tasks/**/*.md"))
        cure = did_you_mean(task_id, names, f"look in {project.root}/tasks")
        raise BadInput(f"no task {task_id!r}: there is no file tasks/**/{task_id}*.md", hint=cure)
    if len(files) > 1:
        named = ", ".join(str(path.relative_to(project.root)) for path in files)
        cure = "choose one: `windlass run FILE`"
        raise BadInput(f"several files match task {task_id!r}: {named}", hint=cure)
    # Its own steps may be called tasks too; that does not make the file a plan.
    own = has_task_head(str(files[0]), _text(files[0]))
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
