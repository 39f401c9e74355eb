"""What people are told of a stale task: why it is not done, and what its checks say.

Law: a stale task is never told as completed. What was shown for its old text is told as such.
"""

from windlass.events.model import CheckResult, Outcome
from windlass.plan import Task, same_meaning
from windlass.state import Phase, RunState
from windlass.state.transitions import IN_TIP
from windlass.views.words import one_line

_COMMAND = 100
_TOLD = {
    "fail": "fails",
    "not_run": "has not run",
    "collected_nothing": "finds nothing to run",
    "unable_to_start": "cannot start",
    "timed_out": "times out",
}
WHY = "merged for an older text of the plan"


def checks_on_tip(state: RunState, task_id: str) -> dict[str, str]:
    """Each check of the task's present text, and what it said of the tip."""
    said = state.evidence.get(state.tip_tree or "", {})
    checks = dict.fromkeys(state.specs[task_id].checks)
    return {check: _word(said[check]) if check in said else "not_run" for check in checks}


def _word(result: CheckResult) -> str:
    return result.absence or result.outcome


def check_lines(state: RunState, task_id: str) -> tuple[str, ...]:
    """A line for each check of the present text that has not passed on the tip."""
    said = checks_on_tip(state, task_id)
    return tuple(
        f"`{one_line(check, _COMMAND)}` {_TOLD.get(word, word)} on the tip"
        for check, word in said.items()
        if word != Outcome.PASS
    )


def accepted_line(state: RunState, task_id: str) -> str:
    """Who accepted what is merged for the present text, and when; empty where no one had to."""
    task, spec = state.tasks[task_id], state.specs[task_id]
    accepted = task.accepted if task.phase is Phase.MERGED else None
    if accepted is None or task.merged_as is None or same_meaning(task.merged_as, spec):
        return ""
    by, at = one_line(accepted.by, 80), f"{accepted.at:%Y-%m-%d %H:%M}Z"
    return f"merged for an older text, and accepted by {by} at {at}"


def text_shown(state: RunState, task_id: str) -> Task:
    """The text that the Coach's evidence speaks of: of a merged task the one it was merged for."""
    task = state.tasks.get(task_id) or state.withdrawn[task_id]
    merged_as = task.merged_as if task.phase in IN_TIP else None
    return merged_as or state.specs[task_id]
