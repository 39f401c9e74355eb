"""The prompt of the agent that writes the title and summary of a pull request."""

from windlass.core.state import RunState
from windlass.runner.briefs import joined, packaged
from windlass.views.outcome import task_statuses
from windlass.views.quotation import DATA, quoted

ROLE = "Role: Pull request"


def draft_prompt(state: RunState, diff_stat: str) -> str:
    """A prompt with all that the agent needs: it has no tools to look anything up."""
    statuses = task_statuses(state)
    tasks = "\n\n".join(
        f"{task.id} {state.specs[task.id].title} ({statuses[task.id]})\n{_summary(state, task.id)}"
        for task in state.tasks.values()
    )
    return joined(
        f"{ROLE}\nPlan: {state.plan.id}",
        packaged("pull_request.md"),
        DATA,
        quoted("plan", state.plan.title),
        quoted("tasks", tasks),
        quoted("files", diff_stat),
    )


def _summary(state: RunState, task_id: str) -> str:
    task = state.tasks[task_id]
    return task.last.summary if task.attempts else ""
