"""The dialects a plan may be written in, and the one way from a file's text to a valid plan.

Whatever the text is, `load` answers with a plan that keeps every rule of `windlass.plan`, or with
a PlanError that says where and how to mend it. A dialect is one file here, and one entry below.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NoReturn, Protocol

from msgspec.structs import replace

from windlass.dialects import markdown, milestone, milestone_state, taskfile, taskfile_state
from windlass.errors import PlanError
from windlass.plan import Plan, validated
from windlass.state import RunState

_MAX_TEXT = 10_000_000
_MAX_LINE = 1_000_000
_MAX_ID = 64

_NOT_UNICODE = re.compile("[\ud800-\udfff]")  # what decoding leaves of bytes that are not UTF-8
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]", re.MULTILINE)
_A_PLAN = (
    "a plan is Markdown with a heading such as '## Task 1.1: Title' for each task, "
    "and '**Acceptance Criteria:**' with a list under it"
)


class Dialect(Protocol):
    """One plan format."""

    @property
    def name(self) -> str:
        """What `--dialect` calls it."""
        ...

    def recognises(self, path: str, text: str) -> bool:
        """Whether the text is meant for this dialect, judged by what it contains."""
        ...

    def parse(self, path: str, text: str) -> Plan:
        """The plan as written, not yet validated.

        Its id and title are those it declares; `load` makes up what is empty from the path.
        """
        ...


DIALECTS: tuple[Dialect, ...] = (milestone, taskfile)
"""Every dialect; the first that recognises a text reads it."""


def load(path: str, text: str, *, dialect: str | None = None) -> Plan:
    """The valid plan that this text is; the path names it and stands in messages."""
    _refuse_unreadable(path, text)
    plan = _chosen(path, text, dialect).parse(path, text)
    if not plan.tasks and plan.notes:
        note = plan.notes[0]
        raise PlanError("no tasks found", path=path, line=note.line, hint=f"this line {note.text}")
    safe = plan_id(path, plan.id or None)
    return validated(replace(plan, id=safe, title=plan.title or safe))


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


def _chosen(path: str, text: str, name: str | None) -> Dialect:
    if name is None:
        found = next((each for each in DIALECTS if each.recognises(path, text)), None)
        if found is not None:
            return found
        if not _HEADING.search(text):
            raise PlanError("no tasks found", path=path, hint=_A_PLAN)
        # Its own reading says best what was seen and not taken for a task.
        return milestone
    for each in DIALECTS:
        if each.name == name:
            return each
    raise PlanError(
        f"there is no dialect {name!r}",
        path=path,
        hint=f"the dialects are {', '.join(each.name for each in DIALECTS)}",
    )


def _refuse_unreadable(path: str, text: str) -> None:
    """Refuse what no dialect could make sense of, before anyone spends time on it."""
    if len(text) > _MAX_TEXT:
        _refuse(path, 0, f"too long: it has more than {_MAX_TEXT:,} characters")
    if (at := text.find("\0")) >= 0:
        _refuse(path, _line_of(text, at), "not text: it has a NUL byte")
    if found := _NOT_UNICODE.search(text):
        _refuse(path, _line_of(text, found.start()), "not UTF-8 text")
    if not text.removeprefix("\ufeff").strip():
        _refuse(path, 0, "empty")
    for number, line in enumerate(markdown.split_lines(text), 1):
        if len(line) > _MAX_LINE:
            _refuse(path, number, f"no plan: a line has more than {_MAX_LINE:,} characters")


def _line_of(text: str, at: int) -> int:
    return len(markdown.split_lines(text[:at]))


def _refuse(path: str, line: int, why: str) -> NoReturn:
    raise PlanError(f"the file is {why}", path=path, line=line, hint=_A_PLAN)


def written_into(plan: Plan) -> tuple[str, ...]:
    """The user's own files that hold some of the plan's state: paths below the repository."""
    return (plan.path,) if plan.dialect == taskfile.name else ()


def project(
    state: RunState,
    seq: int,
    texts: Mapping[str, str] = MappingProxyType({}),
    redact: Callable[[str], str] = str,
) -> dict[str, str]:
    """The state files that the plan's dialect asks for, as {path below the repository: text}.

    `texts` are the files of `written_into` as they are now, but for those that are gone. What the
    run has to say is redacted; what is the user's own is theirs, secrets and all.
    """
    if state.plan.dialect == taskfile.name:
        return taskfile_state.project(state, seq, texts, redact)
    if state.plan.dialect == milestone.name:
        made = milestone_state.project(state, seq)
        return {path: redact(text) for path, text in made.items()}
    return {}
