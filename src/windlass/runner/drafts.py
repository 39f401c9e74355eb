"""What an agent is told that writes the words of a pull request."""

from windlass.core.state import RunState
from windlass.runner.briefs import joined, ours
from windlass.views.outcome import task_statuses
from windlass.views.quotation import DATA, quoted

ROLE = "Role: Pull request"


def draft_prompt(state: RunState, diff_stat: str) -> str:
    """All it needs: it looks nothing up."""
    words = task_statuses(state)
    tasks = "\n\n".join(
        f"{task.id} {state.specs[task.id].title} ({words[task.id]})\n{_summary(state, task.id)}"
        for task in state.tasks.values()
    )
    return joined(
        f"{ROLE}\nPlan: {state.plan.id}",
        ours("pull_request.md"),
        DATA,
        quoted("plan", state.plan.title),
        quoted("tasks", tasks),
        quoted("files", diff_stat),
    )


def _summary(state: RunState, task_id: str) -> str:
    task = state.tasks[task_id]
    return task.last.summary if task.attempts else ""
