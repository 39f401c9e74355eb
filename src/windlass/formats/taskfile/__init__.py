"""The task file format: one file with frontmatter, or a folder of such files.

Both write `status` and `feature_build` into the frontmatter of the task files.
"""

from windlass.formats.dialect import Dialect
from windlass.formats.taskfile import reader, state
from windlass.formats.taskfile.reader import declared_id, has_task_head

__all__ = ["TASKFILE", "TASKFOLDER", "declared_id", "has_task_head"]

TASKFILE = Dialect(
    name="taskfile",
    recognises=reader.is_file,
    parse=reader.parse_file,
    writes=lambda plan: (plan.path,),
    shares=lambda plan: (plan.path,),
    project=state.project_alone,
    claims=state.claims,
)
TASKFOLDER = Dialect(
    name="taskfolder",
    recognises=reader.is_folder,
    parse=reader.parse_folder,
    writes=state.writes,
    shares=state.writes,
    project=state.project,
)
