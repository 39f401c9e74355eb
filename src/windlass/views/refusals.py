"""Why nothing came of what a person said to a task, and what they can do instead."""

from typing import NamedTuple

from windlass.state import Phase, RunState
from windlass.state.transitions import IN_TIP, RESETTABLE, UNDER_WAY
from windlass.views.outcome import task_statuses

_DONE = {
    "approve": "approved",
    "answer": "answered",
    "retry": "retried",
    "reset": "reset",
    "take": "taken",
    "give": "given back",
}
_LOOK = "`windlass status` shows what waits for you"
_WAIT = "wait for its turn to end, or `windlass stop` first"


class Refusal(NamedTuple):
    """What is said, and the cure."""

    said: str
    cure: str


def refusal(command: str, state: RunState, task_id: str, *, undo: bool = False) -> Refusal:
    """Why the task has no use for that command now; `undo` of a reset is meant."""
    why, cure = _why(command, state, task_id, undo=undo)
    done = "put back" if undo else _DONE[command]
    return Refusal(f"task {task_id!r} cannot be {done}: {why}", cure)


def _why(command: str, state: RunState, task_id: str, *, undo: bool) -> tuple[str, str]:
    task = state.tasks[task_id]
    status = f"it is {task_statuses(state)[task_id]}"
    if undo:
        return "it was not reset, or was begun since", _LOOK
    if command == "give":
        return f"nobody has taken it, {status}", _how_to_take(state, task_id, status)
    if command in {"approve", "answer"}:
        return _not_asked(command, state, task_id, status)
    if task.phase in UNDER_WAY:
        return "it is worked on", _WAIT
    if state.specs[task_id].scenario and command != "retry":
        return "it is the plan's scenario, which is tried on what was merged", _LOOK
    if command == "take":
        return _not_taken(state, task_id, status)
    if command == "reset" and task.phase not in RESETTABLE:
        return f"nothing was done for it yet, {status}", _LOOK
    return f"only what is merged or abandoned is done once more, {status}", _LOOK


def _not_asked(command: str, state: RunState, task_id: str, status: str) -> tuple[str, str]:
    """Nothing waits for that word; or it was said of another text than the task has."""
    if command == "approve" and state.is_stale(task_id):
        return "its text is not the one that you saw", f"windlass status {state.plan.id}"
    asked = "nobody is asked to let it start" if command == "approve" else "it asks nothing"
    return f"{asked}, {status}", _LOOK


def _how_to_take(state: RunState, task_id: str, status: str) -> str:
    """A cure that is refused in its turn is none."""
    task = state.tasks[task_id]
    if task.phase in UNDER_WAY:
        return _WAIT
    if state.specs[task_id].scenario:
        return _LOOK
    if task.phase in IN_TIP or (task.phase is Phase.PENDING and task not in state.free):
        return _not_taken(state, task_id, status)[1]
    return f"windlass take {state.plan.id}:{task_id}"


def _not_taken(state: RunState, task_id: str, status: str) -> tuple[str, str]:
    """Somebody has it, it is done, or what it needs is not."""
    needed = [id_ for id_ in state.specs[task_id].depends_on if id_ not in state.in_tip]
    if state.tasks[task_id].phase is Phase.PENDING and needed:
        return f"it needs {', '.join(needed)}, not merged yet", f"take {needed[0]} first, or wait"
    if state.tasks[task_id].phase in IN_TIP:
        return "it is merged", f"windlass retry {state.plan.id}:{task_id}"
    return f"its turn is not over, {status}", _WAIT
