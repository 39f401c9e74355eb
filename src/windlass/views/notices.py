"""Which facts are worth a notice, and its text.

Law: a pure rule on one fact and the state after it. There is no notice of what the person did
themselves (stop, pause, abort, restart), and no second notice of the same question or task.
"""

from typing import assert_never

from windlass.core.events import model as e
from windlass.core.events.values import Failure, RunEnd
from windlass.core.state import RunState
from windlass.core.state.stretches import run_seconds
from windlass.core.state.transitions import HELPLESS
from windlass.ports import Notice, NoticeKind
from windlass.views.activity import wait_line, waits_for
from windlass.views.cost import amounts, run_cost
from windlass.views.outcome import counts
from windlass.views.words import duration

_LONG = 2000
"""Characters of a question; no desktop shows more."""


def notice_of(event: e.Event, state: RunState) -> Notice | None:
    """The notice for this fact, if any."""
    match event:
        case e.RunEnded():
            return _end(event, state)
        case e.HelpNeeded():
            text = f"{event.question[:_LONG]}\n{_how(state, event.task)}"
            return _of_task(state, event.task, "human", "Needs you", text)
        case e.TaskAbandoned() if state.live:
            # If nothing else is under way, the end of the run reports it.
            return _of_task(state, event.task, "failed", "Given up", event.reason[:_LONG])
        case e.WaitStarted() if event.failure is Failure.USAGE_LIMIT:
            waiting = [t.id for t in state.live if waits_for(t) is Failure.USAGE_LIMIT]
            if waiting == [event.task]:  # one limit holds for all tasks with the model
                text = f"waits {wait_line(event.failure, event.until, event.at)}"
                return _of_task(state, event.task, "limit", "Limit", text)
        case _:
            pass
    return None


def _end(event: e.RunEnded, state: RunState) -> Notice | None:
    match event.status:
        case RunEnd.COMPLETED:
            return _of_run(state, "done", "Done", _counts(state))
        case RunEnd.FAILED:
            return _of_run(state, "failed", "Failed", _with_reason(event, state))
        case RunEnd.LIMIT:
            return _of_run(state, "limit", "Limit", _with_reason(event, state))
        case RunEnd.NEEDS_HUMAN if state.stale or not any(t.phase in HELPLESS for t in state.live):
            return _of_run(state, "human", "Needs you", _with_reason(event, state))
        case (
            RunEnd.NEEDS_HUMAN | RunEnd.STOPPED | RunEnd.PAUSED | RunEnd.ABORTED | RunEnd.ABANDONED
        ):
            return None  # a notice about the task was sent before, or a person ended the run
        case _:
            assert_never(event.status)


def _with_reason(event: e.RunEnded, state: RunState) -> str:
    return "\n".join(line for line in (event.reason[:_LONG], _counts(state)) if line)


def _counts(state: RunState) -> str:
    cost = run_cost(state)
    took = duration(run_seconds(state))
    return f"{counts(state)} · {took} · {amounts(cost)}"


def _how(state: RunState, task: str) -> str:
    return f"windlass status {state.plan.id} shows what to do about {task}"


def _of_run(state: RunState, kind: NoticeKind, word: str, text: str) -> Notice:
    return _notice(state, kind, f"{word}: {state.plan.title}", text)


def _of_task(state: RunState, task: str, kind: NoticeKind, word: str, text: str) -> Notice:
    name = f"{task} {state.specs[task].title}"
    return _notice(state, kind, f"{word}: {name} · {state.plan.title}", text, task)


def _notice(state: RunState, kind: NoticeKind, title: str, text: str, task: str = "") -> Notice:
    return Notice(kind=kind, title=title, text=text, plan=state.plan.id, run=state.run, task=task)
