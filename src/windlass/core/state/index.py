"""An index of the tasks: the few that a decision can concern, among the many that cannot change.

Law: it follows from the tasks alone. `index_of` builds it from them, and `moved` updates it for
one task, so that a plan of a thousand tasks is decided as fast as one of ten.
"""

from bisect import insort
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from windlass.core.plan import Plan, Task
from windlass.core.state.transitions import IN_TIP, Phase

_SETTLED = IN_TIP | {Phase.ABANDONED}
_RESTING = frozenset({Phase.MERGED, Phase.ABANDONED, Phase.PENDING, Phase.APPROVED})
"""Finished tasks, and tasks that only wait to start or to be merged."""


class Index(Struct, frozen=True, kw_only=True):
    """Task ids, in the plan's order."""

    live: tuple[str, ...] = ()
    """Started and not done, without those that wait in the merge queue."""
    free: tuple[str, ...] = ()
    """Not started, with all dependencies in the tip; a scenario waits for stale tasks too."""
    abandoned: tuple[str, ...] = ()
    blocked: Mapping[str, str] = {}
    """Tasks that cannot start, each with the abandoned task it waits for (the last if several)."""
    unsettled: Mapping[str | None, int] = {}
    """For each stage, how many tasks are not in the tip, abandoned or blocked."""
    stages: Mapping[str, tuple[str, ...]] = {}
    """The tasks of each stage."""
    merged: int = 0
    """How many are merged and not stale."""
    scenarios: tuple[str, ...] = ()
    highest_complexity: int = 0
    place: Mapping[str, int] = {}
    """The position of each task in the plan."""
    dependents: Mapping[str, tuple[str, ...]] = {}
    """The tasks that depend on each task."""


def index_of(plan: Plan, phases: Mapping[str, Phase]) -> Index:
    dependents: dict[str, list[str]] = {task.id: [] for task in plan.tasks}
    for task in plan.tasks:
        for dep in task.depends_on:
            dependents[dep].append(task.id)
    index = Index(
        live=tuple(task.id for task in plan.tasks if phases[task.id] not in _RESTING),
        free=tuple(task.id for task in plan.tasks if _is_free(task, phases)),
        unsettled=_unsettled(plan, phases),
        stages=_stages(plan),
        merged=sum(phase is Phase.MERGED for phase in phases.values()),
        scenarios=tuple(task.id for task in plan.tasks if task.scenario),
        highest_complexity=max((task.complexity or 0 for task in plan.tasks), default=0),
        place={task.id: place for place, task in enumerate(plan.tasks)},
        dependents={id_: tuple(waiting) for id_, waiting in dependents.items()},
    )
    for task in plan.tasks:
        if phases[task.id] is Phase.ABANDONED:
            index = _with_abandoned(index, plan, phases, task.id)
    return index


def moved(index: Index, plan: Plan, phases: Mapping[str, Phase], id_: str, was: Phase) -> Index:
    """The index after a task has left the phase `was`; `phases` has the new phases."""
    now = phases[id_]
    if Phase.STALE in {was, now}:
        return index_of(plan, phases)  # rare
    if was not in _RESTING and now not in _RESTING:
        return index
    if now is Phase.PENDING or was in _SETTLED or id_ in index.blocked:
        return index_of(plan, phases)  # it was reopened, reset or taken by a person: rare
    live = _without(index.live, id_)
    if now not in _RESTING:
        live = _with(index, live, id_)
    index = replace(index, free=_without(index.free, id_), live=live)
    if now not in _SETTLED:
        return index
    index = replace(index, unsettled=_fewer(index, plan, (id_,)))
    after = _with_abandoned if now is Phase.ABANDONED else _with_merged
    return after(index, plan, phases, id_)


def _with_merged(index: Index, plan: Plan, phases: Mapping[str, Phase], id_: str) -> Index:
    waiting = (plan.tasks[index.place[other]] for other in index.dependents[id_])
    freed = (task.id for task in waiting if _is_free(task, phases))
    return replace(index, free=_with(index, index.free, *freed), merged=index.merged + 1)


def _with_abandoned(index: Index, plan: Plan, phases: Mapping[str, Phase], id_: str) -> Index:
    """The index with all tasks blocked that need this one."""
    lost = [other for other in _reached(index, id_) if phases[other] is Phase.PENDING]
    new = [other for other in lost if other not in index.blocked]
    first = [
        other for other in lost if index.place[index.blocked.get(other, id_)] <= index.place[id_]
    ]
    return replace(
        index,
        abandoned=_with(index, index.abandoned, id_),
        blocked={**index.blocked, **dict.fromkeys(first, id_)},
        unsettled=_fewer(index, plan, new),
    )


def _reached(index: Index, id_: str) -> Iterator[str]:
    """Every task that depends on this one, directly or not."""
    reached, ahead = {id_}, [id_]
    while ahead:
        for other in index.dependents[ahead.pop()]:
            if other not in reached:
                reached.add(other)
                ahead.append(other)
                yield other


def _stages(plan: Plan) -> dict[str, tuple[str, ...]]:
    stages: dict[str, list[str]] = {}
    for task in plan.tasks:
        if task.stage:
            stages.setdefault(task.stage, []).append(task.id)
    return {name: tuple(tasks) for name, tasks in stages.items()}


def _unsettled(plan: Plan, phases: Mapping[str, Phase]) -> dict[str | None, int]:
    counts = Counter(task.stage for task in plan.tasks)
    settled = Counter(task.stage for task in plan.tasks if phases[task.id] in _SETTLED)
    return {stage: count - settled[stage] for stage, count in counts.items()}


def _fewer(index: Index, plan: Plan, settled: Sequence[str]) -> Mapping[str | None, int]:
    """The unsettled tasks of each stage, without these."""
    left = dict(index.unsettled)
    for id_ in settled:
        left[plan.tasks[index.place[id_]].stage] -= 1
    return left


def _with(index: Index, ids: tuple[str, ...], *more: str) -> tuple[str, ...]:
    every = list(ids)
    for id_ in more:
        insort(every, id_, key=index.place.__getitem__)
    return tuple(every)


def _without(ids: tuple[str, ...], id_: str) -> tuple[str, ...]:
    if id_ not in ids:
        return ids
    at = ids.index(id_)
    return ids[:at] + ids[at + 1 :]


def _is_free(task: Task, phases: Mapping[str, Phase]) -> bool:
    """Whether it may start. A stale dependency blocks only a scenario, not other dependents."""
    done = frozenset({Phase.MERGED}) if task.scenario else IN_TIP
    return phases[task.id] is Phase.PENDING and all(phases[dep] in done for dep in task.depends_on)
