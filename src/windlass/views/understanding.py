"""A plan as Windlass read it, for people: its tasks, their order, and what a run would meet."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from windlass.core.plan import Finding, Plan, Task, critical_path
from windlass.views.columns import columns, cut, fitted, wrapped
from windlass.views.graph import by_stage, picture
from windlass.views.outlook import Outlook, asking_lines, forecast_lines, warnings_of
from windlass.views.words import one_line, plural

MIN_WIDTH = 60
_MARGIN = 2
_LABEL = 8
_ID_COLUMNS = 16
_SOME_IDS = 12
_SOME_NOTES = 30
_SOME_FILES = 10
_PATH = 4096
_ENDS = 30
"""How many tasks of a long critical path are named at either end of it."""


def understanding(
    plan: Plan, *, width: int, verbose: bool = False, seen: Outlook | None = None
) -> list[str]:
    """The lines; with `verbose` lists are shown in full instead of counted.

    With an outlook, they also say what a run would meet.

    None is wider than `width`, but for a path, which is of use only whole.
    """
    wide = max(width, MIN_WIDTH)
    lines = [*_head(plan, wide)]
    tasks, _ = by_stage(plan)
    at = _MARGIN + min(max(len(task.id) for task in tasks), _ID_COLUMNS) + 2
    counts = Counter(task.stage for task in tasks)
    befores = {later.name: earlier.name for earlier, later in pairwise(plan.stages)}
    gates = {stage.name: stage.checks for stage in plan.stages}
    for before, task in zip((None, *tasks), tasks, strict=False):
        if task.stage and (before is None or before.stage != task.stage):
            name = task.stage
            stage = _stage(name, counts[name], befores.get(name), gates.get(name, ()), wide)
            lines += ["", *stage]
        lines += ["", *_task(plan, task, wide, at, verbose=verbose)]
    if len(tasks) > 1:
        drawn = picture(plan, wide - _MARGIN)
        legend = wrapped(drawn.legend.split(" · "), wide - _MARGIN, between=" · ")
        lines += ["", "Order", *_indented([*legend, "", *drawn.lines])]
        lines += ["", *_path(plan, wide)]
    lines += _end(plan, wide)
    if seen is not None:
        lines += _titled("A run stops and asks", asking_lines(seen), wide)
        lines += _titled("Estimate", forecast_lines(seen), wide)
    found = plan.notes if seen is None else seen.findings
    notes = [each for each in found if each.severity == "note"]
    lines += _listed(plan, "Passed over", notes, wide, verbose=verbose)
    return [*lines, *_listed(plan, "Warnings", warnings_of(found), wide, verbose=verbose)]


def _head(plan: Plan, width: int) -> Iterator[str]:
    yield fitted(plan.title, width)
    yield f"{' ' * _MARGIN}{one_line(plan.path, _PATH)}"
    about = (f"dialect {plan.dialect}", f"id {plan.id}")
    yield from _indented(wrapped(about, width - _MARGIN, between=" · "))
    stages = {task.stage for task in plan.tasks if task.stage}
    count = sum(len(task.acceptance_criteria) for task in plan.tasks)
    counts = [plural(len(plan.tasks), "task"), criteria(count)]
    if stages:
        counts.insert(1, plural(len(stages), "stage"))
    yield f"  {' · '.join(counts)}"


def criteria(count: int) -> str:
    """`no criteria`, `1 criterion`, `2 criteria`."""
    return f"{count or 'no'} {'criterion' if count == 1 else 'criteria'}"


def _stage(
    name: str, count: int, before: str | None, gates: Sequence[str], width: int
) -> Iterator[str]:
    yield fitted(f"Stage {name}", width - 20) + f" · {plural(count, 'task')}"
    if before is not None:
        yield fitted(f"begins when stage {before} is done", width)
    yield from _labelled("gate", gates, width, at=0)


def _task(plan: Plan, task: Task, width: int, at: int, *, verbose: bool) -> Iterator[str]:
    name = f"{' ' * _MARGIN}{task.id}  "
    yield cut(f"{name:{at}}{one_line(task.title, width)}", width)
    parts = [_after(task), criteria(len(task.acceptance_criteria)), *_more(task)]
    yield from _indented(wrapped(parts, width - at, between=" · "), at)
    if task.path:
        yield f"{' ' * at}{'in':{_LABEL}}{_place(plan, task)}"
    yield from _labelled("files", _some(task.files, verbose=verbose), width, at=at, between=", ")
    yield from _labelled("checks", task.checks, width, at=at)
    for number, text in enumerate(task.acceptance_criteria if verbose else (), 1):
        yield from _criterion(f"{number}. ", text, width, at)


def _more(task: Task) -> Iterator[str]:
    """The properties that only some tasks have."""
    if task.complexity is not None:
        yield f"complexity {task.complexity}"
    if task.model:
        yield f"model {task.model}"
    if task.max_turns:
        yield f"at most {plural(task.max_turns, 'turn')}"
    if task.skip_absent:
        yield "absent checks are skipped"
    if task.removes_tests:
        yield "removes tests"
    if task.marked_done:
        yield "marked as done"
    if task.line and not task.path:
        yield f"line {task.line}"


def _after(task: Task) -> str:
    if not task.depends_on:
        return "needs nothing"
    some, more = task.depends_on[:_SOME_IDS], len(task.depends_on) - _SOME_IDS
    return f"after {', '.join(some)}{f' and {more:,} more' if more > 0 else ''}"


def _some(files: Sequence[str], *, verbose: bool) -> Sequence[str]:
    more = len(files) - _SOME_FILES
    return files if verbose or more <= 0 else [*files[:_SOME_FILES], f"and {more:,} more"]


def _labelled(
    label: str, items: Sequence[str], width: int, *, at: int, between: str = ""
) -> Iterator[str]:
    """The items after their label, each on a line, or joined with `between`."""
    if not items:
        return
    room = width - at - _LABEL
    lines = wrapped(items, room, between=between) if between else (fitted(i, room) for i in items)
    for number, line in enumerate(lines):
        yield f"{' ' * at}{label if not number else '':{_LABEL}}{line}"


def _criterion(number: str, text: str, width: int, at: int) -> Iterator[str]:
    """The whole text, wrapped; indented lines stay indented."""
    head = number
    for line in text.split("\n"):
        inner = min(len(line) - len(line.lstrip()), 8)
        for part in wrapped(line.split(), width - at - len(head) - inner):
            yield f"{' ' * at}{head}{' ' * inner}{part}".rstrip()
            head = " " * len(number)


def _path(plan: Plan, width: int) -> Iterator[str]:
    path = critical_path(plan)
    yield f"Critical path: {len(path):,} of {plural(len(plan.tasks), 'task')}, one after the other"
    if len(path) > 2 * _ENDS:
        left_out = f"({len(path) - 2 * _ENDS:,} more)"
        path = (*path[:_ENDS], left_out, *path[-_ENDS:])
    yield from _indented(wrapped(path, width - _MARGIN, between=" → "))


def _end(plan: Plan, width: int) -> Iterator[str]:
    if plan.checks:
        yield ""
        yield "Every task must pass"
        yield from _indented(fitted(check, width - _MARGIN) for check in plan.checks)
    if plan.e2e:
        yield ""
        yield "It has an E2E scenario; --e2e runs it."
    if done := [task.id for task in plan.tasks if task.marked_done]:
        yield ""
        yield f"{len(done):,} of {plural(len(plan.tasks), 'task')} marked as done."
        yield "A run ignores these marks; `windlass adopt` imports them."


def _titled(title: str, lines: Iterable[str], width: int) -> list[str]:
    shown = [part for line in lines for part in wrapped(line.split(), width - _MARGIN)]
    return ["", title, *_indented(shown)] if shown else []


def _listed(
    plan: Plan, title: str, findings: Sequence[Finding], width: int, *, verbose: bool
) -> Iterator[str]:
    if not findings:
        return
    shown = findings if verbose else findings[:_SOME_NOTES]
    yield ""
    yield title
    for finding in shown:
        yield from _finding(plan, finding, width)
    if len(shown) < len(findings):
        yield f"  … and {len(findings) - len(shown):,} more; --verbose shows all"


def _finding(plan: Plan, finding: Finding, width: int) -> Iterator[str]:
    where, text = _place(plan, finding), one_line(finding.words, 500)
    if _MARGIN + columns(f"{where}: {text}") <= width:
        yield f"{' ' * _MARGIN}{where}: {text}"
        return
    yield f"{' ' * _MARGIN}{where}:"
    yield from _indented(wrapped(text.split(), width - 2 * _MARGIN), 2 * _MARGIN)


def _place(plan: Plan, what: Task | Finding) -> str:
    path = one_line(what.path or plan.path, _PATH)
    return f"{path}:{what.line}" if what.line else path


def _indented(lines: Iterable[str], by: int = _MARGIN) -> Iterator[str]:
    return (f"{' ' * by}{line}".rstrip() for line in lines)
