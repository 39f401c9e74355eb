"""How a run and its tasks stand, in the words and exit codes that people script against.

Law: a stale task is never shown as completed. What was shown for its old text is shown as such.
"""

from collections.abc import Mapping
from types import MappingProxyType

from windlass.core.events.model import CheckResult, Failure, Outcome, RunEnd
from windlass.core.plan import Task, same_meaning
from windlass.core.state import Phase, RunState, TaskState, selection
from windlass.core.state.selection import blocked
from windlass.core.state.transitions import IN_TIP
from windlass.views.words import one_line, plural

EXIT_CODES: Mapping[RunEnd, int] = MappingProxyType(
    {
        RunEnd.COMPLETED: 0,
        RunEnd.FAILED: 1,
        RunEnd.NEEDS_HUMAN: 3,
        RunEnd.STOPPED: 4,
        RunEnd.PAUSED: 4,
        RunEnd.LIMIT: 6,
        RunEnd.ABORTED: 1,
        RunEnd.ABANDONED: 1,
    }
)

_RUN_STATUS: Mapping[RunEnd | None, str] = MappingProxyType(
    {
        None: "in_progress",
        RunEnd.COMPLETED: "completed",
        RunEnd.FAILED: "failed",
        RunEnd.NEEDS_HUMAN: "needs_human",
        RunEnd.STOPPED: "stopped",
        RunEnd.PAUSED: "paused",
        RunEnd.LIMIT: "paused",
        RunEnd.ABORTED: "failed",
        RunEnd.ABANDONED: "abandoned",
    }
)


def exit_code(state: RunState) -> int:
    """What a process says of the run it has hauled: all it was asked for is merged, or its end."""
    if state.ended is RunEnd.STOPPED and state.stopping is None and selection.is_done(state):
        return EXIT_CODES[RunEnd.COMPLETED]
    return EXIT_CODES[state.ended or RunEnd.STOPPED]


def run_status(state: RunState) -> str:
    """The run's status word."""
    return _RUN_STATUS[state.ended]


def is_finished(state: RunState) -> bool:
    """Whether there is nothing left to resume."""
    return state.ended is RunEnd.COMPLETED or state.given_up


def counts(state: RunState) -> str:
    """`3 tasks: 2 completed, 1 interrupted`."""
    words = list(words_for_people(state).values())
    told = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    return f"{plural(len(words), 'task')}: {told}"


def words_for_people(state: RunState) -> dict[str, str]:
    """The status words as people count them: what a stop cut short has not failed."""
    return {
        id_: "interrupted" if _was_cut_short(state.tasks[id_]) else word
        for id_, word in task_statuses(state).items()
    }


def _was_cut_short(task: TaskState) -> bool:
    return task.failed is not None and task.failed.failure is Failure.INTERRUPTED


def task_statuses(state: RunState) -> dict[str, str]:
    """Each task's status word, in the plan's order."""
    out_of_reach = blocked(state)
    return {
        task.id: "blocked" if task.id in out_of_reach else task.status
        for task in state.tasks.values()
    }


_COMMAND = 100
_TOLD = {
    "fail": "fails",
    "not_run": "has not run",
    "collected_nothing": "finds nothing to run",
    "unable_to_start": "cannot start",
    "timed_out": "times out",
}
STALE_BECAUSE = "merged for an older text of the plan"


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
