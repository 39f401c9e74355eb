"""The edits between two versions of a plan, task by task, by id."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator

from msgspec import Struct, structs

from windlass.core.plan.model import Plan, Task

_MEANING = (
    *("title", "text", "acceptance_criteria"),
    *("checks", "creates", "skip_absent", "removes_tests"),
)
"""The fields that hold what a task asks for."""

_TEXT = ("title", "text", "acceptance_criteria", "checks", "skip_absent", "removes_tests")
"""The fields that decide what is judged again. Journals depend on this: it cannot change."""

_BOX = re.compile(r"(?m)^([ \t]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*)\[[^\[\]\n]?\](?=[ \t\n]|\Z)")
"""A checkbox at the start of a line. A tick is about progress, not about what a task asks for."""
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_CODE = re.compile(r" {4}|\t")

_PLACE = ("line", "path", "marked_done")
"""The position of a task and a claim about it: no part of the task itself."""


class Edits(Struct, frozen=True, kw_only=True):
    """Ids of tasks, in the order of the newer plan, or of the older for removed ones."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Tasks that ask for something else than before."""
    adjusted: tuple[str, ...] = ()
    """Tasks that ask for the same, but with another order, model or so."""
    reordered: bool = False
    plan_level: tuple[str, ...] = ()
    """Changed fields of the plan itself."""

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in structs.asdict(self))


def same_text(old: Task, new: Task) -> bool:
    """Whether both ask for the same, word for word: then nothing needs judging again."""
    return all(getattr(old, name) == getattr(new, name) for name in _TEXT)


def same_meaning(old: Task, new: Task) -> bool:
    """Whether both ask for the same; work merged for another meaning is stale."""
    return old is new or _meaning(old) == _meaning(new)


def digest_of(task: Task) -> str:
    """A digest of what a task asks for: equal for two tasks that ask for the same."""
    text = json.dumps(_meaning(task), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _meaning(task: Task) -> tuple[object, ...]:
    """What a task asks for: title, text, criteria, checks, and the files it must create.

    Spaces outside of code, ticks, and the order of criteria, checks and files do not count.
    """
    return (
        _plain(task.title),
        _plain(task.text),
        _sorted(_plain(each) for each in task.acceptance_criteria),
        _sorted(task.checks),
        _sorted(task.creates),
        task.skip_absent,
        # Only if set, so that the digests of earlier texts stay the same.
        *((True,) if task.removes_tests else ()),
    )


def with_meaning(task: Task, of: Task) -> Task:
    """The task at its own position in the plan, with what the other asks for."""
    return structs.replace(task, **{name: getattr(of, name) for name in _MEANING})


def _sorted(each: Iterable[str]) -> list[str]:
    return sorted(set(each))


def _plain(text: str) -> str:
    return "\n".join(_paragraphs(_BOX.sub(r"\1[ ]", text.replace("\r\n", "\n"))))


def _paragraphs(text: str) -> Iterator[str]:
    """Each paragraph of prose as one line; lines of code as they are."""
    prose, fence = list[str](), ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        is_code = bool(fence) or mark is not None or _CODE.match(line) is not None
        if not is_code or not line.strip():
            prose += line.split() if not fence else ()
            continue
        if prose:
            yield " ".join(prose)
            prose.clear()
        yield line.rstrip()
        if mark is not None and not fence:
            fence = mark[1]
        elif mark is not None and mark[1].startswith(fence):
            fence = ""
    if prose:
        yield " ".join(prose)


def compare(old: Plan, new: Plan) -> Edits:
    """The edits from one plan to the other; a scenario task is derived and no edit."""
    before = {task.id: task for task in old.tasks if not task.scenario}
    after = {task.id: task for task in new.tasks if not task.scenario}
    both = [id_ for id_ in after if id_ in before]
    return Edits(
        added=tuple(id_ for id_ in after if id_ not in before),
        removed=tuple(id_ for id_ in before if id_ not in after),
        changed=tuple(id_ for id_ in both if not same_meaning(before[id_], after[id_])),
        adjusted=tuple(
            id_
            for id_ in both
            if same_meaning(before[id_], after[id_]) and not _same(before[id_], after[id_])
        ),
        reordered=both != [id_ for id_ in before if id_ in after],
        plan_level=tuple(
            name
            for name in ("title", "checks", "stages", "e2e")
            if getattr(old, name) != getattr(new, name)
        ),
    )


def _same(old: Task, new: Task) -> bool:
    place = {name: getattr(new, name) for name in _PLACE}
    return structs.replace(old, **place) == new
