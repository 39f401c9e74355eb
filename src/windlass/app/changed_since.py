"""What has changed since a run started, shown when it is resumed.

Law: a run has its own base, recorded and pinned. A checkout or a branch that has moved since is
worth a warning, and changes nothing.
"""

from collections.abc import Iterator

from windlass.app.wiring import Project
from windlass.core.plan import Plan
from windlass.core.state import RunState
from windlass.views.edits import edit_lines


def differences(project: Project, plan: Plan, before: RunState) -> Iterator[str]:
    """A line for each change, with what it means for the run."""
    yield from project.git.reminders(before.base, plan.id, plan.paths)
    branch = before.base_branch
    if (moved := moved_to(project, before)) is not None:
        yield f"the base has moved to {moved[:10]}; the run continues from its own"
    elif branch is not None and project.git.branch_commit(branch) is None:
        yield f"the base {branch!r} is gone; the run continues from its own"
    for line in edit_lines(before, plan):
        yield f"plan: {line}"


def moved_to(project: Project, before: RunState) -> str | None:
    """The commit that the base branch has moved to since the run started, if it has."""
    now = project.git.branch_commit(before.base_branch) if before.base_branch is not None else None
    return now if now != before.base else None
