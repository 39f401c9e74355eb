"""What was edited in a plan since its run started, and the effect on each task."""

from msgspec.structs import replace

from windlass.core.plan import Edits, Plan, Task, compare
from windlass.core.state import Phase, RunState
from windlass.core.state.staleness import is_done_for
from windlass.core.state.transitions import IN_TIP
from windlass.views.words import one_line


def edited(state: RunState, plan: Plan) -> Edits:
    """The edits in the plan's files that the run does not know yet."""
    edits = compare(state.plan, plan)
    # A merged task that was removed from the plan stays in the run and is not reported again; a
    # stale one is settled by its removal.
    gone = tuple(
        id_ for id_ in edits.removed if state.is_stale(id_) or not state.tasks[id_].may_be_in_tip
    )
    return replace(edits, removed=gone)


def edit_lines(state: RunState, plan: Plan) -> list[str]:
    """A line for each edit: a sign, the task, and the effect."""
    edits = edited(state, plan)
    titles = {task.id: task.title for task in (*state.plan.tasks, *plan.tasks)}

    def line(sign: str, id_: str, what: str) -> str:
        return f"{sign} {id_} {one_line(titles[id_], 50)}: {what}"

    lines = [line("+", id_, _added(state, id_)) for id_ in edits.added]
    lines += [line("-", id_, _removed(state, id_)) for id_ in edits.removed]
    specs = {task.id: task for task in plan.tasks}
    lines += [line("~", id_, _changed(state, id_, specs[id_])) for id_ in edits.changed]
    lines += [line("·", id_, "asks for the same, arranged differently") for id_ in edits.adjusted]
    if edits.reordered:
        lines.append("· the order of the tasks changed")
    lines += [f"· the plan's {name} changed" for name in edits.plan_level]
    return lines


def _added(state: RunState, id_: str) -> str:
    return "new" if id_ not in state.withdrawn else "back; it continues where it was withdrawn"


def _removed(state: RunState, id_: str) -> str:
    if state.is_stale(id_):
        return "removed; it stays merged"
    return "withdrawn; its work stays pinned" if state.tasks[id_].attempts else "withdrawn"


def _changed(state: RunState, id_: str, spec: Task) -> str:
    task = state.tasks[id_]
    if task.phase in IN_TIP and is_done_for(task, spec):
        return "matches what was merged or accepted; it is done"
    if task.phase in IN_TIP:
        cures = f"`windlass retry {id_}` redoes it, `windlass approve {id_}` accepts it"
        return f"stale: merged for an older text; {cures}"
    if task.phase is Phase.ABANDONED:
        return f"changed, and still abandoned; `windlass retry {id_}` tries it again"
    return "changed; agents get the new text" if task.attempts else "changed"
