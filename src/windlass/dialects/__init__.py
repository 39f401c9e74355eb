"""The dialects a plan may be written in, and the one way from a file's text to a valid plan.

Whatever the text is, `load` answers with a plan that keeps every rule of `windlass.plan`, or with
a PlanError that says where and how to mend it. A dialect is one file here, and one entry below.
"""

import re
from collections.abc import Mapping
from itertools import islice
from types import MappingProxyType
from typing import NoReturn

from msgspec.structs import replace

from windlass.dialects import markdown, yaml_events
from windlass.dialects.claims import Claims
from windlass.dialects.dialect import Dialect, Projection, Redact, Source
from windlass.dialects.feature import FEATURE
from windlass.dialects.layers import LAYERS
from windlass.dialects.milestone import MILESTONE
from windlass.dialects.spec import SPEC
from windlass.dialects.speckit import SPECKIT
from windlass.dialects.taskfile import TASKFILE
from windlass.dialects.taskfolder import TASKFOLDER
from windlass.errors import PlanError
from windlass.plan import MAX_TASKS, Plan, validated
from windlass.state import RunState

_MAX_TEXT = 10_000_000
_MAX_LINE = 1_000_000
_MAX_LINES = 100_000
"""Of one file. Reading takes its time by the line, and nobody writes as many."""
_MAX_LINES_IN_ALL = 500_000
_MAX_ID = 64
_SHORT = 200_000
"""Characters of a file that is looked at for a hint only."""
_SOME = 50

_NOT_UNICODE = re.compile("[\ud800-\udfff]")  # what decoding leaves of bytes that are not UTF-8
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]", re.MULTILINE)
_YAML = re.compile(r"\.ya?ml$", re.IGNORECASE)
_UNKNOWN = Dialect(name="", recognises=lambda _source: False, parse=MILESTONE.parse)
_A_PLAN = (
    "a plan is Markdown with a heading such as '## Task 1.1: Title' for each task, "
    "and '**Acceptance Criteria:**' with a list under it"
)
_A_FOLDER = "a folder is a plan where its Markdown files begin with 'id: …' and 'status: …'"


DIALECTS: tuple[Dialect, ...] = (
    FEATURE,
    SPEC,
    MILESTONE,
    TASKFILE,
    SPECKIT,
    LAYERS,
    TASKFOLDER,
)
"""Every dialect; the first that recognises a source reads it."""


CONTINUE_HERE: tuple[str, ...] = tuple(dict.fromkeys(each.continue_here for each in DIALECTS))
"""Every file below the repository that may say where a paused run stands."""


def load(path: str, text: str | Mapping[str, str], *, dialect: str | None = None) -> Plan:
    """The valid plan that this file's text is, or these texts of a folder's files by their paths.

    The path names the plan and stands in messages.
    """
    source = _readable(path, {path: text} if isinstance(text, str) else text)
    plan = _chosen(source, dialect).parse(source)
    if not plan.tasks and plan.notes:
        note = plan.notes[0]
        raise PlanError("no tasks found", path=path, line=note.line, hint=f"this line {note.text}")
    # A folder's name has no suffix to take away: 'v1.2' is all of it.
    folder = re.split(r"[/\\]", path.rstrip("/\\"))[-1] if source.text is None else None
    safe = plan_id(path, plan.id or folder)
    return validated(replace(plan, id=safe, title=plan.title or safe))


def refers_to(
    path: str, texts: Mapping[str, str], *, dialect: str | None = None
) -> tuple[str, ...]:
    """Other files below the repository that belong to the plan, by what its own text says."""
    source = _readable(path, texts)
    found = _recognised(source) if dialect is None else _named(dialect, path)
    return found.refers_to(source) if found is not None else ()


def plan_id(path: str, declared: str | None) -> str:
    """The declared id, else the file's stem, made safe as a part of a ref and as a folder."""
    name = declared
    if name is None:
        leaf = re.split(r"[/\\]", path.rstrip("/\\"))[-1]
        stem, dot, _ = leaf.rpartition(".")
        name = stem if dot and stem.strip(".") else leaf
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
    safe = re.sub(r"\.{2,}", ".", safe).lstrip(".-")[:_MAX_ID]
    # A ref may end in neither, and cutting one off may bare the other.
    while (shorter := re.sub(r"\.lock$", "", safe, flags=re.IGNORECASE).rstrip(".-")) != safe:
        safe = shorter
    return safe or "plan"


def _recognised(source: Source) -> Dialect | None:
    return next((each for each in DIALECTS if each.recognises(source)), None)


def _chosen(source: Source, name: str | None) -> Dialect:
    if name is None:
        found = _recognised(source)
        if found is not None:
            return found
        if source.text is None and (alone := _alone(source)):
            cure = f"name a file in it: {', '.join(alone)}"
            raise PlanError("the folder as a whole is no plan", path=source.path, hint=cure)
        if source.text is None:
            raise PlanError("no tasks found", path=source.path, hint=_A_FOLDER)
        if _YAML.search(source.path):
            yaml_events.read(source.path, source.text)  # what breaks it off is what to mend
        if not _HEADING.search(source.text):
            raise PlanError("no tasks found", path=source.path, hint=_A_PLAN)
        # Its own reading says best what was seen and not taken for a task.
        return MILESTONE
    return _named(name, source.path)


def _alone(source: Source) -> list[str]:
    """The first of a folder's files that are plans by themselves."""
    short = [path for path, text in source.texts.items() if len(text) <= _SHORT]
    singles = (Source(path=path, texts={path: source.texts[path]}) for path in short[:_SOME])
    return list(islice((each.path for each in singles if _recognised(each)), 3))


def _named(name: str, path: str) -> Dialect:
    for each in DIALECTS:
        if each.name == name:
            return each
    raise PlanError(
        f"there is no dialect {name!r}",
        path=path,
        hint=f"the dialects are {', '.join(each.name for each in DIALECTS)}",
    )


def _readable(path: str, texts: Mapping[str, str]) -> Source:
    """The source, once every text of it can be made sense of in reasonable time."""
    lines = sum(_refuse_unreadable(name, text) for name, text in texts.items())
    if lines > _MAX_LINES_IN_ALL:
        cure = "make several plans of it"
        raise PlanError(f"more than {_MAX_LINES_IN_ALL:,} lines in all", path=path, hint=cure)
    if path in texts and not texts[path].removeprefix("\ufeff").strip():
        _refuse(path, 0, "empty")
    return Source(path=path, texts=texts)


def _refuse_unreadable(path: str, text: str) -> int:
    """Refuse what no dialect could make sense of, before anyone spends time on it.

    The number of its lines.
    """
    if len(text) > _MAX_TEXT:
        _refuse(path, 0, f"too long: it has more than {_MAX_TEXT:,} characters")
    if (at := text.find("\0")) >= 0:
        _refuse(path, _line_of(text, at), "not text: it has a NUL byte")
    if found := _NOT_UNICODE.search(text):
        _refuse(path, _line_of(text, found.start()), "not UTF-8 text")
    return _refuse_long(path, text)


def _refuse_long(path: str, text: str) -> int:
    """Refuse what would take too long to read; the number of lines of what does not."""
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


def writes(plan: Plan) -> tuple[str, ...]:
    """Every file below the repository that the plan's state is written to."""
    return _of(plan).writes(plan)


def continue_here_path(plan: Plan) -> str:
    """The file below the repository that says where a paused run of the plan stands."""
    return _of(plan).continue_here


def shares(plan: Plan) -> tuple[str, ...]:
    """Those of them that are the user's own, of which only some part is written."""
    return _of(plan).shares(plan)


def project(
    state: RunState,
    seq: int,
    texts: Mapping[str, str] = MappingProxyType({}),
    redact: Redact = str,
) -> Projection:
    """The state files of the plan's dialect, as of a journal position.

    `texts` are the files of `writes` as they are now, but for those that are gone.
    """
    return _of(state.plan).project(state, seq, texts, redact)


def claims(path: str, text: str) -> Claims | None:
    """What another tool's state file claims; None where no dialect knows such a file."""
    found = (each.claims(path, text) for each in DIALECTS)
    return next((each for each in found if each is not None), None)


def _of(plan: Plan) -> Dialect:
    # A journal may tell of a dialect that only a newer version knows; its files are left alone.
    return next((each for each in DIALECTS if each.name == plan.dialect), _UNKNOWN)
