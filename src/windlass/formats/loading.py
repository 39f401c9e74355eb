"""The one way from a text to a valid plan.

`load` returns a plan that keeps every rule of `windlass.core.plan`, or raises a PlanError with all
that is wrong in it, each with its place and the cure.
"""

import re
from collections.abc import Mapping
from itertools import islice
from typing import NoReturn

from msgspec.structs import replace

from windlass.core.nearest import did_you_mean
from windlass.core.plan import MAX_TASKS, Plan, problems, validated
from windlass.errors import PlanError
from windlass.findings import worst_first
from windlass.formats import markdown, registry, yaml
from windlass.formats.dialect import Dialect, Source
from windlass.formats.milestone import MILESTONE

_MAX_TEXT = 10_000_000
_MAX_LINE = 1_000_000
_MAX_LINES = 100_000
"""Of one file: the time to read it grows with its lines."""
_MAX_LINES_IN_ALL = 500_000
_MAX_ID = 64
_MAX_HINT_TEXT = 200_000
"""Characters of a file that is read only for a hint."""
_MAX_HINT_FILES = 50

_NOT_UNICODE = re.compile("[\ud800-\udfff]")  # what decoding leaves of bytes that are not UTF-8
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]", re.MULTILINE)
_YAML = re.compile(r"\.ya?ml$", re.IGNORECASE)
_A_PLAN = (
    "a plan is Markdown with a heading such as '## Task 1.1: Title' for each task, "
    "and '**Acceptance Criteria:**' with a list under it"
)
_A_FOLDER = "a folder is a plan where its Markdown files begin with 'id: …' and 'status: …'"


def load(path: str, text: str | Mapping[str, str], *, dialect: str | None = None) -> Plan:
    """The valid plan in this file's text, or in the texts of a folder's files by their paths.

    The path names the plan and appears in messages.
    """
    source = _readable(path, {path: text} if isinstance(text, str) else text)
    plan = _chosen(source, dialect).parse(source)
    errors = [note for note in plan.notes if note.severity == "error"]
    if not plan.tasks and plan.notes and not errors:
        note = min(plan.notes, key=lambda note: note.severity == "note")
        hint = f"this line {note.text}" if note.severity == "note" else note.words
        raise PlanError("no tasks found", path=path, line=note.line, hint=hint)
    # The name of a folder has no suffix to remove: 'v1.2' is all of it.
    folder = re.split(r"[/\\]", path.rstrip("/\\"))[-1] if source.text is None else None
    safe = plan_id(path, plan.id or folder)
    if errors:
        order = problems(plan) if plan.tasks else ()
        raise PlanError.of(worst_first((*plan.notes, *order), path))
    return validated(replace(plan, id=safe, title=plan.title or safe))


def refers_to(
    path: str, texts: Mapping[str, str], *, dialect: str | None = None
) -> tuple[str, ...]:
    """Other files below the repository that belong to the plan, as its own text says."""
    source = _readable(path, texts)
    found = _recognised(source) if dialect is None else _named(dialect, path)
    return found.refers_to(source) if found is not None else ()


def plan_id(path: str, declared: str | None) -> str:
    """The declared id, else the file's stem, made safe for refs and folders."""
    name = declared
    if name is None:
        leaf = re.split(r"[/\\]", path.rstrip("/\\"))[-1]
        stem, dot, _ = leaf.rpartition(".")
        name = stem if dot and stem.strip(".") else leaf
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
    safe = re.sub(r"\.{2,}", ".", safe).lstrip(".-")[:_MAX_ID]
    # A ref may end in neither '.lock' nor '.', and removing one may expose the other.
    while (shorter := re.sub(r"\.lock$", "", safe, flags=re.IGNORECASE).rstrip(".-")) != safe:
        safe = shorter
    return safe or "plan"


def _recognised(source: Source) -> Dialect | None:
    return next((each for each in registry.DIALECTS if each.recognises(source)), None)


def _chosen(source: Source, name: str | None) -> Dialect:
    if name is not None:
        return _named(name, source.path)
    found = _recognised(source)
    if found is not None:
        return found
    if source.text is None and (plans := _plans_inside(source)):
        cure = f"name a file in it: {', '.join(plans)}"
        raise PlanError("the folder as a whole is no plan", path=source.path, hint=cure)
    if source.text is None:
        raise PlanError("no tasks found", path=source.path, hint=_A_FOLDER)
    if _YAML.search(source.path):
        yaml.read(source.path, source.text)  # an error in it is the first thing to fix
    if not _HEADING.search(source.text):
        raise PlanError("no tasks found", path=source.path, hint=_A_PLAN)
    # Its reader explains best why a heading is not a task.
    return MILESTONE


def _plans_inside(source: Source) -> list[str]:
    """The first files of a folder that are plans by themselves."""
    short = [path for path, text in source.texts.items() if len(text) <= _MAX_HINT_TEXT]
    files = (
        Source(path=path, texts={path: source.texts[path]}) for path in short[:_MAX_HINT_FILES]
    )
    return list(islice((each.path for each in files if _recognised(each)), 3))


def _named(name: str, path: str) -> Dialect:
    for each in registry.DIALECTS:
        if each.name == name:
            return each
    names = [each.name for each in registry.DIALECTS]
    listed = f"the dialects are {', '.join(names)}"
    raise PlanError(
        f"there is no dialect {name!r}", path=path, hint=did_you_mean(name, names, listed)
    )


def _readable(path: str, texts: Mapping[str, str]) -> Source:
    """The source, once each of its texts can be read in reasonable time."""
    lines = sum(_count_lines(name, text) for name, text in texts.items())
    if lines > _MAX_LINES_IN_ALL:
        cure = "split it into several plans"
        raise PlanError(f"more than {_MAX_LINES_IN_ALL:,} lines in all", path=path, hint=cure)
    if path in texts and not texts[path].removeprefix("\ufeff").strip():
        _refuse(path, 0, "empty")
    return Source(path=path, texts=texts)


def _count_lines(path: str, text: str) -> int:
    """The number of lines; refuses a text that no dialect can read, before time is spent on it."""
    if len(text) > _MAX_TEXT:
        _refuse(path, 0, f"too long: it has more than {_MAX_TEXT:,} characters")
    if (at := text.find("\0")) >= 0:
        _refuse(path, _line_of(text, at), "not text: it has a NUL byte")
    if found := _NOT_UNICODE.search(text):
        _refuse(path, _line_of(text, found.start()), "not UTF-8 text")
    lines = markdown.split_lines(text)
    for number, line in enumerate(lines, 1):
        if len(line) > _MAX_LINE:
            _refuse(path, number, f"no plan: a line has more than {_MAX_LINE:,} characters")
    if len(lines) > _MAX_LINES:
        _refuse(path, 0, f"too long: it has more than {_MAX_LINES:,} lines")
    if len(_HEADING.findall(text)) > MAX_TASKS:
        _refuse(path, 0, f"too long: it has more than {MAX_TASKS:,} headings")
    return len(lines)


def _line_of(text: str, at: int) -> int:
    return len(markdown.split_lines(text[:at]))


def _refuse(path: str, line: int, why: str) -> NoReturn:
    raise PlanError(f"the file is {why}", path=path, line=line, hint=_A_PLAN)
