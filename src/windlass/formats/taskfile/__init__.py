"""The task file format: one file with frontmatter, or a folder of such files.

Both write `status` and `feature_build` into the frontmatter of the task files.
"""

from windlass.formats.dialect import Dialect
from windlass.formats.taskfile import file, folder, state
from windlass.formats.taskfile.file import declared_id
from windlass.formats.taskfile.state import unstamped
from windlass.formats.taskfile.task import is_meant

__all__ = ["TASKFILE", "TASKFOLDER", "declared_id", "is_meant", "unstamped"]

TASKFILE = Dialect(
    name=file.name,
    recognises=file.recognises,
    parse=file.parse,
    writes=lambda plan: (plan.path,),
    shares=lambda plan: (plan.path,),
    project=state.project_alone,
    claims=state.claims,
)
TASKFOLDER = Dialect(
    name=folder.name,
    recognises=folder.recognises,
    parse=folder.parse,
    writes=state.writes,
    shares=state.writes,
    project=state.project,
)
