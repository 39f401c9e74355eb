"""What is not as it was when a run began, for whoever goes on with it.

Law: a run has a base of its own, recorded and pinned. Where the user stands now, and where its
branch does, is worth a word and no more.
"""

from collections.abc import Iterator

from windlass.app.wiring import Project
from windlass.core.plan import Plan
from windlass.core.state import RunState
from windlass.views.edits import edit_lines


def differences(project: Project, plan: Plan, before: RunState) -> Iterator[str]:
    """What has changed since, and what that means for the run."""
    yield from project.git.reminders(before.base, plan.id)
    branch = before.base_branch
    if (moved := moved_to(project, before)) is not None:
        yield f"the base has moved to {moved[:10]}; the run goes on from its own"
    elif branch is not None and project.git.stands(branch) is None:
        yield f"the base {branch!r} is gone; the run goes on from its own"
    for line in edit_lines(before, plan):
        yield f"plan: {line}"


def moved_to(project: Project, before: RunState) -> str | None:
    """Where the branch stands by now that the run began from, if that is elsewhere."""
    now = project.git.stands(before.base_branch) if before.base_branch is not None else None
    return now if now != before.base else None
