"""The order of tasks. Every rule about ids, dependencies and cycles lives in this file."""

import re
from collections.abc import Mapping

from windlass.errors import PlanError
from windlass.plan.model import Plan, Task

_SAFE_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
MAX_TASKS = 10_000
"""More than anyone plans; what has more is no plan, and would take its time."""
_ID_RULE = (
    "an id is letters, digits, '.', '_' and '-', at most 64 of them, "
    "begins with none of '-' and '.', has no '..' and does not end in '.' or '.lock'"
)


def validated(plan: Plan) -> Plan:
    """The plan itself, once its ids are safe and unique and its order has no cycle."""
    if not plan.tasks:
        raise PlanError(
            "no tasks found",
            path=plan.path,
            hint="a task is a heading such as '## Task 1.1: Title' outside any code block",
        )
    if len(plan.tasks) > MAX_TASKS:
        raise PlanError(
            f"more than {MAX_TASKS:,} tasks", path=plan.path, hint="make several plans of it"
        )
    seen: dict[str, Task] = {}
    for task in plan.tasks:
        _refuse_unsafe(plan, task)
        if (first := seen.get(task.id.casefold())) is not None:
            raise PlanError(
                f"task id {task.id!r} is already used {_at(plan, first, task)}",
                path=task.path or plan.path,
                line=task.line,
                hint="give each task an id of its own (case does not count)",
            )
        seen[task.id.casefold()] = task
    _refuse_unknown(plan)
    _refuse_cycle(plan)
    return plan


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
    """For each task the longest way from its start to the plan's end; a task unknown counts 1."""
    longest = {task.id: 0.0 for task in plan.tasks}
    for task in reversed(ordered(plan)):
        longest[task.id] += estimates.get(task.id, 1.0)
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


def _at(plan: Plan, first: Task, second: Task) -> str:
    if first.path == second.path:
        return f"on line {first.line}"
    return f"in {first.path or plan.path}:{first.line}"


def _refuse_unsafe(plan: Plan, task: Task) -> None:
    unsafe = (
        not _SAFE_ID.fullmatch(task.id)
        or ".." in task.id
        or task.id.endswith(".")
        or task.id.casefold().endswith(".lock")
    )
    if unsafe:
        raise PlanError(
            f"task id {task.id!r} cannot name a ref and a folder",
            path=task.path or plan.path,
            line=task.line,
            hint=_ID_RULE,
        )


def _refuse_unknown(plan: Plan) -> None:
    ids = {task.id for task in plan.tasks}
    for task in plan.tasks:
        for dep in task.depends_on:
            if dep not in ids:
                raise PlanError(
                    f"task {task.id!r} depends on {dep!r}, which is not in the plan",
                    path=task.path or plan.path,
                    line=task.line,
                    hint=f"the plan has {', '.join(sorted(ids)[:12])}",
                )


def _refuse_cycle(plan: Plan) -> None:
    by_id = {task.id: task for task in plan.tasks}
    done: set[str] = set()
    for task in plan.tasks:
        trail: dict[str, int] = {}  # the way from `task` to where we stand, each with its next edge
        at: list[str] = [task.id]
        while at:
            here = at[-1]
            edge = trail.setdefault(here, 0)
            deps = by_id[here].depends_on
            if here in done or edge == len(deps):
                done.add(here)
                trail.pop(here)
                at.pop()
                continue
            trail[here] = edge + 1
            if deps[edge] in trail:
                cycle = [*at[at.index(deps[edge]) :], deps[edge]]
                raise PlanError(
                    f"tasks wait for each other: {' → '.join(cycle)}",
                    path=by_id[cycle[0]].path or plan.path,
                    line=by_id[cycle[0]].line,
                    hint="remove one of these dependencies",
                )
            if deps[edge] not in done:
                at.append(deps[edge])
