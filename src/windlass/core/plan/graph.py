"""The order of tasks, with every rule about ids, dependencies and cycles."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from msgspec.structs import replace

from windlass.core.nearest import did_you_mean
from windlass.core.plan.model import Plan, Task
from windlass.errors import PlanError
from windlass.findings import Finding, worst_first

_SAFE_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
MAX_TASKS = 10_000
"""More than any real plan has; larger input would only cost time."""
_SUGGESTED = 20
"""How many unknown ids are compared with the known ones."""
_BARRIER = "\0"
"""The prefix of barrier names; no task id begins with it."""
_ID_RULE = (
    "an id is letters, digits, '.', '_' and '-', at most 64 of them, "
    "does not begin with '-' or '.', has no '..' and does not end in '.' or '.lock'"
)


def validated(plan: Plan) -> Plan:
    """The plan, if its ids are safe and unique and its order has no cycle; else raises."""
    if found := problems(plan):
        raise PlanError.of(worst_first((*found, *plan.notes), plan.path))
    return plan


def problems(plan: Plan) -> list[Finding]:
    """Every error in the tasks' ids and in their order."""
    if not plan.tasks:
        cure = "a task is a heading such as '## Task 1.1: Title' outside any code block"
        return [_error("no tasks found", cure)]
    if len(plan.tasks) > MAX_TASKS:
        return [_error(f"more than {MAX_TASKS:,} tasks", "split it into several plans")]
    # Without unique ids there is no order to look at.
    return list(_in_ids(plan)) or [*_unknown(plan), *_cycles(plan)]


def _error(text: str, cure: str, task: Task | None = None) -> Finding:
    line, path = (task.line, task.path) if task is not None else (0, "")
    return Finding(line=line, path=path, severity="error", text=text, suggestion=cure)


def ordered(plan: Plan) -> tuple[Task, ...]:
    """Tasks with every dependency before its dependents, otherwise in the plan's order."""
    by_id = {task.id: task for task in plan.tasks}
    placed: dict[str, Task] = {}
    for task in plan.tasks:
        stack = [task.id]
        while stack:
            missing = [dep for dep in by_id[stack[-1]].depends_on if dep not in placed]
            if missing:
                stack.append(missing[0])
            else:
                placed.setdefault(stack[-1], by_id[stack[-1]])
                stack.pop()
    return tuple(placed.values())


def critical_lengths(plan: Plan, estimates: Mapping[str, float]) -> dict[str, float]:
    """For each task the longest path from its start to the plan's end.

    A task without an estimate counts as the average of the others, or 1.
    """
    usual = sum(estimates.values()) / len(estimates) if estimates else 1.0
    longest = {task.id: 0.0 for task in plan.tasks}
    for task in reversed(ordered(plan)):
        longest[task.id] += estimates.get(task.id, usual)
        for dep in task.depends_on:
            longest[dep] = max(longest[dep], longest[task.id])
    return longest


def transitive_dependents(plan: Plan, task_id: str) -> frozenset[str]:
    """Every task that cannot be done unless this one is."""
    reached = {task_id}
    for task in ordered(plan):
        if reached.intersection(task.depends_on):
            reached.add(task.id)
    return frozenset(reached - {task_id})


def steps(plan: Plan) -> dict[str, int]:
    """For each task how many come one after the other up to it, counting itself.

    Where the plan asks for barriers, a stage comes after all of the stages before it.
    """
    return {task: length for task, (length, _) in _farthest(plan).items()}


def critical_path(plan: Plan) -> tuple[str, ...]:
    """The longest chain of dependent tasks; the first of equals."""
    farthest = _farthest(plan)
    here: str | None = max(farthest, key=lambda task: farthest[task][0], default=None)
    path: list[str] = []
    while here is not None:
        path.append(here)
        here = farthest[here][1]
    return tuple(reversed(path))


def longest(plan: Plan, lengths: Mapping[str, float]) -> float:
    """How long the plan takes at least, with tasks of these lengths and agents without end."""
    waits = _waits(plan)
    found: dict[str, float] = {}
    for node in _sorted(waits) or _sorted(_waits(replace(plan, stages=()))):
        before = max((found.get(dep, 0.0) for dep in waits[node]), default=0.0)
        found[node] = before + lengths.get(node, 0.0)
    return max(found.values(), default=0.0)


def _farthest(plan: Plan) -> dict[str, tuple[int, str | None]]:
    """For each task the length of the longest chain that ends with it, and the task before it."""
    waits = _waits(plan)
    found: dict[str, tuple[int, str | None]] = {}
    for node in _sorted(waits) or _sorted(_waits(replace(plan, stages=()))):
        length, before = 0, None
        for dep in waits[node]:
            reached, earlier = found.get(dep, (0, None))
            if reached > length:
                length, before = reached, earlier if dep.startswith(_BARRIER) else dep
        found[node] = (length, before) if node.startswith(_BARRIER) else (length + 1, before)
    return {task.id: found[task.id] for task in plan.tasks}


def _waits(plan: Plan) -> dict[str, list[str]]:
    """What each task waits for; a barrier is a node too, or there would be too many edges."""
    waits = {task.id: list(task.depends_on) for task in plan.tasks}
    members: dict[str, list[str]] = {stage.name: [] for stage in plan.stages}
    for task in plan.tasks:
        if task.stage in members:
            members[task.stage].append(task.id)
    for number, (before, name) in enumerate(pairwise(members)):
        barrier, last = f"{_BARRIER}{number + 1}", f"{_BARRIER}{number}"
        waits[barrier] = [*members[before], *([last] if number else [])]
        for task_id in members[name]:
            waits[task_id].append(barrier)
    return waits


def _sorted(waits: Mapping[str, list[str]]) -> list[str]:
    """Every node after all it waits for; empty for a cycle: stages may contradict dependencies."""
    missing = {node: len(deps) for node, deps in waits.items()}
    dependents: dict[str, list[str]] = {node: [] for node in waits}
    for node, deps in waits.items():
        for dep in deps:
            dependents[dep].append(node)
    free = [node for node, count in missing.items() if not count]
    for node in free:
        for dependent in dependents[node]:
            missing[dependent] -= 1
            if not missing[dependent]:
                free.append(dependent)
    return free if len(free) == len(waits) else []


def _at(plan: Plan, first: Task, second: Task) -> str:
    if first.path == second.path:
        return f"on line {first.line}"
    return f"in {first.path or plan.path}:{first.line}"


def _in_ids(plan: Plan) -> Iterator[Finding]:
    """Ids that are unsafe, or used twice."""
    seen: dict[str, Task] = {}
    for task in plan.tasks:
        if _is_unsafe(task.id):
            yield _error(f"task id {task.id!r} cannot name a ref and a folder", _ID_RULE, task)
        if (first := seen.setdefault(task.id.casefold(), task)) is not task:
            what = f"task id {task.id!r} is already used {_at(plan, first, task)}"
            yield _error(what, "give each task a different id (case does not count)", task)


def _is_unsafe(task_id: str) -> bool:
    return (
        not _SAFE_ID.fullmatch(task_id)
        or ".." in task_id
        or task_id.endswith(".")
        or task_id.casefold().endswith(".lock")
    )


def _unknown(plan: Plan) -> Iterator[Finding]:
    """Dependencies on tasks that are not in the plan."""
    ids = {task.id for task in plan.tasks}
    listed = f"the plan has {', '.join(sorted(ids)[:12])}"
    unknown = ((task, dep) for task in plan.tasks for dep in task.depends_on if dep not in ids)
    for number, (task, dep) in enumerate(unknown):
        what = f"task {task.id!r} depends on {dep!r}, which is not in the plan"
        # To compare every unknown id with every known one would take too long.
        cure = did_you_mean(dep, ids, listed) if number < _SUGGESTED else listed
        yield _error(what, cure, task)


def _cycles(plan: Plan) -> Iterator[Finding]:
    """Tasks that wait for each other; each is named in one cycle at most."""
    by_id = {task.id: task for task in plan.tasks}
    waits = {task.id: [dep for dep in task.depends_on if dep in by_id] for task in plan.tasks}
    done: set[str] = set()
    for task in plan.tasks:
        trail: dict[str, int] = {}  # the path from `task` to `here`, each with its next edge
        at: list[str] = [task.id]
        while at:
            here = at[-1]
            edge = trail.setdefault(here, 0)
            deps = waits[here]
            if here in done or edge == len(deps):
                done.add(here)
                trail.pop(here)
                at.pop()
                continue
            trail[here] = edge + 1
            if deps[edge] in trail:
                cycle = [*at[at.index(deps[edge]) :], deps[edge]]
                what = f"tasks wait for each other: {' → '.join(cycle)}"
                yield _error(what, "remove one of these dependencies", by_id[cycle[0]])
                done |= trail.keys()
                break
            if deps[edge] not in done:
                at.append(deps[edge])
