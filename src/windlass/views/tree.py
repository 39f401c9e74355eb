"""The progress of a run as a tree: its stages, the tasks below them, and what was found in git."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from windlass.core.events.model import RunEnd
from windlass.core.plan.names import some
from windlass.core.state import Phase, RunState, TaskState
from windlass.core.state.selection import blocked
from windlass.core.state.stages import barriers, look_at
from windlass.core.state.transitions import HELPLESS
from windlass.views.progress import commits_of, turns_used
from windlass.views.words import one_line, plural

_STAGE_WORD = {
    "spec": "Wave",
    "feature": "Wave",
    "taskfolder": "Wave",
    "layers": "Layer",
    "milestone": "Stage",
}
"""The word for a stage in each dialect; the names of spec-kit's phases include it."""

_SOME_IDS = 8
_LONG = 20
"""With more tasks than this and no stages, tasks with the same status share a line."""
_WHY = 70


def tree(state: RunState) -> list[str]:
    """A line for each stage, and one for each task of a stage that is in progress."""
    lines: list[str] = []
    for stage, ids in _stages(state).items():
        lines += _stage(state, stage, [state.tasks[id_] for id_ in ids])
    alone = [task for task in state.tasks.values() if state.specs[task.id].stage is None]
    return lines + (_short(state, alone) if len(alone) > _LONG else _tasks(state, alone))


def stage_name(state: RunState, stage: str) -> str:
    """`Wave 2`, `Layer 1-core`, `Phase 3: …`."""
    word = _STAGE_WORD.get(state.plan.dialect, "")
    has_word = stage.lower().startswith(word.lower())
    return one_line(stage if has_word else f"{word} {stage}", 60)


def stage_line(state: RunState, stage: str) -> str:
    """A stage's status in one line: `Wave 2: ⚡ In Progress`."""
    tasks = [state.tasks[id_] for id_ in state.index.stages[stage]]
    return next(_stage(state, stage, tasks)).removeprefix("- ")


def position(state: RunState) -> str:
    """The first task that is left to do: `Wave 2, Group G3`."""
    at = _first_open(state)
    if at is None:
        return f"the end: all of {plural(len(state.tasks), 'task')} are merged"
    stage = state.specs[at.id].stage
    kind = "Group" if state.plan.dialect == "spec" and stage is not None else "Task"
    return f"{stage_name(state, stage)}, {kind} {at.id}" if stage else f"{kind} {at.id}"


def verified(state: RunState, found: Collection[str]) -> tuple[str, ...]:
    """The merged work that was found in git, by stages, or by tasks if there are no stages."""
    seen, lines = frozenset(found), list[str]()
    for stage, ids in _stages(state).items():
        name, done = stage_name(state, stage), [id_ for id_ in ids if id_ in seen]
        if done and len(done) == len(ids):
            lines.append(f"{name}: {_found(state, ids)}")
        else:
            lines += (f"{name}/{id_}: {_found(state, (id_,))}" for id_ in done)
    alone = [id_ for id_ in state.tasks if state.specs[id_].stage is None and id_ in seen]
    if len(alone) > _SOME_IDS:
        return (*lines, f"{plural(len(alone), 'task')}: {_found(state, alone)}")
    return (*lines, *(f"{id_}: {_found(state, (id_,))}" for id_ in alone))


def unverified_stage(state: RunState) -> str | None:
    """The stage that is done, was verified, and did not pass."""
    for stage in barriers(state):
        # An edit may have removed all tasks of a stage.
        look = look_at(state, stage) if stage in state.index.stages else None
        if look is not None and look.passed_by is None and state.ended is not None:
            return stage
    return None


def failed_stage(state: RunState) -> str | None:
    """The stage that blocks the run: it did not verify, or a task of it was abandoned."""
    waiting = barriers(state)
    stages = (state.specs[id_].stage for id_ in state.index.abandoned)
    return unverified_stage(state) or next((each for each in stages if each in waiting), None)


def _stages(state: RunState) -> dict[str, tuple[str, ...]]:
    """The tasks of each stage, in the order of the stages."""
    names = dict.fromkeys((*(stage.name for stage in state.plan.stages), *state.index.stages))
    return {name: state.index.stages[name] for name in names if name in state.index.stages}


def _found(state: RunState, ids: Iterable[str]) -> str:
    return f"✓ {plural(sum(len(commits_of(state.tasks[id_])) for id_ in ids), 'commit')} found"


def _first_open(state: RunState) -> TaskState | None:
    """Tasks in progress come before pending ones, and those before abandoned ones."""
    if state.live:
        return state.live[0]
    out_of_reach = blocked(state)
    left = [task for task in state.tasks.values() if task.phase is not Phase.MERGED]
    ready = (t for t in left if t.phase is Phase.PENDING and t.id not in out_of_reach)
    return next(ready, left[0] if left else None)


def _stage(state: RunState, stage: str, tasks: Sequence[TaskState]) -> Iterator[str]:
    name, ids = stage_name(state, stage), f" ({some([task.id for task in tasks], _SOME_IDS)})"
    out_of_reach = blocked(state)
    if unverified_stage(state) == stage:
        yield f"- {name}: ✗ Did not verify"
    elif all(task.phase is Phase.MERGED for task in tasks):
        yield f"- {name}: ✓ Complete{ids}"
        return
    elif all(task.phase is Phase.PENDING and task.id not in out_of_reach for task in tasks):
        yield f"- {name}: ○ Pending{ids}"
        return
    elif not state.index.unsettled.get(stage):
        none_begun = all(task.id in out_of_reach for task in tasks)
        yield f"- {name}: {'○ Blocked' if none_begun else '✗ Failed'}"
    else:
        yield f"- {name}: ⚡ In Progress"
    yield from (f"  {line}" for line in _tasks(state, tasks))


def _tasks(state: RunState, tasks: Sequence[TaskState]) -> list[str]:
    out_of_reach = blocked(state)
    return [f"- {task.id}: {_word(state, task, out_of_reach.get(task.id))}" for task in tasks]


def _short(state: RunState, tasks: Sequence[TaskState]) -> list[str]:
    """One line for all tasks with the same status."""
    out_of_reach = blocked(state)
    by_status: dict[str, list[str]] = {}
    for task in tasks:
        by_status.setdefault(_word(state, task, out_of_reach.get(task.id)), []).append(task.id)
    return [f"- {some(ids, _SOME_IDS)}: {word}" for word, ids in by_status.items()]


def _word(state: RunState, task: TaskState, cause: str | None) -> str:
    why = f" ({one_line(task.question, _WHY)})" if task.question else ""
    if task.phase is Phase.MERGED:
        return "✓ Complete"
    if task.phase is Phase.STALE:
        return "⚠ Stale (merged for an older text of the plan)"
    if task.phase is Phase.ABANDONED:
        return f"✗ Failed{why}"
    if cause is not None:
        return f"○ Blocked (needs {cause})"
    if task.phase is Phase.PENDING and not task.attempts:
        return "○ Pending"
    if task.phase in HELPLESS:
        return f"⚡ Needs you{why}"
    going = "In Progress" if state.ended is not RunEnd.ABORTED else "Given Up"
    return f"⚡ {going} (turn {max(1, turns_used(task))})"
