"""How a run stands, in the words and exit codes that people script against."""

from collections.abc import Mapping
from types import MappingProxyType

from windlass.events.model import Failure, RunEnd
from windlass.state import RunState, TaskState, selection
from windlass.state.reach import blocked
from windlass.views.words import plural

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
