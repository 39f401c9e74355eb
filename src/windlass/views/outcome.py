"""The status words and exit codes that people script against.

Law: a stale task is never shown as completed. No other module knows the number of an exit code.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, tzinfo
from enum import IntEnum
from types import MappingProxyType

from windlass import errors
from windlass.core.events.model import CheckResult, Failure, Outcome, RunEnd
from windlass.core.plan import Task, same_meaning
from windlass.core.state import Phase, RunState, TaskState, selection
from windlass.core.state.selection import blocked
from windlass.core.state.transitions import IN_TIP
from windlass.views.times import date_and_time
from windlass.views.words import one_line, plural


class Exit(IntEnum):
    """The exit code of every command."""

    COMPLETED = 0
    FAILED = 1
    BAD_INPUT = 2
    NEEDS_HUMAN = 3
    STOPPED = 4
    BUSY = 5
    LIMIT = 6


EXIT_CODES: Mapping[RunEnd, Exit] = MappingProxyType(
    {
        RunEnd.COMPLETED: Exit.COMPLETED,
        RunEnd.FAILED: Exit.FAILED,
        RunEnd.NEEDS_HUMAN: Exit.NEEDS_HUMAN,
        RunEnd.STOPPED: Exit.STOPPED,
        RunEnd.PAUSED: Exit.STOPPED,
        RunEnd.LIMIT: Exit.LIMIT,
        RunEnd.ABORTED: Exit.FAILED,
        RunEnd.ABANDONED: Exit.FAILED,
    }
)
_ERROR_CODES: Mapping[type, Exit] = MappingProxyType(
    {
        errors.WindlassError: Exit.FAILED,
        errors.BadInput: Exit.BAD_INPUT,
        errors.JournalTooNew: Exit.BAD_INPUT,
        errors.Unanswered: Exit.NEEDS_HUMAN,
        errors.JournalDamaged: Exit.NEEDS_HUMAN,
        errors.Declined: Exit.STOPPED,
        errors.Interrupted: Exit.STOPPED,
        errors.JournalUnwritable: Exit.STOPPED,
        errors.Busy: Exit.BUSY,
        errors.JournalConflict: Exit.BUSY,
    }
)
"""An error that is not listed has the code of its base class."""

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


def exit_code(state: RunState) -> Exit:
    """The code for the end of a run; 0 also if all that --task or --stage named is merged."""
    if state.ended is RunEnd.STOPPED and state.stopping is None and selection.is_done(state):
        return Exit.COMPLETED
    return EXIT_CODES[state.ended or RunEnd.STOPPED]


def error_code(kind: type[errors.WindlassError]) -> Exit:
    return next(_ERROR_CODES[base] for base in kind.__mro__ if base in _ERROR_CODES)


def run_status(state: RunState) -> str:
    return _RUN_STATUS[state.ended]


def is_finished(state: RunState) -> bool:
    """Whether nothing is left to resume."""
    return state.ended is RunEnd.COMPLETED or state.given_up


def counts(state: RunState) -> str:
    """`3 tasks: 2 completed, 1 interrupted`."""
    words = Counter(words_for_people(state).values())
    by_word = ", ".join(f"{count} {word}" for word, count in words.items())
    return f"{plural(words.total(), 'task')}: {by_word}"


def words_for_people(state: RunState) -> dict[str, str]:
    """The status words for people: a task that a stop cut short is interrupted, not failed."""
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
_ON_TIP = {
    "fail": "fails",
    "not_run": "has not run",
    "collected_nothing": "finds nothing to run",
    "unable_to_start": "cannot start",
    "timed_out": "times out",
}
STALE_BECAUSE = "merged for an older text of the plan"


def checks_on_tip(state: RunState, task_id: str) -> dict[str, str]:
    """Each check of the task's current text, and its result on the tip."""
    results = state.evidence.get(state.tip_tree or "", {})
    checks = dict.fromkeys(state.specs[task_id].checks)
    return {check: _word(results[check]) if check in results else "not_run" for check in checks}


def _word(result: CheckResult) -> str:
    return result.absence or result.outcome


def check_lines(state: RunState, task_id: str) -> tuple[str, ...]:
    """A line for each check of the current text that has not passed on the tip."""
    return tuple(
        f"`{one_line(check, _COMMAND)}` {_ON_TIP.get(word, word)} on the tip"
        for check, word in checks_on_tip(state, task_id).items()
        if word != Outcome.PASS
    )


def accepted_line(state: RunState, task_id: str, zone: tzinfo = UTC) -> str:
    """Who accepted the merged work for the current text, and when; empty if not accepted."""
    task, spec = state.tasks[task_id], state.specs[task_id]
    accepted = task.accepted if task.phase is Phase.MERGED else None
    if accepted is None or task.merged_as is None or same_meaning(task.merged_as, spec):
        return ""
    by, at = one_line(accepted.by, 80), date_and_time(accepted.at.astimezone(zone))
    return f"merged for an older text, and accepted by {by} at {at}"


def text_shown(state: RunState, task_id: str) -> Task:
    """The text that the Coach's evidence is for: for a merged task, the one it was merged for."""
    task = state.tasks.get(task_id) or state.withdrawn[task_id]
    merged_as = task.merged_as if task.phase in IN_TIP else None
    return merged_as or state.specs[task_id]
